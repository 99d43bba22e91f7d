"""How connections to a real PostgreSQL are held, shared, lost and replaced."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from quantdeck.connections.postgresql import PostgreSQL
from quantdeck.core.errors import Denied, QueryFailed, SourceError, Unreachable
from quantdeck.migrations import migrate
from tests.connections.conftest import ENDLESS, Place
from tests.support.postgresql import PostgresServer, available

pytestmark = pytest.mark.services


@pytest.fixture
def server() -> PostgresServer:
    return available()


@pytest.fixture
async def dsn(server: PostgresServer) -> str:
    return await server.new_database()


class Watch:
    """What the server itself says about our connections to one database."""

    def __init__(self, server: PostgresServer, dsn: str) -> None:
        self._server, self._name = server, urlsplit(dsn).path[1:]

    async def pids(self, condition: str = "true") -> set[int]:
        ours = "SELECT pid FROM pg_stat_activity WHERE application_name = 'quantdeck' AND datname = $1"
        found = await self._server.sql(f"{ours} AND {condition}", self._name)
        return {row["pid"] for row in found}

    async def until(self, condition: str, count: int) -> set[int]:
        """Ask until so many are so; the test's own timeout is the bound."""
        while len(found := await self.pids(condition)) != count:
            pass
        return found

    async def kill(self, condition: str = "true") -> None:
        for pid in await self.pids(condition):
            await self._server.sql("SELECT pg_terminate_backend($1, 5000)", pid)


@pytest.fixture
def watch(server, dsn) -> Watch:
    return Watch(server, dsn)


Opening = Callable[..., PostgreSQL]


@pytest.fixture
async def opened(dsn) -> AsyncIterator[Opening]:
    async with AsyncExitStack() as stack:

        def open_(address: str = dsn, **settings: Any) -> PostgreSQL:
            database = PostgreSQL(address, **settings)
            stack.push_async_callback(database.close)
            return database

        yield open_


@asynccontextmanager
async def held(database: PostgreSQL, count: int) -> AsyncIterator[AsyncExitStack]:
    """So many connections in use, each in a task of its own as separate calls would be."""
    free, taken = asyncio.Event(), asyncio.Semaphore(0)

    async def hold() -> None:
        async with database.snapshot():
            await database.ping()
            taken.release()
            await free.wait()

    async with asyncio.TaskGroup() as tasks:
        for _ in range(count):
            tasks.create_task(hold())
        for _ in range(count):
            await taken.acquire()
        try:
            async with AsyncExitStack() as stack:
                stack.callback(free.set)
                yield stack
        finally:
            free.set()


async def failure(work: Awaitable[Any]) -> SourceError:
    with pytest.raises(SourceError) as failed:
        await work
    return failed.value


async def test_nothing_is_connected_before_the_first_use_and_two_after_it(opened, watch):
    database = opened()
    assert await watch.pids() == set()
    await database.ping()
    assert len(await watch.pids("state = 'idle'")) == 2


async def test_there_are_never_more_than_ten_and_the_eleventh_is_told_so(opened, watch):
    database = opened(connect_s=0.2)
    async with held(database, 10):
        refused = await failure(database.ping())
        assert len(await watch.pids()) == 10
    assert type(refused) is Unreachable
    assert "No free connection" in refused.message
    await database.ping()


async def test_the_eleventh_gets_the_first_that_becomes_free(opened, watch):
    database = opened()
    async with held(database, 10) as connections:
        eleventh = asyncio.create_task(database.rows("SELECT 1 AS one"))
        await watch.until("true", 10)
        assert not eleventh.done()
        await connections.aclose()
        assert await eleventh == [{"one": 1}]
    assert len(await watch.pids()) == 10


async def test_idle_connections_are_closed_down_to_the_minimum_which_stays(opened, server):
    quick_dsn, slow_dsn = await server.new_database(), await server.new_database()
    quick, slow = opened(quick_dsn, idle_s=0.1), opened(slow_dsn, idle_s=0.5)
    for database in (quick, slow):
        async with held(database, 5):
            pass
    kept = await Watch(server, quick_dsn).until("true", 2)
    # The other pool is the clock: when it lets go, the quick one's time has passed again and again.
    await Watch(server, slow_dsn).until("true", 2)
    assert await Watch(server, quick_dsn).pids() == kept


