"""Every condition type that a strategy spec may name, and what it holds its indicator against. Facts only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from quantdeck.domain.indicator_types import Slot

__all__ = ["CONDITIONS", "REFUSED", "ConditionType"]


@dataclass(frozen=True, slots=True)
class ConditionType:
    """`references` are params that hold an id, `slots` hold values; `either`: exactly one of all of them is given."""

    references: tuple[str, ...] = ()
    slots: Mapping[str, Slot] = field(default_factory=dict)
    either: bool = False
    words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # the first is the default
    is_stop: bool = False  # it looks at the open trade, so it has no indicator and belongs to the exit

    @property
    def takes(self) -> tuple[str, ...]:
        """The names of its params."""
        return (*self.references, *self.slots, *self.words)


_ANY = Slot()
_CROSSING = ConditionType(("crosses",), {"value": _ANY}, either=True)
_COMPARING = ConditionType(("other",), {"value": _ANY}, either=True)
_TO_INDICATOR = ConditionType(("other",))
_TO_CONSTANT = ConditionType(slots={"threshold": _ANY})
_TO_VALUE = ConditionType(slots={"value": _ANY})
_TURNING = ConditionType(slots={"barCount": Slot(whole=True, default=1)})
_STOP = ConditionType(slots={"percentage": Slot(above=0.0)}, is_stop=True)

CONDITIONS: Mapping[str, ConditionType] = {
    "CROSSED_UP": _CROSSING,
    "CROSSED_DOWN": _CROSSING,
    "CROSSOVER": ConditionType(("crosses",), words={"direction": ("UP", "DOWN")}),
    "CROSSES_ABOVE": _TO_VALUE,
    "CROSSES_BELOW": _TO_VALUE,
    "ABOVE": _COMPARING,
    "BELOW": _COMPARING,
    "OVER": _COMPARING,
    "UNDER": _COMPARING,
    "OVER_INDICATOR": _TO_INDICATOR,
    "UNDER_INDICATOR": _TO_INDICATOR,
    "OVER_CONSTANT": _TO_CONSTANT,
    "UNDER_CONSTANT": _TO_CONSTANT,
    "CROSSED_UP_CONSTANT": _TO_CONSTANT,
    "CROSSED_DOWN_CONSTANT": _TO_CONSTANT,
    "IS_RISING": _TURNING,
    "IS_FALLING": _TURNING,
    "STOP_GAIN": _STOP,
    "STOP_LOSS": _STOP,
    "TRAILING_STOP_LOSS": _STOP,
}

REFUSED: Mapping[str, str] = {
    "AND": "the conditions of a list are combined with AND already: write them one beside the other",
    "OR": "there is no OR: submit a spec for each alternative",
}
"""Types that other engines register and never run, and what to do instead."""
