"""PostgreSQL through asyncpg's pool. Importing this imports the driver (65 ms): do it when configured."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from itertools import repeat
from types import TracebackType
from typing import Any, ClassVar

import asyncpg

from quantdeck.connections.database import Database, Row, document, finished
from quantdeck.connections.statements import Json, Statement, checked, compiled
from quantdeck.core.errors import (
    Busy,
    Denied,
    QueryFailed,
    SourceError,
    Unreachable,
)

__all__ = ["PostgreSQL"]

_MIGRATION_LOCK = 0x7175616E74  # "quant"; any number will do that others do not use
_COMMIT_S = 30
# A cancelled query has this long to end; then its connection is dropped. The request to cancel can
# come before the server has begun, and is lost then: only `statement_s` stops such a query there.
_ROLLBACK_S = 1
_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

# Said in full, because the journal relies on it: after waiting for another's claim it reads that claim.
_TRANSACTION = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
_SNAPSHOT = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"


class PostgreSQL(Database):
    """A server's database. Its schema is made by `quantdeck migrate`, never by the way."""

    source: ClassVar[str] = "postgresql"
    skip_locked: ClassVar[str] = "FOR UPDATE SKIP LOCKED"

    def __init__(
        self,
        dsn: str,
        *,
        min_size: int = 2,
        max_size: int = 10,
        idle_s: float = 300,
        connect_s: float = 5,
        statement_s: float | None = None,
        statement_cache_size: int = 100,
        keep_s: float = 86_400,
    ) -> None:
        """`connect_s` bounds connecting and waiting for a free connection.

        Connections idle for `idle_s` are closed down to `min_size`. Behind PgBouncer in transaction
        mode set `statement_cache_size` to 0 and leave `statement_s` unset: it refuses that setting.
        """
        super().__init__(keep_s=keep_s)
        self._dsn = dsn
        self._min_size, self._max_size = min_size, max_size
        self._idle_s, self._connect_s, self._statement_s = idle_s, connect_s, statement_s
        self._statement_cache_size = statement_cache_size
        self._pool: asyncpg.Pool[asyncpg.Record]

    @asynccontextmanager
    async def migrating(self) -> AsyncIterator[None]:
        """A transaction under the lock that every migration takes.

        CREATE TABLE IF NOT EXISTS alone is no protection: processes that start at once collide in
        the catalogue.
        """
        async with self.transaction():
            await self.execute("SELECT pg_advisory_xact_lock(:number)", number=_MIGRATION_LOCK)
            yield

    async def close(self) -> None:
        """Wait a little for what is under way, then close."""
        self._closed = True
        if self._opening is not None:
            await asyncio.wait({self._opening})
        if self._opened:
            self._opened = False
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._connect_s):
                    await self._pool.close()  # cut short, it drops its connections

    async def _open(self) -> None:
        settings = {"application_name": "quantdeck"}
        if self._statement_s is not None:
            settings["statement_timeout"] = str(round(self._statement_s * 1000))
        with _connecting():
            try:
                async with asyncio.timeout(self._connect_s):
                    self._pool = await asyncpg.create_pool(
                        self._dsn,
                        min_size=self._min_size,
                        max_size=self._max_size,
                        # Since 0.32 asyncpg itself keeps `min_size` of the idle ones.
                        max_inactive_connection_lifetime=self._idle_s,
                        timeout=self._connect_s,
                        statement_cache_size=self._statement_cache_size,
                        server_settings=settings,
                        init=_set_types,
                        reset=_leave_as_it_is,
                    )
            except ValueError as e:
                raise Unreachable(
                    "No connection to PostgreSQL: QUANTDECK_DATABASE is no address like postgresql://user@host/name.",
                    source=self.source,
                ) from e

    # Connections.

    async def _take(self) -> Any:
        if not self._opened:
            await self._ready()
        try:
            with _connecting():
                async with asyncio.timeout(self._connect_s):
                    return await self._pool.acquire()
        except Unreachable as e:
            if isinstance(e.__cause__, TimeoutError) and self._pool.get_size() >= self._max_size:
                raise Unreachable(
                    f"No free connection to PostgreSQL: all {self._max_size} are in use.",
                    source=self.source,
                ) from e
            raise

    async def _give_back(self, connection: Any) -> None:
        # One that died meanwhile is replaced by the pool; what it answered is answered.
        with contextlib.suppress(*_FAILURES):
            await self._pool.release(connection, timeout=_ROLLBACK_S)

    @asynccontextmanager
    async def _own_connection(self) -> AsyncIterator[Any]:
        connection = await self._take()
        try:
            yield connection
        except _Broken as e:
            e.details["outcome"] = "unknown"
            raise
        finally:
            await self._give_back(connection)

    async def _begin(self, *, writes: bool) -> Any:
        try:
            return await self._begin_once(_TRANSACTION if writes else _SNAPSHOT)
        except _Broken:  # nothing has happened yet, so another connection may try
            await self._pool.expire_connections()
            return await self._begin_once(_TRANSACTION if writes else _SNAPSHOT)

    async def _begin_once(self, begin: str) -> Any:
        connection = await self._take()
        try:
            with _our_words:
                await connection.execute(begin)
        except BaseException:
            await finished(self._end(connection, commit=False))
            raise
        return connection

    async def _end(self, connection: Any, *, commit: bool) -> None:
        try:
            with _our_words:
                async with asyncio.timeout(_COMMIT_S if commit else _ROLLBACK_S):
                    said = await connection.execute("COMMIT" if commit else "ROLLBACK")
            if commit and said != "COMMIT":
                raise self._given_up()
        except SourceError as e:
            if isinstance(e, Unreachable):
                with contextlib.suppress(asyncpg.InterfaceError):  # gone already
                    connection.terminate()  # what state it is in, nobody knows
                e.details["outcome"] = "unknown"
            if commit:
                raise
        finally:
            await self._give_back(connection)

    # Statements.

    async def _read(self, sql: str, values: Mapping[str, Any]) -> list[Row]:
        try:
            return await self._read_once(sql, values)
        except _Broken:  # a restart of the server kills every pooled connection
            await self._pool.expire_connections()
            return await self._read_once(sql, values)

    async def _read_once(self, sql: str, values: Mapping[str, Any]) -> list[Row]:
        connection = await self._take()
        try:
            return await self._fetch(connection, sql, values)
        finally:
            await self._give_back(connection)

    async def _fetch(self, connection: Any, sql: str, values: Mapping[str, Any]) -> list[Row]:
        statement = _compiled(sql)
        bound = statement.bind(values, _bound)
        with _our_words:
            found = await connection.fetch(statement.text, *bound)
        names = tuple(found[0].keys()) if found else ()
        return list(map(dict, map(zip, repeat(names), found)))  # of the record itself, dict takes twice as long

    async def _execute(self, connection: Any, sql: str, values: Mapping[str, Any]) -> int:
        statement = _compiled(sql)
        bound = statement.bind(values, _bound)
        with _our_words:
            said = await connection.execute(statement.text, *bound)
        touched = said.rpartition(" ")[2]  # "INSERT 0 1", "UPDATE 3", "CREATE TABLE"
        return int(touched) if touched.isdigit() else 0

    async def _execute_many(self, connection: Any, sql: str, rows: Sequence[Mapping[str, Any]]) -> None:
        statement = _compiled(sql)
        bound = [statement.bind(row, _bound) for row in rows]
        with _our_words:
            await connection.executemany(statement.text, bound)


