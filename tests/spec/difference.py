"""Where a program differs from what was promised, point by point.

Both sides are trees of dicts, the same points under the same keys; a difference is named by its
path. Lists are compared whole, so what is a set is written as a dict of names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

__all__ = ["ANY", "Difference", "Kind", "differences", "tidy"]

Kind = Literal["missing", "differs", "added"]

Tree = Mapping[str, Any]


class _Any:
    def __repr__(self) -> str:
        return "anything"


ANY: Final = _Any()
"""Promised to be there; what it holds is not said."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One point. `tool` is empty where it concerns the whole spec; `path` is `tool` for a whole tool."""

    spec: str
    tool: str
    path: str
    kind: Kind
    promised: Any = None
    actual: Any = None

    def __str__(self) -> str:
        place = " ".join(part for part in (self.spec, self.tool, self.path) if part)
        match self.kind:
            case "missing":
                return f"{place} is missing; promised is {_short(self.promised)}"
            case "added":
                return f"{place} is added; nothing is promised, it is {_short(self.actual)}"
            case "differs":
                return f"{place} differs: promised is {_short(self.promised)}, it is {_short(self.actual)}"


def differences(promised: Any, actual: Any, *, spec: str, tool: str = "", path: str = "") -> Iterator[Difference]:
    """Every point at which `actual` is not as promised, each as high in the tree as it can be named."""
    if promised is ANY:
        return
    if isinstance(promised, Mapping) and isinstance(actual, Mapping):
        for key, value in promised.items():
            here = f"{path}.{key}" if path else str(key)
            if key in actual:
                yield from differences(value, actual[key], spec=spec, tool=tool, path=here)
            else:
                yield Difference(spec, tool, here, "missing", promised=value)
        for key in actual:
            if key not in promised:
                here = f"{path}.{key}" if path else str(key)
                yield Difference(spec, tool, here, "added", actual=actual[key])
    elif not _equal(promised, actual):
        yield Difference(spec, tool, path, "differs", promised, actual)


def tidy(schema: Tree) -> dict[str, Any]:
    """A JSON Schema as such a tree: `required` becomes names, branches are numbered."""
    out: dict[str, Any] = {}
    for key, value in schema.items():
        if key in ("properties", "patternProperties"):
            out[key] = {name: tidy(held) for name, held in value.items()}
        elif key in ("oneOf", "anyOf", "allOf", "prefixItems"):
            out[key] = {str(place): tidy(branch) for place, branch in enumerate(value)}
        elif key in ("items", "additionalProperties") and isinstance(value, Mapping):
            out[key] = tidy(value)
        elif key == "required":
            out[key] = dict.fromkeys(value, True)
        else:
            out[key] = value
    return out


def _equal(promised: Any, actual: Any) -> bool:
    # True is 1 in Python, but not on the wire.
    return isinstance(promised, bool) == isinstance(actual, bool) and bool(promised == actual)


def _short(value: Any, limit: int = 160) -> str:
    text = repr(value)
    return text if len(text) <= limit else f"{text[:limit]}…"
