"""SQLite: one file, one writer, a few readers, each on a thread for as long as a statement takes.

A statement that finds the file locked has done nothing, so it is repeated after a short random pause,
as an awaitable sleep: the caller's deadline ends it. SQLite's own busy handler would block a thread,
is unfair, and had a worst case of seconds under load where this has milliseconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import random
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar, cast

import orjson

from quantdeck.connections.database import Database, Json, Row, Statement, checked, compiled, finished
from quantdeck.core.errors import Busy, Denied, QueryFailed, SourceError, Unreachable

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable  # brings tempfile and zipfile to a cold start

__all__ = ["SQLite"]

T = TypeVar("T")

_READERS = 4
_PAUSE_S, _LONGEST_PAUSE_S = 0.001, 0.02
_NUDGE_S = 0.002


def _stored(value: datetime) -> str:
    """Fixed width and UTC, so that the order of the texts is the order of the times."""
    return value.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def _read_timestamp(stored: bytes) -> datetime:
    return datetime.fromisoformat(stored.decode())


def _read_boolean(stored: bytes) -> bool:
    return stored != b"0"


# The registry is the process's, not a connection's; only connections that ask for types look at it.
sqlite3.register_converter("TIMESTAMP", _read_timestamp)
sqlite3.register_converter("BOOLEAN", _read_boolean)
sqlite3.register_converter("JSON", orjson.loads)


def _bound(value: Any) -> Any:
    fit = checked(value, SQLite.source)
    if isinstance(fit, datetime):
        return _stored(fit)
    return fit.decode() if isinstance(fit, Json) else fit


class SQLite(Database):
    """A database file, made and migrated on first use."""

    source: ClassVar[str] = "sqlite"

    def __init__(
        self,
        path: Path,
        *,
        groups: Sequence[str | Traversable] = (),
        synchronous: Literal["NORMAL", "FULL"] = "NORMAL",
        busy_s: float = 5,
        keep_s: float = 86_400,
    ) -> None:
        """`groups` are the migrations it is to have. `busy_s` bounds every wait for others.

        NORMAL survives a crash of the process whole, but a power cut may take the last commits;
        FULL does not lose them either.
        """
        super().__init__(keep_s=keep_s)
        self._path = path
        self._groups = groups
        self._synchronous = synchronous
        self._busy_s = busy_s
        # A thread for each connection, so that what is submitted never waits in the queue.
        self._threads = ThreadPoolExecutor(_READERS + 1, thread_name_prefix="quantdeck-sqlite")
        self._writer: sqlite3.Connection | None = None
        self._writing_turn = asyncio.Lock()
        self._reading_turns = asyncio.Semaphore(_READERS)
        self._idle_readers: list[sqlite3.Connection] = []

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

        if self._writer is None:
            await self._patiently(self._connect_writer)
        await migrate(self, self._groups)

    # Connections. A thread that connects keeps what it made here: whoever waits for it may be gone.

    def _connect_writer(self) -> None:
        _make_private(self._path)
        # Several processes that switch a new file to WAL at once can each find it locked.
        self._writer = self._connect("PRAGMA journal_mode = WAL")

    def _connect_reader(self) -> None:
        self._idle_readers.append(self._connect("PRAGMA query_only = ON"))

    def _connect(self, *pragmas: str) -> sqlite3.Connection:
        connection = sqlite3.connect(
            f"{self._path.absolute().as_uri()}?mode=rw",
            uri=True,
            timeout=0,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
            detect_types=sqlite3.PARSE_DECLTYPES | sqlite3.PARSE_COLNAMES,
        )
        try:
            for pragma in pragmas:
                connection.execute(pragma)
            connection.execute(f"PRAGMA synchronous = {self._synchronous}")
            connection.execute("PRAGMA foreign_keys = ON")
        except BaseException:
            connection.close()
            raise
        return connection

    def _connections(self) -> Iterator[sqlite3.Connection]:
        yield from self._idle_readers
        if self._writer is not None:
            yield self._writer

    async def _take(self, *, writes: bool) -> sqlite3.Connection:
        if not self._opened:
            await self._ready()
        if writes:
            await self._await_turn(self._writing_turn)
            return cast("sqlite3.Connection", self._writer)  # opening made it
        await self._await_turn(self._reading_turns)
        try:
            while not self._idle_readers:  # another may have taken the one that was made for us
                await self._patiently(self._connect_reader)
            return self._idle_readers.pop()
        except BaseException:
            self._reading_turns.release()
            raise

    def _give_back(self, connection: sqlite3.Connection) -> None:
        if connection is self._writer:
            self._writing_turn.release()
        else:
            self._idle_readers.append(connection)
            self._reading_turns.release()

    async def _await_turn(self, turn: asyncio.Lock | asyncio.Semaphore) -> None:
        try:
            async with asyncio.timeout(self._busy_s if turn.locked() else None):
                await turn.acquire()
        except TimeoutError as e:
            raise _busy() from e

    @asynccontextmanager
    async def _own_connection(self) -> AsyncIterator[sqlite3.Connection]:
        connection = await self._take(writes=True)
        try:
            yield connection
        finally:
            self._give_back(connection)

    async def _begin(self, *, writes: bool) -> sqlite3.Connection:
        connection = await self._take(writes=writes)
        try:
            await self._patiently(connection.execute, "BEGIN IMMEDIATE" if writes else "BEGIN")
        except BaseException:  # it may have begun when a cancellation arrived
            await finished(self._end(connection, commit=False))
            raise
        return connection

    async def _end(self, connection: sqlite3.Connection, *, commit: bool) -> None:
        try:
            if commit:
                await self._patiently(connection.execute, "COMMIT")
        finally:
            with contextlib.suppress(SourceError):
                if connection.in_transaction:
                    await self._patiently(connection.rollback)
            self._give_back(connection)

    # Statements.

    async def _read(self, sql: str, values: Mapping[str, Any]) -> list[Row]:
        connection = await self._take(writes=False)
        try:
            return await self._fetch(connection, sql, values)
        finally:
            self._give_back(connection)

    async def _fetch(self, connection: sqlite3.Connection, sql: str, values: Mapping[str, Any]) -> list[Row]:
        statement = _compiled(sql)
        # A write that has begun is let finish; on the writer that goes for reads as well.
        stop = None if connection is self._writer else connection.interrupt
        bound = statement.bind(values, _bound)
        return await self._patiently(_fetched, connection, statement.text, bound, stop=stop)

    async def _execute(self, connection: sqlite3.Connection, sql: str, values: Mapping[str, Any]) -> int:
        statement = _compiled(sql)
        bound = statement.bind(values, _bound)
        return await self._patiently(_executed, connection, statement.text, bound)

    async def _execute_many(self, connection: sqlite3.Connection, sql: str, rows: Sequence[Mapping[str, Any]]) -> None:
        statement = _compiled(sql)
        bound = (statement.bind(row, _bound) for row in rows)  # on the thread: it may be long
        await self._patiently(connection.executemany, statement.text, bound)

    async def _patiently(self, work: Callable[..., T], *arguments: Any, stop: Callable[[], None] | None = None) -> T:
        """Do `work`, which does nothing when it finds the file locked, as soon as it is not."""
        give_up, pause = None, _PAUSE_S
        while True:
            try:
                return await self._call(work, *arguments, stop=stop)
            except sqlite3.OperationalError as e:
                if _code(e) not in _LOCKED:
                    raise _in_our_words(e) from e
                now = asyncio.get_running_loop().time()
                give_up = give_up or now + self._busy_s
                if now >= give_up:
                    raise _busy() from e
            except (sqlite3.Error, OSError, UnicodeEncodeError, OverflowError) as e:
                raise _in_our_words(e) from e
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
    found = cursor.fetchall()
    names = [column[0] for column in cursor.description or ()]
    return [dict(zip(names, row, strict=True)) for row in found]


def _executed(connection: sqlite3.Connection, sql: str, values: Sequence[Any]) -> int:
    before = connection.total_changes
    touched = connection.execute(sql, values).rowcount
    # The driver does not count a write that starts with WITH.
    return touched if touched >= 0 else connection.total_changes - before


def _make_private(path: Path) -> None:
    for folder in reversed(path.absolute().parents):
        if not folder.exists():
            folder.mkdir(mode=0o700, exist_ok=True)
    # The log and the shared memory that SQLite puts beside it get the same mode.
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))


# Failures in our words. The low byte of SQLite's code is the kind, the rest says more.

_LOCKED = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_RULES = {
    sqlite3.SQLITE_CONSTRAINT_UNIQUE: "unique",
    sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY: "unique",
    sqlite3.SQLITE_CONSTRAINT_ROWID: "unique",
    sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY: "foreign_key",
    sqlite3.SQLITE_CONSTRAINT_CHECK: "check",
    sqlite3.SQLITE_CONSTRAINT_NOTNULL: "not_null",
}
_READ_ONLY = "The database file may not be written."
_UNOPENED = "No connection to the database: its file cannot be opened."
_FULL = "The disk of the database is full."
_SCHEMA = "A table or column is missing: the database's schema is not this program's. Run `quantdeck migrate`."
_KINDS: dict[int, tuple[type[SourceError], str]] = {
    sqlite3.SQLITE_READONLY: (Denied, _READ_ONLY),
    sqlite3.SQLITE_PERM: (Denied, _READ_ONLY),
    sqlite3.SQLITE_AUTH: (Denied, _READ_ONLY),
    sqlite3.SQLITE_CANTOPEN: (Unreachable, _UNOPENED),
    sqlite3.SQLITE_CORRUPT: (QueryFailed, "The database file is damaged; restore it from a copy."),
    sqlite3.SQLITE_NOTADB: (QueryFailed, "The database file is damaged, or no database at all."),
    sqlite3.SQLITE_FULL: (QueryFailed, _FULL),
    sqlite3.SQLITE_IOERR: (QueryFailed, "The disk of the database failed to read or write."),
    sqlite3.SQLITE_TOOBIG: (QueryFailed, "A value is too large to store."),
}
_FILE_KINDS: dict[int | None, tuple[type[SourceError], str]] = {
    errno.EACCES: (Denied, _READ_ONLY),
    errno.EPERM: (Denied, _READ_ONLY),
    errno.EROFS: (Denied, _READ_ONLY),
    errno.ENOSPC: (QueryFailed, _FULL),
    errno.EDQUOT: (QueryFailed, _FULL),
}


def _code(e: BaseException) -> int:
    return int(getattr(e, "sqlite_errorcode", 0)) & 0xFF


def _busy() -> Busy:
    return Busy("The database is busy with other work; try again.", source=SQLite.source)


def _in_our_words(e: Exception) -> SourceError:
    code = _code(e)
    if code == sqlite3.SQLITE_CONSTRAINT:
        rule = _RULES.get(getattr(e, "sqlite_errorcode", 0), "other")
        return QueryFailed("The values break a rule of the table.", source=SQLite.source, rule=rule)
    if isinstance(e, OSError):
        error, sentence = _FILE_KINDS.get(e.errno, (Unreachable, _UNOPENED))
    elif isinstance(e, (UnicodeEncodeError, OverflowError)):
        error, sentence = QueryFailed, "A value does not fit the database's types."
    elif str(e).startswith("no such"):
        error, sentence = QueryFailed, _SCHEMA
    else:
        error, sentence = _KINDS.get(code, (QueryFailed, "The database refused the query."))
    return error(sentence, source=SQLite.source)
