"""What a strategy spec is: the one definition behind the validator and the engine.

A spec says when to enter and when to leave, by conditions on indicators. Every condition of a list must hold; there is
no OR, no nesting and no short side. A value is a number or `${name}`: a parameter of the spec, to which an
implementation gives a number.

`spec_reader.read` makes a `StrategySpec` of what somebody wrote, and only of what can be run. `StrategySpec.stored` is
what is kept of it, which `read` takes again. `StrategySpec.instantiate` gives its parameters their numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

from quantdeck.domain.condition_types import CONDITIONS, Operation
from quantdeck.domain.indicator_types import INDICATORS, Slot
from quantdeck.domain.spec_numbers import number, unfit

__all__ = [
    "IMPLIED",
    "PRICES",
    "Computation",
    "Condition",
    "Indicator",
    "Parameter",
    "Placeholder",
    "Rule",
    "RunnableSpec",
    "StrategySpec",
    "UnfitParametersError",
    "Value",
    "structure",
]

PRICES = ("close", "open", "high", "low", "volume")
"""What an indicator may have for input beside the id of an earlier one."""

IMPLIED = "close"
"""The one id that conditions may name although no indicator has it."""


@dataclass(frozen=True, slots=True)
class Placeholder:
    """A value that an implementation supplies."""

    name: str


Value = int | float | Placeholder


@dataclass(frozen=True, slots=True)
class Indicator:
    """`params` has what was said; what a type has defaults for may be missing."""

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
    """`min` to `max` is where an optimiser looks."""

    name: str
    type: Literal["INTEGER", "DOUBLE"]
    min: float
    max: float
    default: float

    def number(self, given: Any) -> int | float | None:
        """A value for it, of its type; None for what is none."""
        value = number(given)
        if value is None or self.type == "DOUBLE":
            return value
        return int(value) if float(value).is_integer() else None


@dataclass(frozen=True, slots=True)
class Computation:
    """An indicator with its numbers, those included that were left to the type's defaults."""

    id: str
    type: str
    input: str
    numbers: Mapping[str, int | float]


@dataclass(frozen=True, slots=True)
class Rule:
    """A condition with its number: `indicator` is held against an id or a number.

    The number is a count of bars for `rising` and `falling`, and a percentage (3 is 3 %) for what looks at the open
    trade and has no indicator.
    """

    operation: Operation
    indicator: str | None
    against: str | int | float


@dataclass(frozen=True, slots=True)
class RunnableSpec:
    """A spec with its numbers: each computation after the one it reads; all rules of a list must hold."""

    name: str
    computations: tuple[Computation, ...]
    entry: tuple[Rule, ...]
    exit: tuple[Rule, ...]


class UnfitParametersError(ValueError):
    """Nothing can be computed with these parameters; the sentence says of each why."""


@dataclass(frozen=True, slots=True)
class StrategySpec:
    """One that can be run, with its defaults and with any numbers within its parameters' ranges.

    (But for two periods of which one may not be above the other: where their ranges overlap, some pairs are unfit.)
    """

    name: str
    description: str | None
    reasoning: str | None
    indicators: tuple[Indicator, ...]
    entry_conditions: tuple[Condition, ...]
    exit_conditions: tuple[Condition, ...]
    parameters: tuple[Parameter, ...]

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

    def instantiate(self, given: Mapping[str, Any] = MappingProxyType({})) -> RunnableSpec:
        """The spec with a number for each parameter: the given one, or its default.

        A number outside the parameter's range is taken: it was perhaps narrowed since. What no indicator can be
        computed with, and what the spec has no parameter for, raises UnfitParametersError.
        """
        names = {one.name for one in self.parameters}
        wrong = [f"{str(name)[:64]!r} is no parameter of {self.name}" for name in given if name not in names]
        numbers: dict[str, int | float] = {}
        for parameter in self.parameters:
            value = parameter.number(given.get(parameter.name, parameter.default))
            if value is None:
                kind = "a whole number" if parameter.type == "INTEGER" else "a finite number"
                wrong.append(f"{parameter.name!r} must be {kind}")
            else:
                numbers[parameter.name] = value
        if not wrong:
            runnable = RunnableSpec(
                self.name,
                tuple(_computation(one, numbers, wrong) for one in self.indicators),
                tuple(_rule(one, numbers, wrong) for one in self.entry_conditions),
                tuple(_rule(one, numbers, wrong) for one in self.exit_conditions),
            )
        if wrong:
            raise UnfitParametersError("; ".join(wrong))
        return runnable


def structure(*lists: Any) -> tuple[tuple[str, ...], ...]:
    """What specs share that differ in numbers and names only: the types in each stored list, in their order."""
    return tuple(tuple(_types(one)) for one in lists)


def _types(stored: Any) -> Iterator[str]:
    for one in stored if isinstance(stored, list) else ():
        yield str(one.get("type")).upper() if isinstance(one, dict) else ""


def _condition(one: Condition) -> dict[str, Any]:
    about = {} if one.indicator is None else {"indicator": one.indicator}
    return {"type": one.type, **about, "params": _written(one.params)}


def _written(params: Mapping[str, str | Value]) -> dict[str, Any]:
    return {name: f"${{{value.name}}}" if isinstance(value, Placeholder) else value for name, value in params.items()}


def _computation(one: Indicator, numbers: Mapping[str, int | float], wrong: list[str]) -> Computation:
    kind = INDICATORS[one.type]
    found = {
        key: _number(f"{key} of {one.id!r}", one.params.get(key, slot.default), slot, numbers, wrong)
        for key, slot in kind.params.items()
    }
    if kind.ascending is not None and found[kind.ascending[0]] > found[kind.ascending[1]]:
        low, high = kind.ascending
        wrong.append(f"{low} of {one.id!r} is {found[low]:g}, above {high} {found[high]:g}")
    return Computation(one.id, one.type, one.input, found)


def _rule(one: Condition, numbers: Mapping[str, int | float], wrong: list[str]) -> Rule:
    kind = CONDITIONS[one.type]
    operation = kind.means
    for key, meanings in kind.words.items():
        operation = meanings[str(one.params[key])]
    for key in kind.references:
        if key in one.params:
            return Rule(operation, one.indicator, str(one.params[key]))
    ((key, slot),) = kind.slots.items()
    against = _number(f"{key} of {one.type}", one.params.get(key, slot.default), slot, numbers, wrong)
    return Rule(operation, one.indicator, against)


def _number(
    what: str, value: str | Value | None, slot: Slot, numbers: Mapping[str, int | float], wrong: list[str]
) -> int | float:
    found = numbers[value.name] if isinstance(value, Placeholder) else value
    assert isinstance(found, int | float), f"{what} was not read"
    if said := unfit(found, slot):
        wrong.append(f"{what} {said}, not {found:g}")
        return found
    return int(found) if slot.whole else found
