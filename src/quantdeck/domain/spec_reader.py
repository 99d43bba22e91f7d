"""Reading a strategy spec that somebody wrote, most likely a language model.

`read` never raises: it answers the spec, or everything that is wrong with it. Each problem has a path, a kind and a
sentence by which it can be mended. What is merely unwise is a warning.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from quantdeck.domain.condition_types import CONDITIONS, REFUSED, ConditionType
from quantdeck.domain.indicator_types import INDICATORS, Slot
from quantdeck.domain.spec_problems import Findings, Kind, Problem, identifier, kind_of, number, shown, unfit, unknown
from quantdeck.domain.strategy_specs import PRICES, Condition, Indicator, Parameter, Placeholder, StrategySpec, Value

__all__ = ["Reading", "read"]

MAX_DESCRIPTION = 500
MOST = {"indicators": 50, "entry_conditions": 50, "exit_conditions": 50, "parameters": 100}
USUAL = {"indicators": 5, "conditions": 10, "parameters": 15}

_NAME = re.compile(r"[A-Z][A-Z0-9_]{2,49}")
_PLACEHOLDER = re.compile(r"\$\{\s*([^${}]{1,64}?)\s*\}")
_PARAMETER_TYPES: Mapping[str, Literal["INTEGER", "DOUBLE"]] = {
    "INTEGER": "INTEGER",
    "INT": "INTEGER",
    "DOUBLE": "DOUBLE",
    "DECIMAL": "DOUBLE",
}


@dataclass(frozen=True, slots=True)
class Reading:
    """The spec where there are no problems; warnings in either case."""

    spec: StrategySpec | None
    problems: tuple[Problem, ...]
    warnings: tuple[str, ...]


def read(
    *,
    name: Any,
    description: Any = None,
    indicators: Any,
    entry_conditions: Any,
    exit_conditions: Any,
    parameters: Any,
) -> Reading:
    """Read one spec, whatever was given for its parts."""
    findings = Findings()
    known_name, known_description = _name(findings, name), _description(findings, description)
    values = _Values(findings)
    found_parameters = values.declare(_entries(findings, "parameters", parameters))
    parts = _Parts(findings, values)
    found_indicators = parts.indicators(_entries(findings, "indicators", indicators))
    entry = parts.conditions("entry_conditions", _entries(findings, "entry_conditions", entry_conditions))
    leave = parts.conditions("exit_conditions", _entries(findings, "exit_conditions", exit_conditions))
    spec = StrategySpec(
        known_name, known_description, tuple(found_indicators), tuple(entry), tuple(leave), tuple(found_parameters)
    )
    findings.warnings += _warnings(spec, parts.used, values.used)
    problems = tuple(findings.problems)
    return Reading(None if problems else spec, problems, tuple(findings.warnings))


def _name(findings: Findings, given: Any) -> str:
    text = given.strip().upper() if isinstance(given, str) and given.isascii() else ""
    if not _NAME.fullmatch(text):
        findings.wrong("name", "name", "must be 3 to 50 of A-Z, 0-9 and _ after a letter, such as EMA_PULLBACK")
    return text


def _description(findings: Findings, given: Any) -> str | None:
    if given is None:
        return None
    if not isinstance(given, str):
        findings.wrong("shape", "description", f"must be text, not {kind_of(given)}")
    elif len(given) > MAX_DESCRIPTION:
        findings.wrong("shape", "description", f"has {len(given)} characters; at most {MAX_DESCRIPTION}")
    return str(given)


def _entries(findings: Findings, part: str, given: Any) -> list[Any]:
    if not isinstance(given, list):
        findings.wrong("shape", part, f"must be a list of objects, not {kind_of(given)}")
        return []
    if not given and part != "parameters":
        findings.wrong("shape", part, "must have at least one entry")
    if len(given) > MOST[part]:
        findings.wrong("shape", part, f"has {len(given)} entries; at most {MOST[part]}")
    return given[: MOST[part]]


def _warnings(spec: StrategySpec, used_ids: set[str], used_parameters: set[str]) -> list[str]:
    conditions = (*spec.entry_conditions, *spec.exit_conditions)
    sizes = {"indicators": len(spec.indicators), "conditions": len(conditions), "parameters": len(spec.parameters)}
    found = [
        f"{size} {part} are many: {USUAL[part]} or fewer generalise better"
        for part, size in sizes.items()
        if size > USUAL[part]
    ]
    found += [
        f"the indicator {one.id!r} is used by no condition and no other indicator"
        for one in spec.indicators
        if one.id not in used_ids
    ]
    for one in spec.parameters:
        if one.name not in used_parameters:
            found.append(f"the parameter {one.name!r} is used nowhere")
        if one.min > 0 and not 1.5 <= one.max / one.min <= 100:
            found.append(f"the range of {one.name!r} is unusual: max / min is outside 1.5 to 100")
    return found


@dataclass
class _Values:
    """The spec's parameters, and values that may be one of them."""

    findings: Findings
    declared: dict[str, Parameter | None] = field(default_factory=dict)  # None: declared, but not understood
    used: set[str] = field(default_factory=set)

    def declare(self, given: list[Any]) -> list[Parameter]:
        """Every parameter that is understood."""
        for place, one in enumerate(given):
            self._parameter(f"parameters[{place}]", one)
        return [one for one in self.declared.values() if one is not None]

    def _parameter(self, path: str, given: Any) -> None:
        keys = ("name", "type", "min", "max", "defaultValue")
        entry = self.findings.entry("parameters", path, given, keys, {"default": "defaultValue"})
        if entry is None:
            return
        name, kind = entry.get("name"), _PARAMETER_TYPES.get(str(entry.get("type")).upper())
        if not isinstance(name, str) or not identifier(name):
            self._wrong(f"{path}.name", f"must be a name of letters, digits and _, not {shown(name)}")
        elif name in self.declared:
            self._wrong(f"{path}.name", f"{name!r} is declared twice; names are unique")
        else:
            self.declared[name] = None
        if kind is None:
            self._wrong(f"{path}.type", f"must be INTEGER or DOUBLE, not {shown(entry.get('type'))}")
            return
        low, high, default = (self._bound(path, entry, key, kind) for key in ("min", "max", "defaultValue"))
        if low is None or high is None or default is None:
            return
        if low > high:
            self._wrong(f"{path}.min", f"is {low:g}, above max {high:g}")
        elif not low <= default <= high:
            self._wrong(f"{path}.defaultValue", f"is {default:g}, outside {low:g} to {high:g}")
        elif isinstance(name, str) and name in self.declared and self.declared[name] is None:
            self.declared[name] = Parameter(name, kind, low, high, default)

    def _bound(self, path: str, entry: Mapping[str, Any], key: str, kind: str) -> float | None:
        value = number(entry.get(key))
        if key not in entry:
            self._wrong(f"{path}.{key}", "is required")
        elif value is None:
            self._wrong(f"{path}.{key}", f"must be a finite number, not {shown(entry[key])}")
        elif kind == "INTEGER" and not float(value).is_integer():
            self._wrong(f"{path}.{key}", f"must be a whole number for an INTEGER, not {value:g}")
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
            return self._placeholder(path, given, slot)
        value = number(given)
        if value is None:
            self.findings.wrong(kind, path, f"must be a number or a parameter such as ${{period}}, not {shown(given)}")
        elif said := unfit(value, slot):
            self.findings.wrong(kind, path, f"{said}, not {value:g}")
        else:
            return int(value) if slot.whole else value
        return None

    def _placeholder(self, path: str, given: str, slot: Slot) -> Placeholder | None:
        found = _PLACEHOLDER.fullmatch(given.strip())
        if found is None:
            self._wrong(path, f"{shown(given)} is no placeholder; write it like ${{period}}, and alone")
            return None
        name = found[1]
        if name not in self.declared:
            there = ", ".join(self.declared) or "none"
            self._wrong(path, f"the parameter {name!r} is not declared; there are {there}")
            return None
        self.used.add(name)
        parameter = self.declared[name]
        if parameter is not None and (said := _unfit_parameter(parameter, slot)):
            self._wrong(path, said)
        return Placeholder(name)

    def _wrong(self, path: str, message: str) -> None:
        self.findings.wrong("parameters", path, message)


