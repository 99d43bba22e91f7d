"""Slices of events: by type, by entity, with validation errors. Each is ids by an index first, then the rows."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

from quantdeck.domain.event_types import Category, Entity, EventType, Severity
from quantdeck.sources.events import EVER, Event, Found, Slice, Span
from quantdeck.sources.events.layout import Layout

__all__ = ["events_by_id", "in_order_of_writing", "of_entity", "of_type", "told", "with_errors"]

COLUMNS = "e.id, e.event_id, e.at, e.type, e.severity, e.category, e.properties, e.parent, e.errors"

_PAGE = f"""
    SELECT {COLUMNS} FROM (SELECT id AS wanted FROM events WHERE {{which}} ORDER BY at, id LIMIT ? OFFSET ?)
    CROSS JOIN events e ON e.id = wanted ORDER BY e.at, e.id
"""  # noqa: S608 - put together from the literals of this module
_COUNT = "SELECT count(*) FROM events WHERE {which}"
_COUNTED = "SELECT ifnull(sum(events), 0) FROM counts WHERE run = ? AND type = ? AND severity = ifnull(?, severity)"

_ENTITIES: dict[Entity, str] = {
    "OrderId": "order_id = ?",
    "SecuritySymbol": "symbol = ? AND symbol <> ''",
    "PositionId": "position_id = ?",
    "IndicatorName": "indicator = ?",
}

_HAS_ERRORS = "run = ? AND errors IS NOT NULL AND errors NOT IN ('[]', 'null')"
# A log may hold entries that are no objects, and not every program spells the keys as the spec does.
_AS_SEVERE = """
    AND EXISTS (
        SELECT 1 FROM json_each(CASE WHEN json_valid(errors) THEN errors ELSE '[]' END) entry
        WHERE CASE WHEN entry.type = 'object' THEN
            ifnull(json_extract(entry.value, '$.Severity'), json_extract(entry.value, '$.severity'))
        END = ?
    )
"""


def of_type(
    connection: sqlite3.Connection,
    layout: Layout,
    run: Any,
    kind: EventType,
    span: Span,
    page: Slice,
    severity: Severity | None,
    categories: Sequence[Category],
) -> Found:
    which, values = "run = ? AND type = ? AND at BETWEEN ? AND ?", [run, layout.types[kind], *span]
    if severity is not None:
        which, values = f"{which} AND severity = ?", [*values, layout.severities[severity]]
    if categories:
        which = f"{which} AND category IN ({_marks(categories)})"
        values += [layout.categories[category] for category in categories]
    total = None
    if layout.counted and span == EVER and not categories:
        as_severe = None if severity is None else layout.severities[severity]
        (total,) = connection.execute(_COUNTED, (run, layout.types[kind], as_severe)).fetchone()
    return _found(connection, layout, which, values, page, total)


def of_entity(
    connection: sqlite3.Connection,
    layout: Layout,
    run: Any,
    entity: Entity,
    value: str,
    kinds: Sequence[EventType],
    page: Slice,
) -> Found:
    which, values = f"run = ? AND {_ENTITIES[entity]}", [run, value]
    if kinds:
        which = f"{which} AND type IN ({_marks(kinds)})"
        values += [layout.types[kind] for kind in kinds]
    return _found(connection, layout, which, values, page)


def with_errors(connection: sqlite3.Connection, layout: Layout, run: Any, severity: str | None, page: Slice) -> Found:
    if severity is None:
        return _found(connection, layout, _HAS_ERRORS, [run], page)
    return _found(connection, layout, _HAS_ERRORS + _AS_SEVERE, [run, severity], page)


def in_order_of_writing(
    connection: sqlite3.Connection, layout: Layout, run: Any, after: int, limit: int
) -> list[Event]:
    sql = f"SELECT {COLUMNS} FROM events e WHERE +e.run = ? AND e.id > ? ORDER BY e.id LIMIT ?"  # noqa: S608 - likewise
    return _told(layout, connection.execute(sql, (run, after, limit)))


def events_by_id(connection: sqlite3.Connection, layout: Layout, ids: Iterable[int]) -> list[Event]:
    """The events of these rows, in the order of time."""
    sql = f"SELECT {COLUMNS} FROM events e WHERE e.id = ?"  # noqa: S608 - likewise
    rows = [connection.execute(sql, (one,)).fetchone() for one in ids]
    return sorted((told(layout, row) for row in rows), key=lambda event: (event.at, event.id))


def told(layout: Layout, row: tuple[Any, ...]) -> Event:
    """A row of COLUMNS."""
    return _told(layout, [row])[0]


def _told(layout: Layout, rows: Iterable[tuple[Any, ...]]) -> list[Event]:
    kinds, severities, categories = map(_words, (layout.types, layout.severities, layout.categories))
    guid = layout.id_told
    return [
        Event(
            row,
            guid(event_id),
            at,
            kinds.get(kind, kind),
            severities.get(severity, severity),
            categories.get(category, category),
            properties,
            guid(parent),
            errors,
        )
        for row, event_id, at, kind, severity, category, properties, parent, errors in rows
    ]


def _words(stored: dict[Any, Any]) -> dict[Any, Any]:
    return {code: word for word, code in stored.items()}


def _found(
    connection: sqlite3.Connection,
    layout: Layout,
    which: str,
    values: list[Any],
    page: Slice,
    total: int | None = None,
) -> Found:
    if total is None:
        (total,) = connection.execute(_COUNT.format(which=which), values).fetchone()
    if total <= page.offset:
        return Found([], total)
    rows = connection.execute(_PAGE.format(which=which), [*values, page.limit, page.offset])
    return Found(_told(layout, rows), total)


def _marks(values: Sequence[Any]) -> str:
    return ", ".join("?" * len(values))
