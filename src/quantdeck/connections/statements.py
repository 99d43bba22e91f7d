"""SQL with named parameters as each driver wants it, and the values that may go into it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

import orjson

from quantdeck.core.errors import QueryFailed

__all__ = ["Json", "Statement", "checked", "compiled"]


class Statement(NamedTuple):
    """SQL with positional parameters, and what goes into each position."""

    text: str
    parameters: tuple[tuple[str, bool], ...]
    """A name, and whether only the question if its value is NULL is bound."""
    names: frozenset[str]

    def bind(self, values: Mapping[str, Any], convert: Callable[[Any], Any]) -> list[Any]:
        """The values in order, each made fit for the driver."""
        if values.keys() != self.names:
            missing = sorted(self.names - values.keys())
            unknown = sorted(values.keys() - self.names)
            raise TypeError(f"SQL parameters: missing {missing}, unknown {unknown}")
        return [values[name] is None if null else convert(values[name]) for name, null in self.parameters]


# Everything in which a colon or a bracket means something else stands before the parameter.
_TOKEN = re.compile(
    r"""
      '(?:[^']|'')*' | --[^\n]* | /\*.*?\*/ | ::
    | "(?P<alias>(?:[^"\[]|"")+?)[ ]\[\w+\]" | "(?:[^"]|"")*"
    | (?<![\w:]):(?P<name>[A-Za-z_]\w*)(?P<test>\s+IS\s+(?P<negated>NOT\s+)?NULL\b)?
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)


@lru_cache(maxsize=2048)
def compiled(sql: str, mark: str, *, typed_aliases: bool) -> Statement:
    """`sql` with `mark` and a number (`?1`, `$1`) for each name.

    `:x IS NULL` becomes a parameter of its own, a boolean: PostgreSQL refuses to guess the type of
    an `:x` that is only tested. `typed_aliases` keeps the types that SQLite reads from aliases.
    """
    numbers: dict[tuple[str, bool], int] = {}

    def place(found: re.Match[str]) -> str:
        if found["alias"] is not None:
            return found[0] if typed_aliases else f'"{found["alias"]}"'
        if found["name"] is None:
            return found[0]
        null = found["test"] is not None
        number = numbers.setdefault((found["name"], null), len(numbers) + 1)
        if not null:
            return f"{mark}{number}"
        return f"{'NOT ' if found['negated'] else ''}CAST({mark}{number} AS BOOLEAN)"

    text = _TOKEN.sub(place, sql)
    return Statement(text, tuple(numbers), frozenset(name for name, _ in numbers))


_ESCAPED_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")


def checked(value: Any, source: str) -> Any:
    """What both drivers take as it is; an aware datetime is left to them, JSON is bytes in a `Json`."""
    match value:
        case None | bool() | int() | bytes():
            return value
        case str():
            if "\0" in value:
                raise QueryFailed("Text with a NUL character cannot be stored.", source=source)
            return value
        case float():
            return None if math.isnan(value) else value
        case datetime():
            if value.tzinfo is None:
                raise ValueError("a datetime without a time zone cannot be bound")
            return value
        case dict() | list():
            return Json(_encoded(value, source))
    raise TypeError(f"a {type(value).__name__} cannot be bound")


class Json(bytes):
    """A JSON document on its way into a statement."""

    __slots__ = ()


def _encoded(value: Any, source: str) -> bytes:
    try:
        document = orjson.dumps(value)
    except TypeError as e:  # lone surrogates and integers beyond 64 bits, and our own mistakes
        raise QueryFailed("The value cannot be written as JSON.", source=source) from e
    if rb"\u0000" in document and _ESCAPED_NUL.search(document):
        raise QueryFailed("Text with a NUL character cannot be stored.", source=source)
    return document
