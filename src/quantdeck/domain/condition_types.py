"""Every condition type that a strategy spec may name, and what it holds its indicator against. Facts only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from quantdeck.domain.indicator_types import Slot

__all__ = ["CONDITIONS", "REFUSED", "ConditionType", "Operation"]

Operation = Literal[
    "crossed_up", "crossed_down", "above", "below", "rising", "falling", "gained", "lost", "fell_from_peak"
]  # fmt: skip
"""What the twenty types come to. The last three look at the open trade, and percentages are 3 for 3 %."""


@dataclass(frozen=True, slots=True)
class ConditionType:
    """`references` are params that hold an id, `slots` hold values; `either`: exactly one of all of them is given."""

    means: Operation
    references: tuple[str, ...] = ()
    slots: Mapping[str, Slot] = field(default_factory=dict)
    either: bool = False
    words: Mapping[str, Mapping[str, Operation]] = field(default_factory=dict)  # what each means; the first by default
    is_stop: bool = False  # it looks at the open trade, so it has no indicator and belongs to the exit

    @property
    def takes(self) -> tuple[str, ...]:
        """The names of its params."""
        return (*self.references, *self.slots, *self.words)


def _crossing(means: Operation) -> ConditionType:
    return ConditionType(means, ("crosses",), {"value": Slot()}, either=True)


def _comparing(means: Operation) -> ConditionType:
    return ConditionType(means, ("other",), {"value": Slot()}, either=True)


def _to_indicator(means: Operation) -> ConditionType:
    return ConditionType(means, ("other",))


def _to_value(means: Operation) -> ConditionType:
    return ConditionType(means, slots={"value": Slot()})


def _to_constant(means: Operation) -> ConditionType:
    return ConditionType(means, slots={"threshold": Slot()})


def _turning(means: Operation) -> ConditionType:
    return ConditionType(means, slots={"barCount": Slot(whole=True, default=1)})


def _stop(means: Operation) -> ConditionType:
    return ConditionType(means, slots={"percentage": Slot(above=0.0)}, is_stop=True)


CONDITIONS: Mapping[str, ConditionType] = {
    "CROSSED_UP": _crossing("crossed_up"),
    "CROSSED_DOWN": _crossing("crossed_down"),
    "CROSSOVER": ConditionType(
        "crossed_up", ("crosses",), words={"direction": {"UP": "crossed_up", "DOWN": "crossed_down"}}
    ),
    "CROSSES_ABOVE": _to_value("crossed_up"),
    "CROSSES_BELOW": _to_value("crossed_down"),
    "ABOVE": _comparing("above"),
    "BELOW": _comparing("below"),
    "OVER": _comparing("above"),
    "UNDER": _comparing("below"),
    "OVER_INDICATOR": _to_indicator("above"),
    "UNDER_INDICATOR": _to_indicator("below"),
    "OVER_CONSTANT": _to_constant("above"),
    "UNDER_CONSTANT": _to_constant("below"),
    "CROSSED_UP_CONSTANT": _to_constant("crossed_up"),
    "CROSSED_DOWN_CONSTANT": _to_constant("crossed_down"),
    "IS_RISING": _turning("rising"),
    "IS_FALLING": _turning("falling"),
    "STOP_GAIN": _stop("gained"),
    "STOP_LOSS": _stop("lost"),
    "TRAILING_STOP_LOSS": _stop("fell_from_peak"),
}

REFUSED: Mapping[str, str] = {
    "AND": "the conditions of a list are combined with AND already: write them one beside the other",
    "OR": "there is no OR: submit a spec for each alternative",
}
"""Types that other engines register and never run, and what to do instead."""