def _compiled(sql: str) -> Statement:
    return compiled(sql, "$", typed_aliases=False)


def _bound(value: Any) -> Any:
    return checked(value, PostgreSQL.source)


async def _leave_as_it_is(_: Any) -> None:
    """Replaces a round trip per query: nothing of ours changes a session beyond its transaction."""


async def _set_types(connection: Any) -> None:
    async def as_(name: str, form: str, encode: Any, decode: Any) -> None:
        await connection.set_type_codec(name, schema="pg_catalog", format=form, encoder=encode, decoder=decode)

    await as_("jsonb", "binary", _to_jsonb, _from_jsonb)
    await as_("json", "binary", _json_only, document)
    await as_("numeric", "text", str, float)
    await as_("uuid", "text", str, str)
    await as_("timestamp", "tuple", _to_naive, _from_naive)


def _json_only(value: Any) -> bytes:
    if not isinstance(value, Json):
        raise TypeError("a JSON column takes a dict or a list")
    return value


def _to_jsonb(value: Any) -> bytes:
    return b"\1" + _json_only(value)  # the version of the format


def _from_jsonb(stored: bytes) -> Any:
    return document(memoryview(stored)[1:])


def _to_naive(value: datetime) -> tuple[int]:
    return ((value - _EPOCH) // _MICROSECOND,)


def _from_naive(stored: tuple[int]) -> datetime:
    """A TIMESTAMP without a zone is UTC, as in every schema that we meet."""
    return _EPOCH + stored[0] * _MICROSECOND


# Failures in our words.


class _Broken(Unreachable):
    """The connection was lost while something was asked of it."""


_FAILURES = (
    OSError,  # a TimeoutError is one as well
    ValueError,  # an address that cannot be read, and asyncpg's own refusal of a value
    OverflowError,  # a time beyond the years 1 to 9999
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
)
_SCHEMA = "A table or column is missing: the database's schema is not this program's. Run `quantdeck migrate`."
_KINDS: list[tuple[tuple[type[Exception], ...], type[SourceError], str]] = [
    (
        (asyncpg.UndefinedTableError, asyncpg.UndefinedColumnError, asyncpg.InvalidSchemaNameError),
        QueryFailed,
        _SCHEMA,
    ),
    (
        (asyncpg.InsufficientPrivilegeError, asyncpg.ReadOnlySQLTransactionError),
        Denied,
        "PostgreSQL does not grant the right to do this.",
    ),
    (
        (asyncpg.InvalidAuthorizationSpecificationError,),
        Denied,
        "PostgreSQL refused the login.",
    ),
    (
        (asyncpg.InvalidCatalogNameError,),
        QueryFailed,
        "The server has no database of the configured name.",
    ),
    (
        (
            asyncpg.DeadlockDetectedError,
            asyncpg.SerializationError,
            asyncpg.LockNotAvailableError,
        ),
        Busy,
        "The database is busy with other work; try again.",
    ),
    (
        (asyncpg.TooManyConnectionsError, asyncpg.CannotConnectNowError),
        Unreachable,
        "PostgreSQL takes no further connection now.",
    ),
    (
        (
            asyncpg.AdminShutdownError,
            asyncpg.CrashShutdownError,
            asyncpg.IdleInTransactionSessionTimeoutError,
            asyncpg.PostgresConnectionError,
            ConnectionError,
        ),
        _Broken,
        "The connection to PostgreSQL broke before it answered.",
    ),
    (
        (asyncpg.QueryCanceledError,),
        QueryFailed,
        "PostgreSQL broke off the query: statement timeout.",
    ),
    (
        (asyncpg.DiskFullError,),
        QueryFailed,
        "The disk of the database is full.",
    ),
    ((TimeoutError,), Unreachable, "The connection to PostgreSQL timed out."),
    ((OSError,), Unreachable, "No connection to PostgreSQL: it is down or out of reach."),
    (
        (asyncpg.DataError, ValueError, OverflowError),
        QueryFailed,
        "A value does not fit the database's types.",
    ),
    (
        (asyncpg.InterfaceError,),
        _Broken,
        "The connection to PostgreSQL broke before it answered.",
    ),
]
_RULES = {
    asyncpg.UniqueViolationError: "unique",
    asyncpg.ForeignKeyViolationError: "foreign_key",
    asyncpg.CheckViolationError: "check",
    asyncpg.NotNullViolationError: "not_null",
}


@contextmanager
def _connecting() -> Iterator[None]:
    """Nothing was asked yet, so nothing was lost and there is nothing to repeat."""
    try:
        yield
    except _FAILURES as e:
        said = _in_our_words(e)
        if isinstance(said, _Broken):
            said = Unreachable("No connection to PostgreSQL: it is down or out of reach.", source=said.source)
        raise said from e


class _OurWords:
    """A class, which is entered in a fifth of the time that a generator takes: every statement enters it."""

    def __enter__(self) -> None: ...

    def __exit__(self, _: type[BaseException] | None, e: BaseException | None, __: TracebackType | None) -> None:
        if isinstance(e, _FAILURES):
            raise _in_our_words(e) from e


_our_words = _OurWords()


def _in_our_words(e: Exception) -> SourceError:
    source = PostgreSQL.source
    if isinstance(e, asyncpg.IntegrityConstraintViolationError):
        rule = _RULES.get(type(e), "other")
        return QueryFailed("The values break a rule of the table.", source=source, rule=rule)
    for kinds, error, sentence in _KINDS:
        if isinstance(e, kinds):
            return error(sentence, source=source)
    return QueryFailed("The database refused the query.", source=source)
