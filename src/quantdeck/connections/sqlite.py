"""SQLite: one file, one writer, a few readers, on threads for as long as a statement takes; a short read needs none.

A statement that finds the file locked has done nothing, so it is repeated after a short random pause,
as an awaitable sleep: the caller's deadline ends it. SQLite's own busy handler would block a thread,
is unfair, and had a worst case of seconds under load where this has milliseconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

from quantdeck.connections.database import Database, Row, finished
from quantdeck.connections.sqlite_failures import LOCKED, SOURCE, ReadOnly, busy, code, in_our_words, read_only
from quantdeck.connections.sqlite_short import ShortReads
from quantdeck.connections.sqlite_values import bound
from quantdeck.connections.statements import Statement, compiled
from quantdeck.core.errors import QueryFailed, SourceError, Unreachable

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable  # brings tempfile and zipfile to a cold start

__all__ = ["SQLite"]

T = TypeVar("T")

_READERS = 4
_PAUSE_S, _LONGEST_PAUSE_S = 0.001, 0.02
_NUDGE_S = 0.002
_PAGES_KIB = 8 * 1024
"""Of pages a connection keeps at most: SQLite's own 2 MiB are less than the index that a count of 50,000 rows walks."""


class _Connection(sqlite3.Connection):
    """One that knows what it is for, and at which opening of the file it was made."""

    writes = False
    opening = 0


