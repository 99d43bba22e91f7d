"""A SQLite file that is only read, and may be somebody else's: never migrated, never switched, never locked for long.

At most a few connections, each on a thread of its own and lent to one query at a time. A query that its caller has
given up, be it for its deadline, is ended by SQLite's progress handler; meanwhile the caller is gone already.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import sqlite3
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Generic, TypeVar

from quantdeck.connections.sqlite_failures import LOCKED, SOURCE, busy, code, in_our_words
from quantdeck.core.errors import Unreachable

__all__ = ["ReadOnlyFile"]

T = TypeVar("T")
F = TypeVar("F")

_STEPS = 5_000
"""Of SQLite's machine between two looks whether the query is still wanted: a fraction of a millisecond."""
_PAUSE_S, _LONGEST_PAUSE_S = 0.001, 0.02
_CACHE_KIB = 4096


class _Lent(Generic[F]):
    """One thread's connection, and what was found out about the file when it was opened."""

    def __init__(self, connection: sqlite3.Connection, state: tuple[int, ...], frozen: bool, facts: F) -> None:
        self.connection, self.state, self.frozen, self.facts = connection, state, frozen, facts


class ReadOnlyFile(Generic[F]):
    """`prepare` is called with each new connection; what it answers is given to every query on it."""

    def __init__(
        self,
        path: Path,
        prepare: Callable[[sqlite3.Connection], F],
        *,
        connections: int = 4,
        busy_s: float = 5.0,
        require: Callable[[], None] = lambda: None,
    ) -> None:
        """`require` is called before a connection is made and raises where there is nothing to open."""
        self._path = path.absolute()
        self._log = Path(f"{self._path}-wal")
        self._prepare, self._require = prepare, require
        self._busy_s = busy_s
        self._threads = ThreadPoolExecutor(connections, thread_name_prefix="quantdeck-reader")
        self._own = threading.local()
        self._all: set[_Lent[F]] = set()
        self._opening = threading.Lock()  # one at a time: the first may have work to do on the file
        self._closed = False

    async def read(self, query: Callable[[sqlite3.Connection, F], T]) -> T:
        """What the query answers. All that it reads is of one moment."""
        if self._closed:
            raise Unreachable("The database connection was closed.", source=SOURCE)
        unwanted = threading.Event()
        job = self._threads.submit(self._answered, query, unwanted)
        try:
            return await asyncio.wrap_future(job)
        except asyncio.CancelledError:
            unwanted.set()
            raise

    async def close(self) -> None:
        """Wait for what is under way, then close."""
        self._closed = True
        await asyncio.to_thread(self._threads.shutdown, cancel_futures=True)
        for lent in self._all:
            lent.connection.close()

    def _answered(self, query: Callable[[sqlite3.Connection, F], T], unwanted: threading.Event) -> T:
        give_up, pause = time.monotonic() + self._busy_s, _PAUSE_S
        while True:
            try:
                return self._once(query, unwanted)
            except sqlite3.Error as e:
                if code(e) not in LOCKED:
                    raise in_our_words(e) from e
                if time.monotonic() >= give_up or unwanted.is_set():
                    raise busy() from e
            time.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311 - no secret
            pause = min(2 * pause, _LONGEST_PAUSE_S)

    def _once(self, query: Callable[[sqlite3.Connection, F], T], unwanted: threading.Event) -> T:
        lent = self._lent()
        connection = lent.connection
        connection.set_progress_handler(unwanted.is_set, _STEPS)
        try:
            connection.execute("BEGIN")
            answer = query(connection, lent.facts)
        finally:
            connection.set_progress_handler(None, 0)
            with contextlib.suppress(sqlite3.Error):
                connection.rollback()
        if lent.frozen and self._state(frozen=True) != lent.state:  # somebody else could write it after all
            raise busy()
        return answer

    def _lent(self) -> _Lent[F]:
        """This thread's connection, to the file that lies there now."""
        lent: _Lent[F] | None = getattr(self._own, "lent", None)
        if lent is not None:
            if lent.state == self._state(frozen=lent.frozen):
                return lent
            self._own.lent = None
            self._all.discard(lent)
            lent.connection.close()
        with self._opening:
            self._require()
            lent = self._opened()
            self._all.add(lent)
        self._own.lent = lent
        return lent

    def _opened(self) -> _Lent[F]:
        state = self._state(frozen=False)
        connection, frozen = self._connected("mode=ro"), False
        try:
            try:
                connection.execute("PRAGMA schema_version").fetchone()
            except sqlite3.OperationalError as e:
                # A file with a log needs to write beside itself even to be read; without a log it is whole as it is.
                if code(e) not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY) or _size(self._log):
                    raise
                connection.close()
                state = self._state(frozen=True)
                connection, frozen = self._connected("mode=ro&immutable=1"), True
            connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
            return _Lent(connection, state, frozen, self._prepare(connection))
        except BaseException:
            connection.close()
            raise

    def _connected(self, mode: str) -> sqlite3.Connection:
        return sqlite3.connect(
            f"{self._path.as_uri()}?{mode}",
            uri=True,
            timeout=0,
            isolation_level=None,
            check_same_thread=False,  # another thread closes it in the end
            cached_statements=256,
        )

    def _state(self, *, frozen: bool) -> tuple[int, ...]:
        """What changes when another file lies at the path; of a frozen file, when anybody has written it."""
        try:
            found = os.stat(self._path)  # noqa: PTH116 - asked for every query, and Path's is slower
        except OSError:
            return ()
        if not frozen:
            return found.st_dev, found.st_ino
        return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size, _size(self._log)


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0
