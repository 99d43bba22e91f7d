"""What can be wrong with a strategy spec, and how it is said."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Literal

__all__ = ["Findings", "Kind", "Problem", "identifier", "kind_of", "listed", "shown", "unknown"]

Kind = Literal["name", "shape", "indicators", "conditions", "parameters"]

MOST_TOLD = 1000
"""Problems of one spec; nobody repairs more at once, and an answer has an end."""
_MOST_STRANGE = 10
_MOST_NAMES = 30

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_KINDS = {dict: "an object", list: "a list", str: "text", bool: "a truth value", type(None): "null"}

# The same thing in the words of other tools that read specs.
_SYNONYMS = {"value": "threshold", "threshold": "value", "other": "crosses", "crosses": "other"}


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
    untold: int = 0

    def wrong(self, kind: Kind, path: str, message: str) -> None:
        """Add a problem."""
        if len(self.problems) < MOST_TOLD:
            self.problems.append(Problem(path, kind, message))
        else:
            self.untold += 1

    def entry(
        self, kind: Kind, path: str, given: Mapping[Any, Any], keys: tuple[str, ...], aliases: Mapping[str, str]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """What an object says under its canonical keys, and what under any other. Null stands for absent."""
        found: dict[str, Any] = {}
        others: dict[str, Any] = {}
        for key, value in given.items():
            canonical = aliases.get(key, key)
            if canonical in keys:
                self._take(kind, f"{path}.{canonical}", canonical, value, found)
            elif value is not None:
                others[str(key)] = value
        return found, others

    def params(
        self, kind: Kind, path: str, given: Any, others: Mapping[str, Any], takes: Collection[str], owner: str
    ) -> dict[str, Any] | None:
        """The params of a type; None where nothing can be said of them. Those beside `params` count as inside."""
        if not isinstance(given, dict):
            self.wrong(kind, f"{path}.params", f"must be an object, not {kind_of(given)}")
            return None
        found: dict[str, Any] = {}
        said = f"it takes {', '.join(takes)}" if takes else "it takes none"
        for place, held in ((f"{path}.params", given), (path, others)):
            strange = []
            for key, value in held.items():
                if (meant := _meant(key, takes)) in takes:
                    self._take(kind, f"{path}.params.{meant}", meant, value, found)
                elif value is not None:
                    strange.append(str(key)[:40])
            for key in strange[:_MOST_STRANGE]:
                self.wrong(kind, f"{place}.{key}", f"is not a param of {owner}; {said}")
        return found

    def _take(self, kind: Kind, path: str, key: str, value: Any, found: dict[str, Any]) -> None:
        """Two words for one thing are one too many, unless they say the same."""
        if value is None:
            return
        if key in found and not (isinstance(value, str | int | float) and found[key] == value):
            self.wrong(kind, path, "is said twice, and not alike; keep one")
        found.setdefault(key, value)


def _meant(key: Any, takes: Collection[str]) -> Any:
    synonym = _SYNONYMS.get(key)
    return synonym if key not in takes and synonym in takes else key


def identifier(given: Any) -> bool:
    """Whether it can be the name of something."""
    return isinstance(given, str) and _IDENTIFIER.fullmatch(given) is not None


def unknown(what: str, given: Any, known: Iterable[str]) -> str:
    """A sentence that helps to find what was meant."""
    if given is None:
        return f"is required: {what}"
    names = list(known)
    near = get_close_matches(given.upper()[:40], names, n=3, cutoff=0.6) if isinstance(given, str) else []
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(sorted(names))}"
    return f"{shown(given)} is not {what}; {hint}"


def listed(names: Iterable[str]) -> str:
    """Names in a sentence, not too many."""
    found = list(names)
    more = f" and {len(found) - _MOST_NAMES} more" if len(found) > _MOST_NAMES else ""
    return (", ".join(found[:_MOST_NAMES]) or "none") + more


def shown(given: Any) -> str:
    """A value that was given, short enough for a sentence."""
    if isinstance(given, str):
        return repr(given[:40])
    if isinstance(given, float) or (isinstance(given, int) and not isinstance(given, bool) and abs(given) < 2**64):
        return repr(given)
    return kind_of(given)


def kind_of(given: Any) -> str:
    """What JSON calls it."""
    return _KINDS.get(type(given), "a number")