async def test_first_callers_at_once_share_one_attempt(opened):
    attempts = 0

    async def refuse(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal attempts
        attempts += 1
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as listener:
        port = listener.sockets[0].getsockname()[1]
        database = opened(f"postgresql://quantdeck@127.0.0.1:{port}/x?sslmode=disable")
        failed = await asyncio.gather(*(failure(database.ping()) for _ in range(20)))
        assert {type(e) for e in failed} == {Unreachable}
        assert attempts == 1
        await failure(database.ping())
        assert attempts == 2


async def test_a_server_that_does_not_answer_is_given_up(opened):
    async def never_answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async with await asyncio.start_server(never_answer, "127.0.0.1", 0) as listener:
        port = listener.sockets[0].getsockname()[1]
        database = opened(f"postgresql://quantdeck@127.0.0.1:{port}/x", connect_s=0.2)
        failed = await failure(database.ping())
    assert isinstance(failed, Unreachable)
    assert "connection" in failed.message


async def test_a_first_use_while_the_server_is_down_does_not_spoil_the_next(opened, server):
    database = opened()
    with server.stopped():
        failed = await failure(database.ping())
        assert isinstance(failed, Unreachable)
        assert "connection" in failed.message
    await database.ping()


async def test_a_restart_of_the_server_is_survived(opened, server):
    database = opened()
    async with held(database, 4):
        pass
    with server.stopped():
        assert isinstance(await failure(database.ping()), Unreachable)
        assert isinstance(await failure(database.execute("SELECT 1")), Unreachable)
    assert await database.rows("SELECT 1 AS one") == [{"one": 1}]
    async with database.transaction():
        await database.ping()


async def test_a_server_stopped_during_a_query_is_unreachable(opened, server, watch):
    database = opened()
    query = asyncio.create_task(database.rows(ENDLESS))
    await watch.until("state = 'active'", 1)
    with server.stopped():
        assert isinstance(await failure(query), Unreachable)


@pytest.fixture
async def things(opened: Opening, tmp_path: Path) -> PostgreSQL:
    group = tmp_path / "world"
    group.mkdir()
    (group / "0001_things.sql").write_text("CREATE TABLE things (name {text} NOT NULL);")
    database = opened()
    await migrate(database, [group])
    return database


@asynccontextmanager
async def locked(database: PostgreSQL) -> AsyncIterator[None]:
    """The table is somebody else's for a while."""
    async with database.transaction():
        await database.execute("LOCK TABLE things IN ACCESS EXCLUSIVE MODE")
        yield


async def test_a_read_whose_connection_dies_is_repeated_on_another(things, opened, watch):
    async with locked(opened()):
        reading = asyncio.create_task(things.rows("SELECT name FROM things"))
        await watch.until("wait_event_type = 'Lock'", 1)
        await watch.kill("wait_event_type = 'Lock'")
        await watch.until("wait_event_type = 'Lock'", 1)
    assert await reading == []


async def test_a_write_whose_connection_dies_is_not_repeated(things, opened, watch):
    async with locked(opened()):
        writing = asyncio.create_task(things.execute("INSERT INTO things (name) VALUES ('a')"))
        await watch.until("wait_event_type = 'Lock'", 1)
        await watch.kill("wait_event_type = 'Lock'")
        failed = await failure(writing)
    assert isinstance(failed, Unreachable)
    assert failed.details == {"outcome": "unknown"}
    assert await things.rows("SELECT name FROM things") == []


async def test_a_transaction_whose_connection_dies_is_unreachable_and_leaves_nothing(things, watch):
    async def doomed() -> None:
        async with things.transaction():
            await things.execute("INSERT INTO things (name) VALUES ('a')")
            await watch.kill("state = 'idle in transaction'")
            await things.execute("INSERT INTO things (name) VALUES ('b')")

    assert isinstance(await failure(doomed()), Unreachable)
    assert await things.rows("SELECT name FROM things") == []


async def test_a_commit_that_nobody_answers_has_an_unknown_outcome(things, watch):
    async def doomed() -> None:
        async with things.transaction():
            await things.execute("INSERT INTO things (name) VALUES ('a')")
            await watch.kill("state = 'idle in transaction'")

    failed = await failure(doomed())
    assert isinstance(failed, Unreachable)
    assert failed.details == {"outcome": "unknown"}


async def test_connections_killed_while_idle_are_not_noticed(opened, watch):
    database = opened()
    async with held(database, 5):
        pass
    await watch.kill()
    await asyncio.gather(*(database.ping() for _ in range(20)))
    await watch.kill()
    async with database.transaction():
        await database.ping()


async def _transaction(database: PostgreSQL) -> None:
    async with database.transaction():
        await database.ping()


@pytest.mark.parametrize("use", [PostgreSQL.ping, _transaction])
async def test_connections_that_died_unnoticed_are_replaced_when_nothing_was_written(opened, watch, use):
    database = opened()
    async with held(database, 5):
        pass
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, watch.kill()).result()  # our own loop stands still meanwhile
    await use(database)


async def test_a_cancelled_call_cancels_its_query(things, opened, watch):
    async with locked(opened()):
        query = asyncio.create_task(things.rows("SELECT name FROM things"))
        await watch.until("wait_event_type = 'Lock'", 1)
        query.cancel()
        with pytest.raises(asyncio.CancelledError):
            await query
        await watch.until("wait_event_type = 'Lock'", 0)


