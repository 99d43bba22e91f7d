"""What a model is told of the types that a spec may use, from the tables that it is read by."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from quantdeck.domain.condition_types import CONDITIONS
from quantdeck.domain.indicator_types import INDICATORS, Slot
from quantdeck.domain.spec_reader import MOST

__all__ = ["ENTRIES", "EXITS", "INDICATOR_LIST", "PARAMETERS"]


def _grouped(said: Iterable[tuple[str, str]]) -> str:
    """Types after what they take; what takes the same stands together."""
    groups: dict[str, list[str]] = {}
    for takes, name in said:
        groups.setdefault(takes, []).append(name)
    return "; ".join(f"{takes}: {' '.join(names)}" for takes, names in groups.items())


def _slots(slots: Mapping[str, Slot]) -> str:
    said = (key if slot.default is None else f"{key}={slot.default:g}" for key, slot in slots.items())
    return ",".join(said) or "no params"


def _conditions(*, stops: bool) -> str:
    def takes(name: str) -> str:
        kind = CONDITIONS[name]
        words = [f"{key}={'|'.join(said)}" for key, said in kind.words.items()]
        joined = "|" if kind.either else ","
        return joined.join([*(f"{key}(id)" for key in kind.references), *filter(None, [_named(kind.slots)]), *words])

    return _grouped((takes(name), name) for name, kind in CONDITIONS.items() if kind.is_stop is stops)


def _named(slots: Mapping[str, Slot]) -> str:
    return _slots(slots) if slots else ""


INDICATOR_LIST = (
    "[{id, type, input, params}], in order. input: close (default), open, high, low, volume or an earlier id. params: "
    "numbers or ${name} of a parameter. Types by params, defaults after =. "
    + _grouped((_slots(kind.params), name) for name, kind in INDICATORS.items())
)
ENTRIES = (
    "[{type, indicator, params}], all must hold; no AND or OR. indicator: an id or close. Types by params. "
    + _conditions(stops=False)
)
EXITS = "Likewise. Stop rules, without indicator: " + _conditions(stops=True) + " (3 = 3 %)"
PARAMETERS = f"[{{name, type, min, max, defaultValue}}], type INTEGER or DOUBLE, at most {MOST['parameters']}"