def _unfit_parameter(parameter: Parameter, slot: Slot) -> str | None:
    if slot.whole and parameter.type != "INTEGER":
        return f"takes a whole number, and {parameter.name!r} is a {parameter.type}; make it an INTEGER"
    ends = ((end, unfit(end, slot)) for end in (parameter.min, parameter.max))
    return next((f"{said}, and {parameter.name!r} may be {end:g}" for end, said in ends if said), None)


@dataclass
class _Parts:
    """Indicators and the conditions on them."""

    findings: Findings
    values: _Values
    ids: set[str] = field(default_factory=set)
    used: set[str] = field(default_factory=set)

    def indicators(self, given: list[Any]) -> list[Indicator]:
        """Every indicator that is understood."""
        found = [self._indicator(f"indicators[{place}]", one) for place, one in enumerate(given)]
        return [one for one in found if one is not None]

    def _indicator(self, path: str, given: Any) -> Indicator | None:
        keys = ("id", "type", "input", "params")
        entry = self.findings.entry("indicators", path, given, keys, {"output_name": "id"})
        if entry is None:
            return None
        own, kind = entry.get("id"), str(entry.get("type")).upper()
        source = self._input(f"{path}.input", entry.get("input", "close"))
        self._declare(f"{path}.id", own, kind)
        if kind not in INDICATORS:
            said = unknown("an indicator type", entry.get("type"), INDICATORS)
            self.findings.wrong("indicators", f"{path}.type", said)
            return None
        slots, where = INDICATORS[kind].params, f"{path}.params"
        params = self.findings.params("indicators", where, entry.get("params", {}), slots, kind)
        filled = {} if params is None else self.values.fill("indicators", where, params, slots, kind)
        return Indicator(str(own), kind, source, filled)

    def _declare(self, path: str, own: Any, kind: str) -> None:
        if not isinstance(own, str) or not identifier(own):
            said = f"must be a name of letters, digits and _, not {shown(own)}"
        elif own in self.ids:
            said = f"{own!r} is used twice; ids are unique"
        elif own in PRICES and kind != own.upper():
            said = f"{own!r} is the {own} of the candle already; choose another id"
        else:
            self.ids.add(own)
            return
        self.findings.wrong("indicators", path, said)

    def _input(self, path: str, given: Any) -> str:
        if isinstance(given, str) and (given in PRICES or given in self.ids):
            self.used.add(given)
        else:
            there = ", ".join((*PRICES, *sorted(self.ids)))
            said = f"{shown(given)} is no price and no earlier indicator; there are {there}"
            self.findings.wrong("indicators", path, said)
        return str(given)

    def conditions(self, part: str, given: list[Any]) -> list[Condition]:
        """Every condition that is understood."""
        found = [self._condition(part, f"{part}[{place}]", one) for place, one in enumerate(given)]
        return [one for one in found if one is not None]

    def _condition(self, part: str, path: str, given: Any) -> Condition | None:
        entry = self.findings.entry("conditions", path, given, ("type", "indicator", "params"), {})
        if entry is None:
            return None
        name = str(entry.get("type")).upper()
        if name in REFUSED:
            self._wrong(f"{path}.type", f"{name} cannot be used: {REFUSED[name]}")
            return None
        if name not in CONDITIONS:
            self._wrong(f"{path}.type", unknown("a condition type", entry.get("type"), CONDITIONS))
            return None
        kind, where = CONDITIONS[name], f"{path}.params"
        indicator = self._watched(part, path, name, entry.get("indicator"))
        params = self.findings.params("conditions", where, entry.get("params", {}), kind.takes, name)
        return Condition(name, indicator, {} if params is None else self._operands(where, params, kind, name))

    def _watched(self, part: str, path: str, name: str, given: Any) -> str | None:
        if not CONDITIONS[name].is_stop:
            return self._reference(f"{path}.indicator", given)
        if part == "entry_conditions":
            self._wrong(f"{path}.type", f"{name} watches an open trade: it belongs into exit_conditions")
        if given is not None:
            self._wrong(f"{path}.indicator", f"{name} takes no indicator; leave it out")
        return None

    def _operands(self, path: str, params: Mapping[str, Any], kind: ConditionType, name: str) -> dict[str, str | Value]:
        wanted = (*kind.references, *kind.slots)
        if kind.either:
            wanted = tuple(key for key in wanted if key in params)
            if len(wanted) != 1:
                self._wrong(path, f"{name} takes one of {' and '.join(kind.takes)}, and only one")
                return {}
        found: dict[str, str | Value] = {
            key: self._reference(f"{path}.{key}", params.get(key)) for key in kind.references if key in wanted
        }
        for key, words in kind.words.items():
            found[key] = str(params.get(key, words[0])).upper()
            if found[key] not in words:
                self._wrong(f"{path}.{key}", f"must be {' or '.join(words)}, not {shown(params[key])}")
        slots = {key: slot for key, slot in kind.slots.items() if key in wanted}
        found.update(self.values.fill("conditions", path, params, slots, name))
        return found

    def _reference(self, path: str, given: Any) -> str:
        if isinstance(given, str) and (given in self.ids or given in PRICES):
            self.used.add(given)
        else:
            said = "is required" if given is None else f"{shown(given)} is not defined"
            there = ", ".join((*sorted(self.ids), *PRICES))
            self._wrong(path, f"{said}: name the id of an indicator; there are {there}")
        return str(given)

    def _wrong(self, path: str, message: str) -> None:
        self.findings.wrong("conditions", path, message)
