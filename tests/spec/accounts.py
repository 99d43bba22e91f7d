"""What accounts for a difference: three lists beside the promises, in docs/spec.

departures.toml   where we differ, and why
not_built.toml    what is still to be built, and the issue it belongs to
proved.toml       promises of behaviour rather than shape, and the test that shows each
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

from tests.spec.difference import Difference
from tests.spec.promised import FOLDER, SPECS

__all__ = ["Account", "Departure", "NotBuilt", "Proved", "departures", "not_built", "proved", "to_write"]

KINDS = ("missing", "differs", "added", "prose")
_SAID = object()


@dataclass(frozen=True, kw_only=True)
class Account:
    """Where it applies: globs, of which `*` passes over dots."""

    spec: str
    tool: str = ""
    field: str = ""

    def __str__(self) -> str:
        return " ".join(part for part in (self.spec, self.tool, self.field) if part)

    def explains(self, difference: Difference) -> bool:
        """Whether it is this difference that it speaks of."""
        named = ((difference.spec, self.spec), (difference.tool, self.tool), (difference.path, self.field))
        return all(fnmatchcase(name, pattern) for name, pattern in named)


@dataclass(frozen=True, kw_only=True)
class Departure(Account):
    """A difference on purpose. Given values make it speak of just these."""

    kind: str
    what: str
    why: str
    promised: Any = field(default=_SAID)
    actual: Any = field(default=_SAID)

    def explains(self, difference: Difference) -> bool:
        return (
            super().explains(difference)
            and self.kind == difference.kind
            and self.promised in (_SAID, difference.promised)
            and self.actual in (_SAID, difference.actual)
        )


@dataclass(frozen=True, kw_only=True)
class NotBuilt(Account):
    """Something that is still missing."""

    issue: int

    def explains(self, difference: Difference) -> bool:
        exact = (difference.spec, difference.tool, difference.path) == (self.spec, self.tool, self.field)
        return exact and difference.kind == "missing"


@dataclass(frozen=True, kw_only=True)
class Proved(Account):
    """Something that no schema shows, and the test (`file::function`) that does."""

    test: str

    def explains(self, difference: Difference) -> bool:
        return super().explains(difference) and difference.kind == "missing"


@cache
def departures() -> tuple[Departure, ...]:
    """Every entry of departures.toml."""
    return tuple(
        Departure(**{key: value for key, value in entry.items() if key != "fields"} | {"field": field})
        for entry in _entries("departures", "departure")
        for field in entry.get("fields", [entry.get("field", "")])
    )


@cache
def not_built() -> tuple[NotBuilt, ...]:
    """Every name in not_built.toml."""
    found: list[NotBuilt] = []
    for entry in _entries("not_built", "not_built"):
        spec, issue = entry["spec"], entry["issue"]
        found += [NotBuilt(spec=spec, tool=name, field="tool", issue=issue) for name in entry.get("tools", ())]
        found += [NotBuilt(spec=spec, field=name, issue=issue) for name in entry.get("facts", ())]
    return tuple(found)


@cache
def proved() -> tuple[Proved, ...]:
    """Every entry of proved.toml."""
    return tuple(Proved(**entry) for entry in _entries("proved", "proved"))


def to_write(difference: Difference) -> str:
    """What to do about a difference that nothing accounts for."""
    where = {"spec": difference.spec, "tool": difference.tool, "field": difference.path}
    entry = "\n".join(f'    {name} = "{value}"' for name, value in where.items() if value)
    advice = (
        f"{difference}\n"
        "  Mend the program; or, where a ruling or an ADR wants it so, add to docs/spec/departures.toml:\n"
        f'    [[departure]]\n{entry}\n    kind = "{difference.kind}"\n    what = "…"\n    why = "…"'
    )
    if difference.kind == "missing":
        place = f'tools = ["{difference.tool}"]' if difference.path == "tool" else f'facts = ["{difference.path}"]'
        advice += f"\n  If it is still to be built, add {place} to its issue's entry in docs/spec/not_built.toml."
        advice += '\n  If it is behaviour, name its test in docs/spec/proved.toml: test = "tests/…/test_….py::test_…"'
    return advice


def _entries(file: str, table: str) -> list[Mapping[str, Any]]:
    contents = tomllib.loads((FOLDER / f"{file}.toml").read_text())
    unknown = contents.keys() - {table}
    if unknown:
        raise ValueError(f"docs/spec/{file}.toml: write [[{table}]], not {', '.join(sorted(unknown))}")
    entries: list[Mapping[str, Any]] = contents.get(table, [])
    for entry in entries:
        if entry["spec"] not in (*SPECS, "*"):
            raise ValueError(f"docs/spec/{file}.toml: there is no spec {entry['spec']!r}")
    return entries