async def test_a_statement_timeout_is_a_failed_query(opened):
    failed = await failure(opened(statement_s=0.05).rows(ENDLESS))
    assert isinstance(failed, QueryFailed)
    assert "timeout" in failed.message


async def test_an_unknown_login_is_denied(server, opened):
    failed = await failure(opened(server.dsn(user="stranger")).ping())
    assert isinstance(failed, Denied)
    assert "stranger" not in failed.message


async def test_a_missing_privilege_is_denied(things, server, dsn, opened):
    await server.sql("DROP ROLE IF EXISTS guest")
    await server.sql("CREATE ROLE guest LOGIN")
    guest = opened(dsn.replace("quantdeck@", "guest@"))
    assert isinstance(await failure(guest.rows("SELECT name FROM things")), Denied)
    assert isinstance(await failure(guest.execute("DELETE FROM things")), Denied)


async def test_a_read_only_session_denies_a_write(things, dsn, opened):
    reader = opened(f"{dsn}&default_transaction_read_only=on")
    assert isinstance(await failure(reader.execute("DELETE FROM things")), Denied)


async def test_an_unknown_database_is_a_failed_query(server, opened):
    assert isinstance(await failure(opened(server.dsn("nowhere")).ping()), QueryFailed)


async def test_a_schema_that_was_never_migrated_asks_for_it(opened):
    failed = await failure(opened().rows("SELECT scope FROM idempotency_keys"))
    assert isinstance(failed, QueryFailed)
    assert "quantdeck migrate" in failed.message


@pytest.mark.parametrize(
    "address",
    [
        "mysql://u:hunter2@h/x",
        "hunter2",
        "postgresql://u:hunter2@h:port/x",
        "postgresql://u:hunter2@h/x?sslmode=perhaps",
    ],
)
async def test_an_address_that_makes_no_sense_is_out_of_reach_and_names_its_setting(opened, address):
    failed = await failure(opened(address).ping())
    assert isinstance(failed, Unreachable)
    assert "QUANTDECK_DATABASE" in failed.message
    assert "hunter2" not in f"{failed.message} {failed.details}"


async def test_what_the_address_says_beside_the_place_reaches_the_driver(opened, dsn):
    database = opened(f"{dsn}&search_path=pg_catalog&sslmode=disable")
    assert await database.rows("SHOW search_path") == [{"search_path": "pg_catalog"}]


async def test_without_a_statement_cache_everything_works_as_well(dsn, opened):
    database = opened(statement_cache_size=0)
    await migrate(database, ())
    for _ in range(3):
        assert await database.rows("SELECT scope FROM idempotency_keys") == []
    assert await database.rows("SELECT count(*) AS many FROM pg_prepared_statements") == [{"many": 0}]


async def test_a_migration_while_we_run_does_not_break_what_was_prepared(things, opened, tmp_path):
    await things.execute("INSERT INTO things (name) VALUES ('a')")
    assert await things.rows("SELECT * FROM things") == [{"name": "a"}]
    (tmp_path / "world" / "0002_size.sql").write_text("ALTER TABLE things ADD COLUMN size {int};")
    assert await migrate(opened(), [tmp_path / "world"]) == ["world/0002_size"]
    assert await things.rows("SELECT * FROM things") == [{"name": "a", "size": None}]


async def test_columns_of_other_schemas_are_read_alike(server, dsn):
    """Theirs have naive timestamps, plain json, decimals and arrays."""
    await server.sql(
        "CREATE TABLE theirs (at TIMESTAMP, doc JSON, price DECIMAL(20,8), tags TEXT[], id UUID)",
        dsn=dsn,
    )
    database = Place("postgresql", dsn).open()
    row = {
        "at": datetime(2026, 1, 15, 12, 30, 0, 1, tzinfo=UTC),
        "doc": {"a": [1]},
        "price": 0.1,
        "id": "7f1f0f4e-3f0e-4f0a-9d0a-0a1b2c3d4e5f",
    }
    await database.execute(
        "INSERT INTO theirs (at, doc, price, tags, id) VALUES (:at, :doc, :price, '{a,b}', :id)",
        **row,
    )
    assert await database.row("SELECT * FROM theirs") == {**row, "tags": ["a", "b"]}
    await database.close()


@pytest.mark.parametrize(
    "stored", ["TIMESTAMPTZ '20000-01-01'", "TIMESTAMPTZ '44-03-15 BC'", """JSONB '{"a": 1e400}'"""]
)
async def test_a_value_that_cannot_be_read_says_so_and_the_connection_serves_on(opened, stored):
    database = opened(max_size=1, min_size=1)
    failed = await failure(database.rows(f"SELECT {stored} AS thing"))
    assert isinstance(failed, QueryFailed)
    assert await database.rows("SELECT 1 AS one") == [{"one": 1}]
