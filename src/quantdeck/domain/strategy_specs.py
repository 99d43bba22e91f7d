"""What a strategy spec is: the one definition behind the validator and the engine's parser.

A spec says when to enter and when to leave, by conditions on indicators. Every condition of a list must hold; there is
no OR, no nesting and no short side. A value is a number, a number in quotes, or `${name}`: a parameter of the spec, to
which an implementation gives a value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

__all__ = ["PRICES", "Condition", "Indicator", "Parameter", "Placeholder", "StrategySpec", "Value"]

PRICES = ("close", "open", "high", "low", "volume")
"""Ids that are always there: what an indicator may have for input beside the id of an earlier one."""


@dataclass(frozen=True, slots=True)
class Placeholder:
    """A value that an implementation supplies."""

    name: str


Value = int | float | Placeholder


@dataclass(frozen=True, slots=True)
class Indicator:
    id: str
    type: str
    input: str
    params: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Condition:
    """A stop rule has no indicator. `params` hold ids and words as text."""

    type: str
    indicator: str | None
    params: Mapping[str, str | Value]


@dataclass(frozen=True, slots=True)
class Parameter:
    name: str
    type: Literal["INTEGER", "DOUBLE"]
    min: float
    max: float
    default: float


@dataclass(frozen=True, slots=True)
class StrategySpec:
    """One that can be run."""

    name: str
    description: str | None
    indicators: tuple[Indicator, ...]
    entry_conditions: tuple[Condition, ...]
    exit_conditions: tuple[Condition, ...]
    parameters: tuple[Parameter, ...]

    @property
    def structure(self) -> str:
        """What two specs share that differ in numbers only: the types they use, in their order."""
        parts = (self.indicators, self.entry_conditions, self.exit_conditions)
        return "|".join(",".join(one.type for one in part) for part in parts)

    def stored(self) -> dict[str, list[dict[str, Any]]]:
        """Its four lists in their canonical keys, as other engines read them too."""
        return {
            "indicators": [
                {"id": one.id, "type": one.type, "input": one.input, "params": _written(one.params)}
                for one in self.indicators
            ],
            "entry_conditions": [_condition(one) for one in self.entry_conditions],
            "exit_conditions": [_condition(one) for one in self.exit_conditions],
            "parameters": [
                {"name": one.name, "type": one.type, "min": one.min, "max": one.max, "defaultValue": one.default}
                for one in self.parameters
            ],
        }


def _condition(one: Condition) -> dict[str, Any]:
    about = {} if one.indicator is None else {"indicator": one.indicator}
    return {"type": one.type, **about, "params": _written(one.params)}


def _written(params: Mapping[str, str | Value]) -> dict[str, Any]:
    return {name: f"${{{value.name}}}" if isinstance(value, Placeholder) else value for name, value in params.items()}
