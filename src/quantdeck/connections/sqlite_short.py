"""Short reads are done where they are asked: the way to a thread and back takes several times as long as they do.

Each gets a budget of SQLite's own steps, about a fifth of a millisecond. One that needs more is broken off and goes to
a thread, and so for a minute does every read of its text; likewise one that was slow for another reason, such as a cold
disk or large values. So the event loop waits no longer than that, but for twice a minute and statement.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

__all__ = ["ShortReads"]

T = TypeVar("T")

_STEPS = 5000
_LARGE_S = 0.001
"""Work of our own in few of its steps: large values."""
_WAITED_S = 0.01
"""Longer than a busy machine keeps us from our turn: a cold or distant disk."""
_IN_A_ROW = 8
_MARKED_S = 60.0
_MOST_MARKED = 1000


class ShortReads:
    """Which statements are short, as far as is known. Every one is, until it shows otherwise."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, worked: Callable[[], float] = time.thread_time
    ) -> None:
        """`worked` is the processor time that this thread has had; both are for tests."""
        self._clock, self._worked = clock, worked
        self._long_until: dict[str, float] = {}
        self._suspects: set[str] = set()
        self._done = 0

    def tried(
        self,
        read: Callable[[sqlite3.Connection, str, Sequence[object]], T],
        connection: sqlite3.Connection,
        sql: str,
        values: Sequence[object],
    ) -> T | None:
        """What it reads, or None where it has to go to a thread."""
        began, began_cpu_s = self._clock(), self._worked()
        until = self._long_until.get(sql)
        if until is not None:
            if began < until:
                return None
            del self._long_until[sql]
        # SQLite counts on from what a statement took the last time it ran, so the first to be heard of says nothing.
        connection.set_progress_handler(iter((0, 1)).__next__, _STEPS)
        try:
            return read(connection, sql, values)
        except (sqlite3.Error, UnicodeEncodeError, OverflowError):
            self._mark(sql)  # too long, locked or wrong: a thread finds out, has the patience, and says it in our words
            return None
        finally:
            connection.set_progress_handler(None, 0)
            self._judge(sql, self._worked() - began_cpu_s, self._clock() - began)

    def in_a_row(self) -> bool:
        """Whether there have been so many that others should have their turn."""
        self._done = (self._done + 1) % _IN_A_ROW
        return not self._done

    def _judge(self, sql: str, worked_s: float, took_s: float) -> None:
        if worked_s < _LARGE_S and took_s < _WAITED_S:
            self._suspects.discard(sql)
        elif sql in self._suspects:
            self._suspects.discard(sql)
            self._mark(sql)
        elif len(self._suspects) < _MOST_MARKED:
            self._suspects.add(sql)  # once can be the collector's turn, or another process's on this core

    def _mark(self, sql: str) -> None:
        while len(self._long_until) >= _MOST_MARKED:
            del self._long_until[next(iter(self._long_until))]
        self._long_until[sql] = self._clock() + _MARKED_S
