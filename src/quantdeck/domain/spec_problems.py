"""What can be wrong with a strategy spec, and how it is said."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Literal

from quantdeck.domain.indicator_types import Slot

__all__ = ["Findings", "Kind", "Problem", "identifier", "kind_of", "number", "shown", "unfit", "unknown"]

Kind = Literal["name", "shape", "indicators", "conditions", "parameters"]

MAX_BARS = 100_000

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?")
_KINDS = {dict: "an object", list: "a list", str: "text", bool: "a truth value", type(None): "null"}


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong: where, of which kind, and what to do about it."""

    path: str
    kind: Kind
    message: str


@dataclass(slots=True)
class Findings:
    """What has been found so far. Warnings do not keep a spec from being run."""

    problems: list[Problem] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def wrong(self, kind: Kind, path: str, message: str) -> None:
        """Add a problem."""
        self.problems.append(Problem(path, kind, message))

    def entry(
        self, kind: Kind, path: str, given: Any, keys: tuple[str, ...], aliases: Mapping[str, str]
    ) -> dict[str, Any] | None:
        """An object in its canonical keys; null stands for absent."""
        if not isinstance(given, dict):
            self.wrong(kind, path, f"must be an object with {', '.join(keys)}, not {kind_of(given)}")
            return None
        found: dict[str, Any] = {}
        for key, value in given.items():
            canonical = aliases.get(key, key)
            if canonical not in keys:
                self.wrong(kind, f"{path}.{key[:40]}", f"is not part of this; it takes {', '.join(keys)}")
            elif value is not None and found.setdefault(canonical, value) != value:
                self.wrong(kind, f"{path}.{key[:40]}", f"says something else than {canonical}; keep one of them")
        return found

    def params(self, kind: Kind, path: str, given: Any, takes: Collection[str], owner: str) -> dict[str, Any] | None:
        """The params of a type, without those that it does not take."""
        if not isinstance(given, dict):
            self.wrong(kind, path, f"must be an object, not {kind_of(given)}")
            return None
        for key in [key for key in given if key not in takes]:
            said = f"it takes {', '.join(takes)}" if takes else "it takes none"
            self.wrong(kind, f"{path}.{key[:40]}", f"is not a parameter of {owner}; {said}")
        return {key: value for key, value in given.items() if key in takes and value is not None}


def identifier(given: Any) -> bool:
    """Whether it can be the name of something."""
    return isinstance(given, str) and _IDENTIFIER.fullmatch(given) is not None


def number(given: Any) -> int | float | None:
    """A finite number, also one in quotes; None for anything else."""
    if isinstance(given, str) and len(given) <= 40 and _NUMBER.fullmatch(given.strip()):
        given = float(given)
    if isinstance(given, bool) or not isinstance(given, (int, float)):
        return None
    return given if abs(given) < 1e15 and math.isfinite(given) else None


def unfit(value: float, slot: Slot) -> str | None:
    """Why a number cannot stand there; None if it can."""
    if slot.whole and not (float(value).is_integer() and 1 <= value <= MAX_BARS):
        return f"must be a whole number from 1 to {MAX_BARS}"
    if slot.above is not None and value <= slot.above:
        return f"must be above {slot.above:g}"
    return None


def unknown(what: str, given: Any, known: Mapping[str, Any]) -> str:
    """A sentence that helps to find what was meant."""
    near = get_close_matches(str(given).upper()[:40], known, n=3, cutoff=0.6)
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(sorted(known))}"
    return f"{shown(given)} is not {what}; {hint}"


def shown(given: Any) -> str:
    """A value that was given, short enough for a sentence."""
    if isinstance(given, (dict, list)):
        return kind_of(given)
    return repr(given[:40]) if isinstance(given, str) else repr(given)[:40]


def kind_of(given: Any) -> str:
    """What JSON calls it."""
    return _KINDS.get(type(given), "a number")
