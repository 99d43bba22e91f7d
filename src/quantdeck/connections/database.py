"""The relational seam: one SQL text for SQLite and PostgreSQL.

SQL is written in the subset that both speak (`ON CONFLICT`, `RETURNING`, window functions, recursive
CTEs) with named parameters, `:name`; `statements.compiled` makes of it what each driver takes.

Values in    str, int, float, bool, bytes, None; an aware datetime (a naive one is a ValueError);
             a dict or list, which becomes JSON. NaN becomes NULL. An unknown or missing name is a
             TypeError. Text with a NUL character is refused by both engines alike.
Values out   the same on both: float for every inexact number, str for a UUID, an aware UTC datetime,
             bool, and Python objects for JSON, their keys sorted.

SQLite knows a type only where a column is selected directly (subqueries, views, CTEs and RETURNING
included). What an expression computes needs its type in the alias, which PostgreSQL does not see:

    SELECT max(created_at) AS "latest [TIMESTAMP]", bool_column AND x > 0 AS "due [BOOLEAN]"

Or pass such a value through `moment`. Where else the two differ:

- ORDER BY text: declare the column {text}, or PostgreSQL sorts by its locale.
- ORDER BY with nulls: write NULLS LAST (or FIRST).
- LIKE ignores case in SQLite only: compare lower(x) with lower(:y).
- sum() of an {int} column is a float on PostgreSQL: CAST(sum(x) AS BIGINT).
- PostgreSQL must be able to tell a parameter's type. `column = :x` suffices; `SELECT :x` does not:
  CAST(:x AS TEXT). The usual `(:x IS NULL OR column = :x)` needs nothing, `compiled` sees to it.
  One name stands for one type: what goes into a float and a numeric column has two names.
- A UUID is compared as lower-case text in SQLite: bind it in canonical form.
- A list to choose from is a JSON matter on one side and an array on the other: ask once per item.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any, ClassVar, TypeVar

import orjson

from quantdeck.core.errors import QueryFailed, Unreachable
from quantdeck.core.once import Conflict, Recorded, Slot

__all__ = ["Database", "Row", "SqlJournal", "document", "finished", "moment"]

Row = dict[str, Any]
T = TypeVar("T")


def moment(value: datetime | str | None) -> datetime | None:
    """A computed timestamp, as either engine hands it over, in UTC."""
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    if value is None or value.tzinfo is None:
        return value if value is None else value.replace(tzinfo=UTC)
    return value.astimezone(UTC)


def document(stored: bytes | memoryview) -> Any:
    """JSON as either engine hands it over, with its keys sorted: JSONB has forgotten their order."""
    return orjson.loads(orjson.dumps(orjson.loads(stored), option=orjson.OPT_SORT_KEYS))


@dataclass(slots=True, eq=False)
class Block:
    """A snapshot or transaction that is open, and the one connection that it lives on."""

    connection: Any
    writes: bool
    open: bool = True
    failed: bool = False
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)


_blocks: ContextVar[Mapping[Database, Block]] = ContextVar("quantdeck_blocks", default=MappingProxyType({}))


class Database(ABC):
    """One database. Nothing is opened before the first use; a first use that fails can be repeated.

    Inside `snapshot` and `transaction` every call uses their connection: calls of the same task and
    of tasks that it started meanwhile (`wait_for` and `shield` start one, unseen). They take turns.
    A task that outlives its block is outside again.
    """

    source: ClassVar[str]
    """What answers report."""
    skip_locked: ClassVar[str] = ""
    """Ends a subquery that picks rows to delete, where several writers may pick at once."""

    def __init__(self, *, keep_s: float) -> None:
        self.journal = SqlJournal(self, keep_s)
        self._opened = False
        self._closed = False
        self._opening: asyncio.Task[None] | None = None

    async def rows(self, sql: str, /, **values: Any) -> list[Row]:
        """All rows of a read, which may be repeated if its connection turns out dead."""
        block = self._block()
        if block is None:
            return await self._read(sql, values)
        async with self._turn(block) as connection:
            return await self._fetch(connection, sql, values)

    async def row(self, sql: str, /, **values: Any) -> Row | None:
        """The first row. All are fetched: say LIMIT 1 where there may be more."""
        found = await self.rows(sql, **values)
        return found[0] if found else None

    async def execute(self, sql: str, /, **values: Any) -> int:
        """Write, alone or in the open transaction; how many rows it touched."""
        async with self._writing() as connection:
            return await self._execute(connection, sql, values)

    async def returning(self, sql: str, /, **values: Any) -> list[Row]:
        """Write as `execute` does, and answer what RETURNING says."""
        async with self._writing() as connection:
            return await self._fetch(connection, sql, values)

    async def execute_many(self, sql: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write all of `rows` or none."""
        async with self.transaction(), self._writing() as connection:
            await self._execute_many(connection, sql, rows)

    def snapshot(self) -> AbstractAsyncContextManager[None]:
        """Reads that see one moment, that of the first. Inside a transaction: just that transaction."""
        return self._within(writes=False)

    def transaction(self) -> AbstractAsyncContextManager[None]:
        """Writes that happen together or not at all. A nested one joins.

        A statement or nested block that failed takes all with it, even if its error was caught:
        otherwise PostgreSQL would answer a COMMIT with a silent rollback, and SQLite keep the rest.
        """
        return self._within(writes=True)

    @asynccontextmanager
    async def migrating(self) -> AsyncIterator[None]:
        """A transaction that no other process's migration overlaps."""
        async with self.transaction():
            yield

    async def ping(self) -> None:
        """Return if the database answers."""
        await self.rows("SELECT 1 AS up")

    @abstractmethod
    async def close(self) -> None:
        """Close every connection. There is no way back."""

    # What a driver supplies. Each raises our errors only.

    @abstractmethod
    async def _open(self) -> None: ...

    @abstractmethod
    async def _read(self, sql: str, values: Mapping[str, Any]) -> list[Row]: ...

    @abstractmethod
    def _own_connection(self) -> AbstractAsyncContextManager[Any]:
        """A connection for one write outside a transaction."""

    @abstractmethod
    async def _fetch(self, connection: Any, sql: str, values: Mapping[str, Any]) -> list[Row]: ...

    @abstractmethod
    async def _execute(self, connection: Any, sql: str, values: Mapping[str, Any]) -> int: ...

    @abstractmethod
    async def _execute_many(self, connection: Any, sql: str, rows: Sequence[Mapping[str, Any]]) -> None: ...

    @abstractmethod
    async def _begin(self, *, writes: bool) -> Any:
        """A connection with a transaction open on it."""

    @abstractmethod
    async def _end(self, connection: Any, *, commit: bool) -> None:
        """End the transaction and give the connection back, whatever happens. A failing rollback is silent."""

    # What they share.

    async def _ready(self) -> None:
        """Open once. Callers that arrive meanwhile share the attempt, and its failure."""
        if self._closed:
            raise Unreachable("The database connection was closed.", source=self.source)
        # The attempt itself passes: SQLite migrates while it opens, by way of our own methods.
        if self._opened or asyncio.current_task() is self._opening:
            return
        if self._opening is None:
            self._opening = asyncio.create_task(self._open())
            self._opening.add_done_callback(self._opening_done)
        await asyncio.shield(self._opening)

    def _opening_done(self, attempt: asyncio.Task[None]) -> None:
        self._opening = None
        # Asking for the exception also says that somebody looked, should every caller be gone.
        self._opened = not attempt.cancelled() and attempt.exception() is None

    def _block(self) -> Block | None:
        block = _blocks.get().get(self)
        return block if block is not None and block.open else None

    @asynccontextmanager
    async def _turn(self, block: Block) -> AsyncIterator[Any]:
        async with block.turn:
            if block.failed:
                raise self._given_up()
            try:
                yield block.connection
            except BaseException:
                block.failed = True
                raise

    def _writing(self) -> AbstractAsyncContextManager[Any]:
        block = self._block()
        if block is None:
            return self._own_connection()
        if not block.writes:
            raise RuntimeError("a write inside a snapshot")
        return self._turn(block)

    @asynccontextmanager
    async def _within(self, *, writes: bool) -> AsyncIterator[None]:
        outer = self._block()
        if outer is None:
            async with self._new_block(writes=writes):
                yield
            return
        if writes and not outer.writes:
            raise RuntimeError("a transaction inside a snapshot")
        try:
            yield
        except BaseException:
            outer.failed = True
            raise

    @asynccontextmanager
    async def _new_block(self, *, writes: bool) -> AsyncIterator[None]:
        block = Block(await self._begin(writes=writes), writes)
        before = _blocks.get()
        _blocks.set({**before, self: block})
        commit = False
        try:
            yield
            commit = not block.failed
        finally:
            _blocks.set(before)
            await finished(self._leave(block, commit=commit))
        if writes and not commit:
            raise self._given_up()

    async def _leave(self, block: Block, *, commit: bool) -> None:
        block.open = False
        async with block.turn:  # a statement of a task that outlived the block is let finish
            await self._end(block.connection, commit=commit)

    def _given_up(self) -> QueryFailed:
        return QueryFailed(
            "An earlier statement of this transaction failed, so nothing of it is stored.",
            source=self.source,
        )


