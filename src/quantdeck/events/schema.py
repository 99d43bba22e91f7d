"""The schema of our own files, and how one is told from another's."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from importlib.resources import files
from typing import Final

from quantdeck.domain.event_types import EVENT_TYPES, HOT_PATHS, EventType

__all__ = ["APPLICATION_ID", "VERSION", "code", "number_at", "statements"]

APPLICATION_ID: Final = 0x51444556
"""`QDEV`, in the header of each of our files."""
VERSION: Final = 1

_CODES: Final[dict[EventType, int]] = {word: place for place, word in enumerate(EVENT_TYPES)}

_NUMBER = """
    CASE json_type({properties}, {path})
        WHEN 'integer' THEN CAST(json_extract({properties}, {path}) AS REAL)
        WHEN 'real' THEN json_extract({properties}, {path})
        WHEN 'text' THEN
            CASE WHEN json_valid(json_extract({properties}, {path}))
                THEN CASE WHEN json_type(json_extract({properties}, {path})) IN ('integer', 'real')
                    THEN CAST(json_extract({properties}, {path}) AS REAL) END
            END
    END
"""


def code(kind: EventType) -> int:
    """A type as it is stored."""
    return _CODES[kind]


def number_at(path: str, properties: str = "properties") -> str:
    """SQL for the number at a path, NULL where there is none. A numeral is a number; true, lists and words are none.

    Both are SQL themselves: a parameter, a column, an expression.
    """
    return _NUMBER.format(path=path, properties=properties)


def statements() -> Iterator[str]:
    """What makes an empty file one of ours."""
    cases = " ".join(f"WHEN {code(kind)} THEN '{path}'" for kind, path in HOT_PATHS.items())
    written = files(__package__).joinpath("schema.sql").read_text(encoding="utf-8")
    written = written.replace("{value}", number_at(f"CASE type {cases} END"))
    statement = ""
    for line in written.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
    yield f"PRAGMA application_id = {APPLICATION_ID}"
    yield f"PRAGMA user_version = {VERSION}"
