"""A strategy spec's parameters, and the values that may be one of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from quantdeck.domain.indicator_types import Slot
from quantdeck.domain.spec_numbers import number, unfit
from quantdeck.domain.spec_problems import Findings, Kind, identifier, kind_of, listed, shown
from quantdeck.domain.strategy_specs import Parameter, Placeholder, Value

__all__ = ["Values"]

_PLACEHOLDER = re.compile(r"\$\{\s*([^${}]{1,64}?)\s*\}")
_KEYS = ("name", "type", "min", "max", "defaultValue")
_ALIASES = {"default": "defaultValue", "default_value": "defaultValue"}
_TYPES: Mapping[str, Literal["INTEGER", "DOUBLE"]] = {
    "INTEGER": "INTEGER",
    "INT": "INTEGER",
    "DOUBLE": "DOUBLE",
    "DECIMAL": "DOUBLE",
    "FLOAT": "DOUBLE",
}
_INTEGERS = 2**31
"""Other engines keep an INTEGER in 32 bits."""


class Range(NamedTuple):
    least: float
    default: float
    most: float


@dataclass
class Values:
    """What is declared, and what of it is used."""

    findings: Findings
    complete: bool = True  # all that is declared could be read
    declared: dict[str, Parameter | None] = field(default_factory=dict)  # None: declared, but not understood
    used: set[str] = field(default_factory=set)

    def declare(self, given: list[Any]) -> list[Parameter]:
        """Every parameter that is understood."""
        for place, one in enumerate(given):
            path = f"parameters[{place}]"
            if isinstance(one, dict):
                self._parameter(path, one)
            else:
                self._wrong(path, f"must be an object with {', '.join(_KEYS)}, not {kind_of(one)}")
        return [one for one in self.declared.values() if one is not None]

    def _parameter(self, path: str, given: Mapping[Any, Any]) -> None:
        entry, others = self.findings.entry("parameters", path, given, _KEYS, _ALIASES)
        for key in list(others)[:10]:
            self._wrong(f"{path}.{key[:40]}", f"is not part of a parameter; it takes {', '.join(_KEYS)}")
        name = self._name(f"{path}.name", entry.get("name"))
        said = entry.get("type")
        kind = _TYPES.get(said.upper()) if isinstance(said, str) else None
        if kind is None:
            self._wrong(f"{path}.type", f"must be INTEGER or DOUBLE, not {shown(said)}")
        low, high, default = (self._bound(f"{path}.{key}", entry.get(key), kind) for key in _KEYS[2:])
        if low is None or high is None or default is None:
            return
        if low > high:
            self._wrong(f"{path}.min", f"is {low:g}, above max {high:g}")
        elif not low <= default <= high:
            self._wrong(f"{path}.defaultValue", f"is {default:g}, outside {low:g} to {high:g}")
        elif name is not None and kind is not None:
            self.declared[name] = Parameter(name, kind, low, high, default)

    def _name(self, path: str, given: Any) -> str | None:
        """A new name; None for one that cannot be used, which may have been declared before."""
        if not identifier(given):
            self._wrong(path, f"must be a name of letters, digits and _, not {shown(given)}")
            return None
        if given in self.declared:
            self._wrong(path, f"{given!r} is declared twice; names are unique")
            return None
        self.declared[given] = None
        return str(given)

    def _bound(self, path: str, given: Any, kind: str | None) -> float | None:
        value = number(given)
        if given is None:
            self._wrong(path, "is required")
        elif value is None:
            self._wrong(path, f"must be a finite number, not {shown(given)}")
        elif kind == "INTEGER" and not float(value).is_integer():
            self._wrong(path, f"must be a whole number for an INTEGER, not {value:g}")
        elif kind == "INTEGER" and not -_INTEGERS <= value < _INTEGERS:
            self._wrong(path, f"must fit into 32 bits for an INTEGER, which {value:g} does not")
        else:
            return int(value) if kind == "INTEGER" else float(value)
        return None

    def fill(
        self, kind: Kind, path: str, params: Mapping[str, Any], slots: Mapping[str, Slot], owner: str
    ) -> dict[str, Value]:
        """The values of a type's slots; what may be left out and was, stays out."""
        found: dict[str, Value] = {}
        for key, slot in slots.items():
            if key not in params:
                if slot.required:
                    self.findings.wrong(kind, f"{path}.{key}", f"is required by {owner}")
            elif (value := self._value(kind, f"{path}.{key}", params[key], slot)) is not None:
                found[key] = value
        return found

    def _value(self, kind: Kind, path: str, given: Any, slot: Slot) -> Value | None:
        if isinstance(given, str) and "$" in given:
            return self.placeholder(path, given, slot)
        value = number(given)
        if value is None:
            self.findings.wrong(kind, path, f"must be a number or a parameter such as ${{period}}, not {shown(given)}")
        elif said := unfit(value, slot):
            self.findings.wrong(kind, path, f"{said}, not {value:g}")
        else:
            return int(value) if slot.whole else value
        return None

    def placeholder(self, path: str, given: str, slot: Slot) -> Placeholder | None:
        """The parameter that a value names, if there is one whose every value can stand there."""
        found = _PLACEHOLDER.fullmatch(given.strip())
        if found is None:
            self._wrong(path, f"{shown(given)} is no placeholder; write it like ${{period}}, and alone")
            return None
        name = found[1]
        if name not in self.declared and self.complete:
            self._wrong(path, f"the parameter {name!r} is not declared; there are {listed(self.declared)}")
            return None
        self.used.add(name)
        parameter = self.declared.get(name)
        if parameter is not None and (said := _unfit_parameter(parameter, slot)):
            self._wrong(path, said)
        return Placeholder(name)

    def range(self, value: Value | float) -> Range:
        """What a value can be; nothing of a parameter that was not understood, which is told elsewhere."""
        if not isinstance(value, Placeholder):
            return Range(value, value, value)
        parameter = self.declared.get(value.name)
        return Range(0, 0, 0) if parameter is None else Range(parameter.min, parameter.default, parameter.max)

    def _wrong(self, path: str, message: str) -> None:
        self.findings.wrong("parameters", path, message)


def _unfit_parameter(parameter: Parameter, slot: Slot) -> str | None:
    if slot.whole and parameter.type != "INTEGER":
        return f"takes a whole number, and {parameter.name!r} is a {parameter.type}; make it an INTEGER"
    ends = ((end, unfit(end, slot)) for end in (parameter.min, parameter.max))
    return next((f"{said}, and {parameter.name!r} may be {end:g}" for end, said in ends if said), None)
