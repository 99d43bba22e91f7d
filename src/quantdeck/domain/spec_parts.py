"""A strategy spec's indicators, and the conditions on them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from quantdeck.domain.condition_types import CONDITIONS, REFUSED, ConditionType
from quantdeck.domain.indicator_types import INDICATORS, IndicatorType, Slot
from quantdeck.domain.spec_problems import Findings, Kind, identifier, kind_of, listed, shown, unknown
from quantdeck.domain.spec_values import Values
from quantdeck.domain.strategy_specs import IMPLIED, PRICES, Condition, Indicator, Value

__all__ = ["Parts"]

_INDICATOR = ("id", "type", "input", "params")
_CONDITION = ("type", "indicator", "params")
_INDICATOR_PARAMS = frozenset(key for kind in INDICATORS.values() for key in kind.params)
_CONDITION_PARAMS = frozenset(key for kind in CONDITIONS.values() for key in kind.takes)


@dataclass
class Parts:
    """What has been defined, and what of it is used."""

    findings: Findings
    values: Values
    complete: bool = True  # all that is defined could be read
    ids: set[str] = field(default_factory=set)
    used: set[str] = field(default_factory=set)

    def indicators(self, given: list[Any]) -> list[Indicator]:
        """Every indicator that is understood."""
        found = [self._indicator(f"indicators[{place}]", one) for place, one in enumerate(given)]
        return [one for one in found if one is not None]

    def _indicator(self, path: str, given: Any) -> Indicator | None:
        if not isinstance(given, dict):
            self.findings.wrong("shape", path, f"must be an object with {', '.join(_INDICATOR)}, not {kind_of(given)}")
            return None
        entry, others = self.findings.entry("indicators", path, given, _INDICATOR, {"output_name": "id"})
        name = _type(entry)
        source = self._input(f"{path}.input", entry.get("input", IMPLIED))
        id_ = self._declare(f"{path}.id", entry.get("id"), name)
        if name not in INDICATORS:
            said = unknown("an indicator type", entry.get("type"), INDICATORS)
            self.findings.wrong("indicators", f"{path}.type", said)
            self._untyped("indicators", path, entry, others, _INDICATOR_PARAMS)
            return None
        kind = INDICATORS[name]
        params = self.findings.params("indicators", path, entry.get("params", {}), others, kind.params, name)
        if params is None:
            return None
        filled = self.values.fill("indicators", f"{path}.params", params, kind.params, name)
        self._check_order(f"{path}.params", kind, params, filled)
        if source != IMPLIED and not kind.reads_input:
            said = f"{path}: {name} is computed from the candles, so its input {source!r} is not used"
            self.findings.warnings.append(said)
        return Indicator(id_, name, source, filled)

    def _check_order(
        self, path: str, kind: IndicatorType, said: Mapping[str, Any], filled: Mapping[str, Value]
    ) -> None:
        if kind.ascending is None or not said.keys() <= filled.keys():
            return
        low, high = kind.ascending
        shorter, longer = (self.values.range(filled.get(key, kind.params[key].default or 0)) for key in (low, high))
        if shorter.default > longer.default:
            told = f"is {shorter.default:g}, above {high} {longer.default:g}; exchange them"
            self.findings.wrong("indicators", f"{path}.{low}", told)
        elif shorter.most > longer.least:
            told = f"{path}: the ranges of {low} and {high} overlap; where {low} is above {high} it cannot be run"
            self.findings.warnings.append(told)

    def _declare(self, path: str, own: Any, name: str) -> str:
        if own is None:
            said = "is required: a name by which conditions and later indicators refer to it"
        elif not identifier(own):
            said = f"must be a name of letters, digits and _, not {shown(own)}"
        elif own in self.ids:
            said = f"{own!r} is used twice; ids are unique"
        elif own.lower() in PRICES and name != own.upper():
            said = f"{own!r} is the {own.lower()} of the candle already; choose another id"
        else:
            self.ids.add(own)
            return str(own)
        self.findings.wrong("indicators", path, said)
        return ""

    def _input(self, path: str, given: Any) -> str:
        if isinstance(given, str) and given in self.ids:
            self.used.add(given)
            return given
        if isinstance(given, str) and given.lower() in PRICES:
            return given.lower()
        there = listed((*PRICES, *sorted(self.ids)))
        self.findings.wrong(
            "indicators", path, f"{shown(given)} is no price and no earlier indicator; there are {there}"
        )
        return IMPLIED

    def conditions(self, part: str, given: list[Any]) -> list[Condition]:
        """Every condition that is understood."""
        found = [self._condition(part, f"{part}[{place}]", one) for place, one in enumerate(given)]
        return [one for one in found if one is not None]

    def _condition(self, part: str, path: str, given: Any) -> Condition | None:
        if not isinstance(given, dict):
            self._wrong(path, f"must be an object with {', '.join(_CONDITION)}, not {kind_of(given)}")
            return None
        entry, others = self.findings.entry("conditions", path, given, _CONDITION, {"operator": "type"})
        name = _type(entry)
        if name not in CONDITIONS:
            refused = REFUSED.get(name)
            said = unknown("a condition type", entry.get("type"), CONDITIONS)
            self._wrong(f"{path}.type", said if refused is None else f"{name} cannot be used: {refused}")
            if refused is None:
                self._untyped("conditions", path, entry, others, _CONDITION_PARAMS)
            return None
        kind = CONDITIONS[name]
        indicator = self._watched(part, path, name, entry.get("indicator"))
        params = self.findings.params("conditions", path, entry.get("params", {}), others, kind.takes, name)
        if params is None:
            return None
        return Condition(name, indicator, self._operands(f"{path}.params", params, kind, name))

    def _untyped(
        self, kind: Kind, path: str, entry: Mapping[str, Any], others: Mapping[str, Any], takes: Collection[str]
    ) -> None:
        """Without a type little can be said of its params; what is wrong whatever it will be is said."""
        params = self.findings.params(kind, path, entry.get("params", {}), others, sorted(takes), "any type")
        for key, value in (params or {}).items():
            if isinstance(value, str) and "$" in value:
                self.values.placeholder(f"{path}.params.{key}", value, Slot())

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
                self._wrong(path, f"{name} takes {' or '.join(kind.takes)}, one of them and not both")
                return {}
        found: dict[str, str | Value] = {
            key: self._reference(f"{path}.{key}", params.get(key), kind) for key in kind.references if key in wanted
        }
        for key, words in kind.words.items():
            said = params.get(key, next(iter(words)))
            word = said.upper() if isinstance(said, str) else ""
            if word not in words:
                self._wrong(f"{path}.{key}", f"must be {' or '.join(words)}, not {shown(said)}")
            found[key] = word
        slots = {key: slot for key, slot in kind.slots.items() if key in wanted}
        for key in slots:
            if kind.references and isinstance(params[key], str) and params[key] in self.ids:
                self._wrong(f"{path}.{key}", f"is a number; for an indicator say {kind.references[0]}")
                return found
        found.update(self.values.fill("conditions", path, params, slots, name))
        return found

    def _reference(self, path: str, given: Any, kind: ConditionType | None = None) -> str:
        if isinstance(given, str) and given in self.ids:
            self.used.add(given)
            return given
        if isinstance(given, str) and (given.lower() == IMPLIED or not self.complete):
            return IMPLIED
        said = "is required" if given is None else f"{shown(given)} is not defined"
        if isinstance(given, str) and given.lower() in PRICES:
            hint = f"add the indicator {{id: {given.lower()}, type: {given.upper()}}}"
        else:
            hint = f"name the id of an indicator; there are {listed((*sorted(self.ids), IMPLIED))}"
        if kind is not None and kind.slots and given is not None:
            hint += f". For a number say {next(iter(kind.slots))}"
        self._wrong(path, f"{said}: {hint}")
        return IMPLIED

    def _wrong(self, path: str, message: str) -> None:
        self.findings.wrong("conditions", path, message)


def _type(entry: Mapping[str, Any]) -> str:
    said = entry.get("type")
    return said.strip().upper() if isinstance(said, str) and said.isascii() else ""