async def finished(work: Awaitable[T]) -> T:
    """The outcome of work that a cancellation must not break off; it is raised when the work is done."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as e:
            cancelled = e
    if cancelled is not None:
        if not task.cancelled():
            task.exception()  # looked at, or asyncio would complain that nobody did
        raise cancelled
    return task.result()


_CLAIM = """
    INSERT INTO idempotency_keys (scope, key, fingerprint, answer, created_at)
    VALUES (:scope, :key, :fingerprint, NULL, :now)
    ON CONFLICT (scope, key) DO UPDATE
        SET fingerprint = excluded.fingerprint, answer = NULL, created_at = excluded.created_at
        WHERE idempotency_keys.created_at < :expired
    RETURNING key
"""
_FIND = "SELECT fingerprint, answer FROM idempotency_keys WHERE scope = :scope AND key = :key"
_STORE = "UPDATE idempotency_keys SET answer = :answer WHERE scope = :scope AND key = :key"
_SWEEP = """
    DELETE FROM idempotency_keys WHERE (scope, key) IN (
        SELECT scope, key FROM idempotency_keys
        WHERE created_at < :expired ORDER BY created_at LIMIT :most {skip_locked}
    )
"""
# Each sweep takes away more than was claimed since the last, so the table shrinks to what is kept.
_SWEEP_EVERY, _SWEEP_ROWS = 64, 256


class SqlJournal:
    """The journal whose claim, effect and answer are one transaction: a crash leaves all or nothing.

    A concurrent call with the same key waits inside the database for the first one's transaction.
    """

    def __init__(self, database: Database, keep_s: float) -> None:
        self._database = database
        self._keep = timedelta(seconds=keep_s)
        self._claims = 0

    async def run(self, slot: Slot, effect: Callable[[], Awaitable[bytes]]) -> Recorded:
        """See `Journal`. The effect must write to this same database and be quick: others wait."""
        place = {"scope": slot.scope, "key": slot.key}
        async with self._database.transaction():
            now = datetime.now(UTC)  # machine time, as everything that expires
            claimed = await self._database.returning(
                _CLAIM, **place, fingerprint=slot.fingerprint, now=now, expired=now - self._keep
            )
            if not claimed:
                return await self._replayed(slot, place)
            await self._sweep(now - self._keep)
            answer = await effect()
            await self._database.execute(_STORE, **place, answer=answer)
            return Recorded(answer, replayed=False)

    async def _replayed(self, slot: Slot, place: Mapping[str, str]) -> Recorded:
        (found,) = await self._database.rows(_FIND, **place)
        if found["fingerprint"] != slot.fingerprint:
            raise Conflict(slot)
        return Recorded(found["answer"], replayed=True)

    async def _sweep(self, expired: datetime) -> None:
        self._claims += 1
        if self._claims % _SWEEP_EVERY == 1:
            await self._database.execute(
                _SWEEP.format(skip_locked=self._database.skip_locked),
                expired=expired,
                most=_SWEEP_ROWS,
            )
