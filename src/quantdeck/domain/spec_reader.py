"""Reading a strategy spec that somebody wrote, most likely a language model.

`read` never raises: it answers the spec, or everything that is wrong with it. Each problem has a path, a kind and a
sentence by which it can be mended. What is merely unwise is a warning.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from quantdeck.domain.spec_parts import Parts
from quantdeck.domain.spec_problems import Findings, Problem, kind_of, shown
from quantdeck.domain.spec_values import Values
from quantdeck.domain.strategy_specs import StrategySpec

__all__ = ["MOST", "MOST_TEXT", "Reading", "read"]

MOST = {"indicators": 50, "entry_conditions": 50, "exit_conditions": 50, "parameters": 100}
MOST_TEXT = 10_000
USUAL = {"indicators": 5, "conditions": 10, "parameters": 15}
USUAL_TEXT = 500

_NAME = re.compile(r"[A-Z][A-Z0-9_]{2,49}")
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Reading:
    """The spec and what is unwise about it, or its problems; and its name, where that is right."""

    spec: StrategySpec | None
    name: str | None
    problems: tuple[Problem, ...]
    warnings: tuple[str, ...]


def read(
    *,
    name: Any,
    description: Any = None,
    reasoning: Any = None,
    indicators: Any,
    entry_conditions: Any,
    exit_conditions: Any,
    parameters: Any,
) -> Reading:
    """Read one spec, whatever was given for its parts; None is what was not given."""
    findings = Findings()
    known_name = _name(findings, name)
    texts = [_text(findings, path, said) for path, said in (("description", description), ("reasoning", reasoning))]
    values = Values(findings, complete=_is_readable(parameters, "parameters"))
    found_parameters = values.declare(_entries(findings, "parameters", parameters))
    parts = Parts(findings, values, complete=_is_readable(indicators, "indicators"))
    found_indicators = parts.indicators(_entries(findings, "indicators", indicators))
    entry = parts.conditions("entry_conditions", _entries(findings, "entry_conditions", entry_conditions))
    leave = parts.conditions("exit_conditions", _entries(findings, "exit_conditions", exit_conditions))
    spec = StrategySpec(
        known_name or "", texts[0], texts[1], tuple(found_indicators), tuple(entry), tuple(leave),
        tuple(found_parameters),
    )  # fmt: skip
    if not findings.problems:
        return Reading(spec, known_name, (), (*findings.warnings, *_warnings(spec, parts.used, values.used)))
    untold = (f"{findings.untold} further problems are not listed",) if findings.untold else ()
    return Reading(None, known_name, tuple(findings.problems), untold)


def _name(findings: Findings, given: Any) -> str | None:
    text = given.strip().upper() if isinstance(given, str) and given.isascii() else ""
    if _NAME.fullmatch(text):
        return text
    said = "is required" if given is None else f"{shown(given)} is no name"
    findings.wrong("name", "name", f"{said}; it has 3 to 50 of A-Z, 0-9 and _, first a letter, such as EMA_PULLBACK")
    return None


def _text(findings: Findings, path: str, given: Any) -> str | None:
    if given is None:
        return None
    if not isinstance(given, str):
        findings.wrong("shape", path, f"must be text, not {kind_of(given)}")
        return None
    text = given.strip()
    if len(text) > MOST_TEXT:
        findings.wrong("shape", path, f"has {len(text)} characters; at most {MOST_TEXT}")
    if found := _UNSTORABLE.search(text):
        findings.wrong("shape", path, f"has a character that cannot be stored, U+{ord(found[0]):04X}; leave it out")
    if path == "description" and USUAL_TEXT < len(text) <= MOST_TEXT:
        findings.warnings.append(f"the description has {len(text)} characters; {USUAL_TEXT} or fewer are read")
    return text or None


def _entries(findings: Findings, part: str, given: Any) -> list[Any]:
    if given is None:
        findings.wrong("shape", part, "is required: a list of objects")
        return []
    if not isinstance(given, list):
        findings.wrong("shape", part, f"must be a list of objects, not {kind_of(given)}")
        return []
    if not given and part != "parameters":
        findings.wrong("shape", part, "must have at least one entry")
    if len(given) > MOST[part]:
        findings.wrong("shape", part, f"has {len(given)} entries; at most {MOST[part]}, so the others were not read")
    return given[: MOST[part]]


def _is_readable(given: Any, part: str) -> bool:
    """Whether what it does not define is defined nowhere; else nothing follows from a name that is not there."""
    return isinstance(given, list) and len(given) <= MOST[part]


def _warnings(spec: StrategySpec, used_ids: set[str], used_parameters: set[str]) -> list[str]:
    conditions = (*spec.entry_conditions, *spec.exit_conditions)
    sizes = {"indicators": len(spec.indicators), "conditions": len(conditions), "parameters": len(spec.parameters)}
    found = [
        f"{size} {part} are many: {USUAL[part]} or fewer generalise better"
        for part, size in sizes.items()
        if size > USUAL[part]
    ]
    if not spec.parameters:
        found.append("there are no parameters, so nothing can be optimised")
    if len(spec.exit_conditions) > 1 and any(one.indicator is None for one in spec.exit_conditions):
        found.append("a stop rule leaves only together with all other exit conditions, as every list is an AND")
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