class SQLite(Database):
    """A database file, migrated when it is opened, and opened anew when another one lies in its place.

    What may be read but not written is read as it is, and not migrated.
    """

    source: ClassVar[str] = SOURCE

    def __init__(
        self,
        path: Path,
        *,
        groups: Sequence[str | Traversable] = (),
        synchronous: Literal["NORMAL", "FULL"] = "NORMAL",
        busy_s: float = 5,
        keep_s: float = 86_400,
        require: Callable[[], None] | None = None,
        page_bytes: int | None = None,
    ) -> None:
        """`groups` are the migrations it is to have. `busy_s` bounds every wait for others.

        NORMAL survives a crash of the process whole, but a power cut may take the last commits;
        FULL does not lose them either. `require` is called before each opening and raises where there
        is nothing to open yet; without it the file is made. `page_bytes` counts for a file that is made.
        """
        super().__init__(keep_s=keep_s)
        self._path = path.absolute()
        self._log = Path(f"{self._path}-wal")
        self._groups = groups
        self._synchronous = synchronous
        self._busy_s = busy_s
        self._require = require
        self._page = f"PRAGMA page_size = {page_bytes or 4096}"
        # A thread for each connection, so that what is submitted never waits in the queue.
        self._threads = ThreadPoolExecutor(_READERS + 1, thread_name_prefix="quantdeck-sqlite")
        self._writer: _Connection | None = None
        self._writing_turn = asyncio.Lock()
        self._reading_turns = asyncio.Semaphore(_READERS)
        self._idle_readers: list[_Connection] = []
        self._short = ShortReads()
        self._openings = 0
        self._frozen = False  # read without locks and without a log, because it cannot be written
        self._seen: tuple[int, ...] = ()

    async def close(self) -> None:
        """Wait for what is under way, then close."""
        self._closed = True
        if self._opening is not None:
            await asyncio.wait({self._opening})
        self._opened = False
        async with contextlib.AsyncExitStack() as turns:
            await turns.enter_async_context(self._writing_turn)
            for _ in range(_READERS):
                await turns.enter_async_context(self._reading_turns)
            for connection in self._connections():
                await self._call(connection.close)
            self._idle_readers.clear()
            self._writer = None
        self._threads.shutdown(wait=False)

    async def _open(self) -> None:
        from quantdeck.migrations import migrate  # it is written in terms of us

        self._let_go()
        if self._require is not None:
            self._require()
        try:
            await self._patiently(self._connect_writer)
        except (ReadOnly, Unreachable):
            if not _is_file(self._path):
                raise
            await self._open_for_reading()
        else:
            await migrate(self, self._groups)

    def _let_go(self) -> None:
        """Close what was opened before. What is in use closes when it is given back."""
        self._openings += 1
        self._frozen = False
        for connection in self._idle_readers:
            self._retire(connection)
        self._idle_readers.clear()
        if self._writer is not None and not self._writing_turn.locked():
            self._retire(self._writer)
        self._writer = None

    async def _open_for_reading(self) -> None:
        """What cannot be written cannot get a log; without one the file is whole, and read as it is."""
        self._frozen = not _size(self._log)
        self._seen = self._state()
        await self._patiently(self._connect_reader)

    def _retire(self, connection: _Connection) -> None:
        self._threads.submit(connection.close)

    def _state(self) -> tuple[int, ...]:
        """What changes when another file lies at the path; of a frozen file, when anybody has written it."""
        try:
            found = self._path.stat()
        except OSError:
            return ()
        if not self._frozen:
            return found.st_dev, found.st_ino
        return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size, _size(self._log)

    def _check_place(self, connection: _Connection) -> None:
        """A commit to a file that has no name any more would be lost without a word."""
        if connection.writes and (connection.opening != self._openings or self._state() != self._seen):
            raise Unreachable(
                "The connection to the database is stale: its file was removed or exchanged meanwhile, and nothing "
                "of this is stored.",
                source=SOURCE,
            )

    # Connections. A thread that connects keeps what it made here: whoever waits for it may be gone.

    def _connect_writer(self) -> None:
        _make_private(self._path, make=self._require is None)
        self._seen = self._state()  # of what is there now, or earlier: what comes later is noticed
        # Several processes that switch a new file to WAL at once can each find it locked.
        writer = self._connect("mode=rw", self._page, "PRAGMA journal_mode = WAL")
        writer.writes = True
        self._writer = writer

    def _connect_reader(self) -> None:
        if self._writer is not None:
            reader = self._connect("mode=rw", "PRAGMA query_only = ON")
        else:  # the pragma reads, so that what cannot be read fails here
            reader = self._connect("mode=ro&immutable=1" if self._frozen else "mode=ro", "PRAGMA schema_version")
        self._idle_readers.append(reader)

    def _connect(self, mode: str, *pragmas: str) -> _Connection:
        opening = self._openings
        connection = sqlite3.connect(
            f"{self._path.as_uri()}?{mode}",
            uri=True,
            timeout=0,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
            detect_types=sqlite3.PARSE_DECLTYPES | sqlite3.PARSE_COLNAMES,
            factory=_Connection,
        )
        connection.opening = opening
        try:
            for pragma in pragmas:
                connection.execute(pragma)
            connection.execute(f"PRAGMA synchronous = {self._synchronous}")
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute(f"PRAGMA cache_size = -{_PAGES_KIB}")
        except BaseException:
            connection.close()
            raise
        return connection

    def _connections(self) -> Iterator[_Connection]:
        yield from self._idle_readers
        if self._writer is not None:
            yield self._writer

    async def _take(self, *, writes: bool) -> _Connection:
        if self._opened and (self._state() != self._seen or (writes and self._writer is None)):
            self._opened = False
        if not self._opened:
            await self._ready()
        if writes:
            return await self._take_writer()
        await self._await_turn(self._reading_turns)
        try:
            while True:
                while not self._idle_readers:  # another may have taken the one that was made for us
                    await self._patiently(self._connect_reader)
                connection = self._idle_readers.pop()
                if connection.opening == self._openings:
                    return connection
                self._retire(connection)
        except BaseException:
            self._reading_turns.release()
            raise

    async def _take_writer(self) -> _Connection:
        await self._await_turn(self._writing_turn)
        if self._writer is None:
            self._writing_turn.release()
            raise read_only()
        return self._writer

    def _give_back(self, connection: _Connection) -> None:
        if connection.opening != self._openings:
            self._retire(connection)
        elif not connection.writes:
            self._idle_readers.append(connection)
        (self._writing_turn if connection.writes else self._reading_turns).release()

    async def _await_turn(self, turn: asyncio.Lock | asyncio.Semaphore) -> None:
        if not turn.locked():
            await turn.acquire()  # at once, so it needs no clock
            return
        try:
            async with asyncio.timeout(self._busy_s):
                await turn.acquire()
        except TimeoutError as e:
            raise busy() from e

    @asynccontextmanager
    async def _own_connection(self) -> AsyncIterator[_Connection]:
        connection = await self._take(writes=True)
        try:
            yield connection
        finally:
            self._give_back(connection)

    async def _begin(self, *, writes: bool) -> _Connection:
        connection = await self._take(writes=writes)
        try:
            if writes:
                await self._patiently(_executed, connection, "BEGIN IMMEDIATE")
            else:
                connection.execute("BEGIN")  # which does nothing yet
        except BaseException:  # it may have begun when a cancellation arrived
            await finished(self._end(connection, commit=False))
            raise
        return connection

    async def _end(self, connection: _Connection, *, commit: bool) -> None:
        try:
            if commit:
                self._check_place(connection)
                if connection.writes:
                    await self._patiently(_executed, connection, "COMMIT")
        finally:
            with contextlib.suppress(SourceError):
                if connection.in_transaction and connection.writes:
                    await self._patiently(connection.rollback)
                elif connection.in_transaction:
                    connection.rollback()  # of a read: it lets go of what it saw
            self._give_back(connection)

    # Statements.

    async def _read(self, sql: str, values: Mapping[str, Any]) -> list[Row]:
        connection = await self._take(writes=False)
        try:
            return await self._fetch(connection, sql, values)
        finally:
            self._give_back(connection)

    async def _fetch(self, connection: _Connection, sql: str, values: Mapping[str, Any]) -> list[Row]:
        statement = _compiled(sql)
        # A write that has begun is let finish; on the writer that goes for reads as well.
        stop = None if connection.writes else connection.interrupt
        fit = statement.bind(values, bound)
        found = None if connection.writes else self._short.tried(_fetched, connection, statement.text, fit)
        if found is None:
            found = await self._patiently(_fetched, connection, statement.text, fit, stop=stop)
        elif self._short.in_a_row():  # who reads on and on must not keep the others from their turn
            await asyncio.sleep(0)
        if self._frozen and self._state() != self._seen:  # somebody else could write it after all
            raise busy()
        return found

    async def _execute(self, connection: _Connection, sql: str, values: Mapping[str, Any]) -> int:
        statement = _compiled(sql)
        fit = statement.bind(values, bound)
        return await self._patiently(_executed, connection, statement.text, fit)

    async def _execute_many(self, connection: _Connection, sql: str, rows: Sequence[Mapping[str, Any]]) -> None:
        statement = _compiled(sql)
        fit = (statement.bind(row, bound) for row in rows)  # on the thread: it may be long
        await self._patiently(_executed_many, connection, statement.text, fit)

    async def _patiently(self, work: Callable[..., T], *arguments: Any, stop: Callable[[], None] | None = None) -> T:
        """Do `work`, which does nothing when it finds the file locked, as soon as it is not."""
        give_up, pause = None, _PAUSE_S
        while True:
            try:
                return await self._call(work, *arguments, stop=stop)
            except sqlite3.OperationalError as e:
                if code(e) not in LOCKED:
                    raise in_our_words(e) from e
                now = asyncio.get_running_loop().time()
                give_up = give_up or now + self._busy_s
                if now >= give_up:
                    raise busy() from e
            except (sqlite3.Error, OSError, UnicodeEncodeError, OverflowError) as e:
                raise in_our_words(e) from e
            await asyncio.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311 - no secret
            pause = min(2 * pause, _LONGEST_PAUSE_S)

    async def _call(self, work: Callable[..., T], *arguments: Any, stop: Callable[[], None] | None = None) -> T:
        """Work on a thread. When cancelled it ends before we do, since its connection is reused."""
        job = self._threads.submit(work, *arguments)
        try:
            return await asyncio.wrap_future(job)
        except asyncio.CancelledError:
            await _ended(job, stop)
            raise


