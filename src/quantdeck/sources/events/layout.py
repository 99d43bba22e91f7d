"""What differs between the files that can be read: how words, ids and runs are stored, and what there is beside."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import Any

from quantdeck.domain.event_types import CATEGORIES, EVENT_TYPES, SEVERITIES
from quantdeck.events.ids import guid_bytes, guid_text

__all__ = ["Layout", "own"]


@dataclass(frozen=True, slots=True)
class Layout:
    """A file is read as tables `runs` and `events` with our columns; one of another schema has views for them."""

    types: dict[Any, Any]  # by word, what is stored
    severities: dict[Any, Any]
    categories: dict[Any, Any]
    guids: bool  # ids are sixteen bytes, not text
    hot: bool = False  # there is a column `value`
    counted: bool = False  # there are `counts`
    booked: bool = False  # there are `order_books`
    document: str = "properties"  # them as SQL that is JSON in every row

    @property
    def words(self) -> dict[str, str]:
        """Types as literals for SQL: a partial index is found by literals only."""
        return {kind: repr(stored) for kind, stored in self.types.items()}

    def id_stored(self, guid: str) -> Any:
        return guid_bytes(guid) if self.guids else guid

    def ids_stored(self, guid: str) -> tuple[Any, ...]:
        """How the event of a GUID may be called: another's file has texts, in small letters or capitals."""
        return (guid_bytes(guid),) if self.guids else (guid, guid.upper())

    def id_told(self, stored: Any) -> Any:
        return guid_text(stored) if self.guids and stored is not None else stored


def own(connection: sqlite3.Connection) -> Layout:
    """Our own schema: quantdeck.events.schema."""
    del connection
    return Layout(
        types={word: code for code, word in enumerate(EVENT_TYPES)},
        severities={word: code for code, word in enumerate(SEVERITIES)},
        categories={word: code for code, word in enumerate(CATEGORIES)},
        guids=True,
        hot=True,
        counted=True,
        booked=True,
    )
