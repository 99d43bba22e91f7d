"""What an event of each type must hold. A malformed one is kept, with what is wrong with it beside it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from math import isfinite
from numbers import Number
from typing import Any, Literal, NamedTuple
from uuid import UUID

from quantdeck.domain.event_types import EventType

__all__ = ["MAX_PROPERTIES_BYTES", "Problem", "problems"]

MAX_PROPERTIES_BYTES = 1_000_000
"""Of an event's properties as JSON."""

_GUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_NUMERAL = re.compile(r"\s*-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\s*")


class Problem(NamedTuple):
    """One thing that is wrong, in the words of the spec's examples."""

    field: str
    error: str
    severity: Literal["Error", "Warning"] = "Error"

    def entry(self) -> dict[str, str]:
        return {"Field": self.field, "Error": self.error, "Severity": self.severity}


class _Rule(NamedTuple):
    field: str
    fits: Callable[[Any], bool]
    otherwise: str
    severity: Literal["Error", "Warning"] = "Error"


def _is_guid(value: Any) -> bool:
    return isinstance(value, UUID) or (isinstance(value, str) and _GUID.fullmatch(value) is not None)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _is_number(value: Any) -> bool:
    """A number, or a numeral: the original writes decimals as text."""
    if type(value) is float:
        return isfinite(value)
    if isinstance(value, str):
        return _NUMERAL.fullmatch(value) is not None
    return isinstance(value, Number) and not isinstance(value, (bool, complex)) and isfinite(value)  # type: ignore[arg-type]


def _anything(value: Any) -> bool:
    del value
    return True


_ORDER = _Rule("OrderId", _is_guid, "Invalid GUID format")
_RULES: dict[EventType, tuple[_Rule, ...]] = {
    "TradeExecution": (
        _ORDER,
        _Rule("Quantity", _is_number, "Not a number", "Warning"),
        _Rule("Price", _is_number, "Not a number", "Warning"),
    ),
    "OrderRejection": (_ORDER, _Rule("RejectionReason", _is_text, "Not a text")),
    "IndicatorCalculation": (
        _Rule("IndicatorName", _is_text, "Not a text"),
        _Rule("Value", _is_number, "Not a number"),
    ),
    "PositionUpdate": (_Rule("SecuritySymbol", _is_text, "Not a text"),),
    "RiskEvent": (_Rule("RiskType", _is_text, "Not a text"),),
}
_WITHOUT_GUIDS: dict[EventType, tuple[_Rule, ...]] = {
    kind: tuple(rule._replace(fits=_anything) if rule is _ORDER else rule for rule in rules)
    for kind, rules in _RULES.items()
}


def problems(kind: EventType, properties: Mapping[str, Any], *, guids: bool = True) -> list[Problem]:
    """What is missing or not what it should be. Without `guids` an OrderId may be any text or number.

    StateChange and MarketDataEvent hold what they like.
    """
    found: list[Problem] = []
    for field, fits, otherwise, severity in (_RULES if guids else _WITHOUT_GUIDS).get(kind, ()):
        value = properties.get(field)
        if value is None or value == "":
            found.append(Problem(f"Properties.{field}", "Missing required field", severity))
        elif not fits(value):
            found.append(Problem(f"Properties.{field}", otherwise, severity))
    return found
