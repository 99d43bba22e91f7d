"""The schema of the program that the event spec was written for: `Events` and `BacktestRuns`, everything as text.

It is read through two views that have our names. What they compute is indexed in the file itself where it may be
written; elsewhere the same questions are answered more slowly.
"""

from __future__ import annotations

import sqlite3
from typing import Any

from quantdeck.domain.event_types import CATEGORIES, EVENT_TYPES, SEVERITIES
from quantdeck.sources.events.layout import Layout

__all__ = ["add_indexes", "is_original", "layout"]

_AT = "ifnull(CAST(round((julianday({0}) - 2440587.5) * 86400000) AS INTEGER) * 1000, 0)"
"""A time with or without an offset in whole milliseconds; texts of several forms would not sort."""

_TEXT = "CAST(json_extract({properties}, '$.{0}') AS TEXT)"

_RUNS = """
    CREATE TEMP VIEW runs AS SELECT
        Id AS run, lower(Id) AS run_id, NULL AS strategy, NULL AS parameters, StrategyConfigHash AS config_hash,
        {started} AS started, {ended} AS ended, {created} AS created,
        NULL AS completed, NULL AS failed
    FROM main.BacktestRuns
"""
_EVENTS = """
    CREATE TEMP VIEW events AS SELECT
        Id AS id, EventId AS event_id, RunId AS run, {at} AS at, EventType AS type, Severity AS severity,
        Category AS category, Properties AS properties, ParentEventId AS parent, ValidationErrors AS errors,
        {symbol} AS symbol, {order} AS order_id, {position} AS position_id, {indicator} AS indicator,
        {state} AS state_type, {status} AS order_status
    FROM main.Events
"""
_INDEXES = {
    "quantdeck_by_type": "(RunId, EventType, {at}, Id, Severity, Category)",
    "quantdeck_by_symbol": "(RunId, {symbol}, {at}, Id, EventType) WHERE {symbol} <> ''",
    "quantdeck_by_order": "(RunId, {order}, {at}, Id, EventType) WHERE {order} IS NOT NULL",
    "quantdeck_by_position": "(RunId, {position}, {at}, Id, EventType) WHERE {position} IS NOT NULL",
    "quantdeck_by_indicator": "(RunId, {indicator}, {symbol}, {at}, Id, EventType) WHERE {indicator} IS NOT NULL",
    "quantdeck_by_parent": "(RunId, ParentEventId, {at}, Id, EventType, EventId) WHERE ParentEventId IS NOT NULL",
    "quantdeck_with_errors": "(RunId, {at}, Id) WHERE ValidationErrors IS NOT NULL",
    "quantdeck_positions": "(RunId, {symbol}, {at}, Id) WHERE EventType = 'PositionUpdate'",
    "quantdeck_placed": "(RunId, {at}, Id, EventType, EventId) WHERE {status} = 'Placed'",
    "quantdeck_pnl": "(RunId, {at}, Id) WHERE {state} = 'PnL'",
    "quantdeck_of_orders": "(RunId, {at}, Id, EventType)"
    " WHERE EventType IN ('TradeExecution', 'OrderRejection', 'StateChange') AND {order} IS NOT NULL",
}


def is_original(connection: sqlite3.Connection) -> bool:
    """Whether the file has its two tables."""
    found = connection.execute(
        "SELECT count(*) FROM main.sqlite_master WHERE type = 'table' AND lower(name) IN ('events', 'backtestruns')"
    )
    return bool(found.fetchone()[0] == 2)


def layout(connection: sqlite3.Connection) -> Layout:
    """Make the views on this connection."""
    times = {"started": "StartTime", "ended": "EndTime", "created": "CreatedAt"}
    connection.execute(_RUNS.format(**{name: _AT.format(column) for name, column in times.items()}))
    connection.execute(_EVENTS.format(**_columns(connection)))
    document = _document(connection)
    return Layout(
        types={word: word for word in EVENT_TYPES},
        severities={word: word for word in SEVERITIES},
        categories={word: word for word in CATEGORIES},
        guids=False,
        document=document,
    )


def add_indexes(connection: sqlite3.Connection) -> None:
    """Add what is missing, each by itself: the file's own program writes between them.

    It raises where the file is locked just now or has no room; what has been added is of use already.
    """
    columns = _columns(connection)
    for name in sorted(_INDEXES.keys() - _there(connection)):
        connection.execute(f"CREATE INDEX IF NOT EXISTS {name} ON Events {_INDEXES[name].format(**columns)}")


def _there(connection: sqlite3.Connection) -> set[str]:
    return {name for (name,) in connection.execute("SELECT name FROM main.sqlite_master WHERE type = 'index'")}


def _document(connection: sqlite3.Connection) -> str:
    """An event's properties as SQL that is JSON in every row, or one text that is none would fail every query."""
    (made,) = connection.execute(
        "SELECT sql FROM main.sqlite_master WHERE type = 'table' AND lower(name) = 'events'"
    ).fetchone()
    checked = "json_valid(properties)" in "".join(made.split()).lower()
    return "Properties" if checked else "CASE WHEN json_valid(Properties) THEN Properties ELSE '{}' END"


def _columns(connection: sqlite3.Connection) -> dict[str, Any]:
    properties = _document(connection)

    def text(name: str) -> str:
        return _TEXT.format(name, properties=properties)

    return {
        "at": _AT.format("Timestamp"),
        "symbol": f"ifnull({text('SecuritySymbol')}, '') COLLATE NOCASE",
        "order": text("OrderId"),
        "position": text("PositionId"),
        "indicator": text("IndicatorName"),
        "state": text("StateType"),
        "status": text("OrderStatus"),
    }
