"""A strategy's state at an instant: the latest event of each thing, by one step into an index for each."""

from __future__ import annotations

import sqlite3
from typing import Any

import orjson

from quantdeck.domain import event_state
from quantdeck.domain.event_state import ActiveOrder, Indicator, OrderBook, Pnl, Position
from quantdeck.events.books import replay
from quantdeck.sources.events import PnlSource, State
from quantdeck.sources.events.layout import Layout

__all__ = ["state"]

# Each thing by a step to the next larger one; what comes between is never looked at. The column stands on the left,
# where its collation counts; a + keeps SQLite from the index by type, which would be walked without end.
_SYMBOLS = """
    WITH RECURSIVE held (symbol) AS (
        SELECT min(symbol) FROM events WHERE run = ?1 AND type = {PositionUpdate} AND symbol > ''
        UNION ALL
        SELECT (SELECT min(e.symbol) FROM events e
                WHERE e.run = ?1 AND e.type = {PositionUpdate} AND e.symbol > held.symbol)
        FROM held WHERE held.symbol IS NOT NULL
    )
    SELECT symbol FROM held WHERE symbol IS NOT NULL
"""
_NAMES = """
    WITH RECURSIVE name (indicator) AS (
        SELECT min(indicator) FROM events WHERE run = ?1 AND indicator > ''
        UNION ALL
        SELECT (SELECT min(e.indicator) FROM events e WHERE e.run = ?1 AND e.indicator > name.indicator)
        FROM name WHERE name.indicator IS NOT NULL
    )
    SELECT indicator FROM name WHERE indicator IS NOT NULL
"""
_SYMBOLS_OF_NAME = """
    WITH RECURSIVE seen (symbol) AS (
        SELECT min(symbol) FROM events WHERE run = ?1 AND indicator = ?2
        UNION ALL
        SELECT (SELECT min(e.symbol) FROM events e
                WHERE e.run = ?1 AND e.indicator = ?2 AND e.symbol > seen.symbol)
        FROM seen WHERE seen.symbol IS NOT NULL
    )
    SELECT symbol FROM seen WHERE symbol IS NOT NULL
"""
_POSITION = """
    SELECT properties FROM events
    WHERE run = ?1 AND type = {PositionUpdate} AND symbol = ?3 AND at <= ?2 ORDER BY at DESC, id DESC LIMIT 1
"""
_INDICATOR = """
    SELECT properties FROM events
    WHERE run = ?1 AND indicator = ?3 AND symbol = ?4 AND at <= ?2 AND type = {IndicatorCalculation}
    ORDER BY at DESC, id DESC LIMIT 1
"""
_PNL = """
    SELECT properties FROM events
    WHERE run = ?1 AND state_type = 'PnL' AND at <= ?2 AND +type = {StateChange} ORDER BY at DESC, id DESC LIMIT 1
"""
_BOOK = "SELECT at, orders FROM order_books WHERE run = ? AND at <= ? ORDER BY at DESC LIMIT 1"
_OF_ORDERS = """
    SELECT at, type, order_id, properties FROM events
    WHERE run = ?1 AND type IN ({TradeExecution}, {OrderRejection}, {StateChange}) AND order_id IS NOT NULL
        AND at > ?3 AND at <= ?2
    ORDER BY at, id
"""


def state(
    connection: sqlite3.Connection,
    layout: Layout,
    run: Any,
    at: int,
    symbol: str | None,
    indicators: bool,
    orders: bool,
) -> State:
    asked = _Asked(connection, layout, run, at, symbol)
    positions = asked.positions()
    pnl, source = asked.pnl(positions)
    return State(positions, asked.indicators() if indicators else [], asked.orders() if orders else [], pnl, source)


class _Asked:
    def __init__(self, connection: sqlite3.Connection, layout: Layout, run: Any, at: int, symbol: str | None) -> None:
        self._connection, self._layout, self._run, self._at, self._symbol = connection, layout, run, at, symbol

    def _rows(self, sql: str, *values: Any) -> sqlite3.Cursor:
        return self._connection.execute(sql.format(**self._layout.words), (self._run, *values))

    def _latest(self, sql: str, *values: Any) -> dict[str, Any] | None:
        row = self._rows(sql, self._at, *values).fetchone()
        return None if row is None else event_state.told(row[0])

    def positions(self) -> list[Position]:
        symbols = [row[0] for row in self._rows(_SYMBOLS)] if self._symbol is None else [self._symbol]
        found = (self._latest(_POSITION, symbol) for symbol in symbols)
        return [event_state.position(properties) for properties in found if properties is not None]

    def indicators(self) -> list[Indicator]:
        names = [row[0] for row in self._rows(_NAMES)]
        pairs = [
            (name, symbol)
            for name in names
            for symbol in ([self._symbol] if self._symbol is not None else self._symbols_of(name))
        ]
        found = (self._latest(_INDICATOR, *pair) for pair in pairs)
        return [event_state.indicator(properties) for properties in found if properties is not None]

    def _symbols_of(self, name: str) -> list[str]:
        return [row[0] for row in self._rows(_SYMBOLS_OF_NAME, name)]

    def orders(self) -> list[ActiveOrder]:
        """By when they were placed."""
        since, dumped = -(2**63), "[]"
        if self._layout.booked:
            since, dumped = self._rows(_BOOK, self._at).fetchone() or (since, dumped)
        codes = {stored: code for code, stored in enumerate(self._layout.types.values())}
        events = ((at, codes[kind], order, text) for at, kind, order, text in self._rows(_OF_ORDERS, self._at, since))
        book = replay(OrderBook.load(orjson.loads(dumped)), events)
        wanted = None if self._symbol is None else self._symbol.casefold()
        return [order for order in book.orders.values() if wanted is None or order.symbol.casefold() == wanted]

    def pnl(self, positions: list[Position]) -> tuple[Pnl, PnlSource | None]:
        """Of the whole strategy what it says itself, else the sum of its positions; of one security its position."""
        told = self._latest(_PNL) if self._symbol is None else None
        if told is not None:
            return event_state.pnl_of_state(told), "StateChange"
        return event_state.pnl_of_positions(positions), "PositionUpdate" if positions else None