async def _ended(job: Future[Any], stop: Callable[[], None] | None) -> None:
    outcome = asyncio.wrap_future(job)
    while not outcome.done():
        if stop is not None:
            stop()  # again and again: before its statement has begun, it stops nothing
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait({outcome}, timeout=None if stop is None else _NUDGE_S)
    if not outcome.cancelled():
        outcome.exception()


def _compiled(sql: str) -> Statement:
    return compiled(sql, "?", typed_aliases=True)


def _fetched(connection: sqlite3.Connection, sql: str, values: Sequence[Any]) -> list[Row]:
    cursor = connection.execute(sql, values)
    try:
        names = [column[0] for column in cursor.description or ()]
        return list(map(dict, map(zip, repeat(names), cursor.fetchall())))  # a third faster than to say it in words
    except (ValueError, OverflowError) as e:
        raise QueryFailed("A stored value is not of its column's type.", source=SOURCE) from e
    finally:
        cursor.close()  # one that is left halfway keeps the connection in its past


# A cursor never leaves its thread: while one is alive, closing its connection leaves the file open.


def _executed(connection: sqlite3.Connection, sql: str, values: Sequence[Any] = ()) -> int:
    before = connection.total_changes
    with contextlib.closing(connection.execute(sql, values)) as cursor:
        # The driver does not count a write that starts with WITH.
        return cursor.rowcount if cursor.rowcount >= 0 else connection.total_changes - before


def _executed_many(connection: sqlite3.Connection, sql: str, rows: Iterable[Sequence[Any]]) -> None:
    connection.executemany(sql, rows).close()


def _make_private(path: Path, *, make: bool) -> None:
    for folder in reversed(path.parents) if make else ():
        if not folder.exists():
            folder.mkdir(mode=0o700, exist_ok=True)
    # The log and the shared memory that SQLite puts beside it get the same mode.
    os.close(os.open(path, os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if make else 0), 0o600))


def _is_file(path: Path) -> bool:
    return os.path.isfile(path)  # noqa: PTH113 - unlike Path's it never raises


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0
