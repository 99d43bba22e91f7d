"""Checkpoints of the open orders: the state after every event up to an instant, kept as a run is written."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Sequence

import orjson

from quantdeck.domain.event_state import OrderBook, told
from quantdeck.domain.event_types import EVENT_TYPES
from quantdeck.events.row import Row

__all__ = ["Books", "replay"]

EVERY = 1000
"""Events of orders between one checkpoint and the next, or four times as many as it holds orders."""

_ORDER_TYPES = frozenset({EVENT_TYPES.index("TradeExecution"), EVENT_TYPES.index("OrderRejection"), 4})
_STATE_CHANGE = EVENT_TYPES.index("StateChange")

Told = tuple[int, int, str, str]
"""An event of an order: its time, its type's code, the order, its properties."""

_LATEST = "SELECT at, orders FROM order_books WHERE run = ? ORDER BY at DESC LIMIT 1"
_STALE = "DELETE FROM order_books WHERE run = ? AND at >= ?"
_SINCE = """
    SELECT at, type, order_id, properties FROM events
    WHERE run = ? AND type IN (0, 1, 4) AND order_id IS NOT NULL AND at > ? AND at <= ? ORDER BY at, id
"""
_KEEP = "INSERT INTO order_books (run, at, orders) VALUES (?, ?, ?)"


def replay(book: OrderBook, events: Iterable[Told]) -> OrderBook:
    """Let the book see them, which come in time order; of one instant the placing of orders comes first."""
    together: list[Told] = []
    for event in events:
        if together and event[0] != together[0][0]:
            _see(book, together)
            together = []
        together.append(event)
    _see(book, together)
    return book


def _see(book: OrderBook, together: Sequence[Told]) -> None:
    read = [(kind, order, told(text)) for _, kind, order, text in together]
    if len(read) > 1:
        read.sort(key=lambda event: event[0] != _STATE_CHANGE or event[2].get("OrderStatus") != "Placed")
    for kind, order, properties in read:
        book.see(EVENT_TYPES[kind], order, properties)


class Books:
    """Keeps the checkpoints of the runs that one log writes."""

    def __init__(self, every: int = EVERY) -> None:
        self._every = every
        self._since: Counter[int] = Counter()  # events of orders, by run
        self._due: dict[int, int] = {}

    def keep(self, connection: sqlite3.Connection, rows: Sequence[Row]) -> None:
        """After these rows were written: drop the checkpoints that they make untrue, and add those that are due."""
        spans: dict[int, list[int]] = {}
        for made in rows:
            if made.type in _ORDER_TYPES:
                spans.setdefault(made.run, []).append(made.at)
        for run, times in spans.items():
            connection.execute(_STALE, (run, min(times)))
            self._since[run] += len(times)
            if self._since[run] >= self._due.get(run, self._every):
                self._keep_book(connection, run, max(times) - 1)  # what stands at the last instant may go on

    def _keep_book(self, connection: sqlite3.Connection, run: int, until: int) -> None:
        at, dumped = connection.execute(_LATEST, (run,)).fetchone() or (-(2**63), "[]")
        if until <= at:
            return
        book = replay(OrderBook.load(orjson.loads(dumped)), connection.execute(_SINCE, (run, at, until)))
        connection.execute(_KEEP, (run, until, orjson.dumps(book.dump()).decode()))
        self._since[run], self._due[run] = 0, max(self._every, 4 * len(book.orders))
