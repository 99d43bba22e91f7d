"""Sums over the numbers at a path: one pass, on the index where the path is its type's hot one."""

from __future__ import annotations

import sqlite3
from math import isfinite, sqrt
from typing import Any

from quantdeck.domain.event_types import HOT_PATHS, EventType
from quantdeck.events.schema import number_at
from quantdeck.sources.events import Span, Totals
from quantdeck.sources.events.layout import Layout

__all__ = ["totals"]

_WHICH = "run = :run AND type = :type AND at BETWEEN :start AND :end"
_HOT = f"(SELECT value AS v FROM events WHERE {_WHICH})"  # noqa: S608 - literals of this module, as all here
# LIMIT keeps SQLite from merging this into what is around it, which would look for the number seven times an event.
_AT_PATH = f"(SELECT {number_at(':path', '{document}')} AS v FROM events WHERE {_WHICH} LIMIT -1)"  # noqa: S608
# A numeral such as 1e999 is infinite and would swallow all others.
_FINITE = (
    "(SELECT CASE WHEN v BETWEEN -1.7976931348623157e308 AND 1.7976931348623157e308 THEN v END AS v FROM {} LIMIT -1)"
)
_FIRST = "SELECT v FROM {} WHERE v IS NOT NULL LIMIT 1"
_SUMS = "SELECT count(*), count(v), sum(v), min(v), max(v) FROM {}"
_ALL = "SELECT count(*), count(v), sum(v), min(v), max(v), total(v - :near), total((v - :near) * (v - :near)) FROM {}"


def totals(
    connection: sqlite3.Connection,
    layout: Layout,
    run: Any,
    kind: EventType,
    path: str,
    span: Span,
    deviation: bool,
) -> Totals:
    hot = layout.hot and HOT_PATHS.get(kind) == path
    values = {"run": run, "type": layout.types[kind], "start": span.start, "end": span.end, "path": path}
    numbers = _HOT if hot else _AT_PATH.format(document=layout.document)
    found = _summed(connection, numbers, values, deviation)
    if found.values and not all(isfinite(edge) for edge in (found.least, found.most) if edge is not None):
        found = _summed(connection, _FINITE.format(numbers), values, deviation)
    return found


def _summed(connection: sqlite3.Connection, numbers: str, values: dict[str, Any], deviation: bool) -> Totals:
    if not deviation:
        events, count, total, least, most = connection.execute(_SUMS.format(numbers), values).fetchone()
        return Totals(events, count, _finite(total), _finite(total / count) if count else None, least, most, None)
    # Squares are summed around a value of the data: around nothing they lose every digit where the mean is large.
    first = connection.execute(_FIRST.format(numbers), values).fetchone()
    near = 0.0 if first is None else first[0]
    row = connection.execute(_ALL.format(numbers), {**values, "near": near}).fetchone()
    events, count, total, least, most, away, squares = row
    if not count:
        return Totals(events, 0, None, None, None, None, None)
    mean = _finite(near + away / count) if isfinite(away) else _finite(total / count)
    variance = (squares - away * away / count) / count if isfinite(squares) and isfinite(away) else None
    spread = None if variance is None or not isfinite(variance) else sqrt(max(variance, 0.0))
    return Totals(events, count, _finite(total), mean, least, most, spread)


def _finite(value: float | None) -> float | None:
    return value if value is not None and isfinite(value) else None
