"""What only a file can do: be private, busy, damaged or full."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import stat
from pathlib import Path

import pytest

from quantdeck.connections.sqlite import SQLite
from quantdeck.core.errors import Busy, QueryFailed, SourceError, Unreachable

MAKE = "CREATE TABLE marks (text TEXT UNIQUE)"
MARK = "INSERT INTO marks (text) VALUES (:text)"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "deep er" / "100%#?.db"


@pytest.fixture
async def database(path):
    opened = SQLite(path, busy_s=0.05)
    yield opened
    await opened.close()


@contextlib.contextmanager
def writing(path: Path):
    """Somebody else's write, under way."""
    with contextlib.closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield other
        if other.in_transaction:
            other.rollback()


async def pragma(database: SQLite, name: str) -> list[object]:
    async with database.transaction():
        on_writer = await database.rows(f"PRAGMA {name}")
    on_reader = await database.rows(f"PRAGMA {name}")
    return [next(iter(row.values())) for row in on_writer + on_reader]


async def test_the_first_use_makes_folder_and_file_for_the_owner_alone(database, path, tmp_path):
    assert not (tmp_path / "home").exists()
    await database.execute(MAKE)
    modes = {stat.S_IMODE(entry.stat().st_mode) for entry in (path.parent, path.parent.parent)} | {
        stat.S_IMODE(entry.stat().st_mode) for entry in path.parent.iterdir()
    }
    assert modes == {0o700, 0o600}
    assert len(list(path.parent.iterdir())) == 3


async def test_every_connection_is_set_up(database):
    assert await pragma(database, "journal_mode") == ["wal", "wal"]
    assert await pragma(database, "foreign_keys") == [1, 1]
    assert await pragma(database, "busy_timeout") == [0, 0]
    assert await pragma(database, "synchronous") == [1, 1]


async def test_full_synchronisation_can_be_had(path):
    database = SQLite(path, synchronous="FULL")
    assert await pragma(database, "synchronous") == [2, 2]
    await database.close()


async def test_a_read_by_mistake_used_to_write_is_refused(database):
    await database.execute(MAKE)
    with pytest.raises(QueryFailed, match="may not be written"):
        await database.rows("INSERT INTO marks (text) VALUES ('a') RETURNING text")


async def test_a_write_waits_for_another_process_until_its_patience_ends(database, path):
    await database.execute(MAKE)
    with writing(path):
        with pytest.raises(Busy, match="try again"):
            await database.execute(MARK, text="a")
        with pytest.raises(Busy):
            async with database.transaction():
                pass
        assert await database.rows("SELECT text FROM marks") == []
    await database.execute(MARK, text="a")


async def test_a_waiting_write_goes_through_when_the_other_is_done(path):
    database = SQLite(path)
    await database.execute(MAKE)
    with writing(path) as other:
        waiting = asyncio.create_task(database.execute(MARK, text="a"))
        await database.ping()
        assert not waiting.done()
        other.execute("COMMIT")
        assert await waiting == 1
    await database.close()


async def test_a_deadline_ends_the_wait(path):
    database = SQLite(path, busy_s=3600)
    await database.execute(MAKE)
    with writing(path):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await database.execute(MARK, text="a")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05), database.transaction():
                pass
    await database.execute(MARK, text="b")
    assert await database.rows("SELECT text FROM marks") == [{"text": "b"}]
    await database.close()


async def _until_it_fails(work) -> None:
    while True:
        await work()


async def test_the_wait_for_a_connection_of_our_own_is_bounded_too(database):
    free = asyncio.Event()

    async def hold(block) -> None:
        async with block:
            await database.ping()
            await free.wait()

    await database.execute(MAKE)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(hold(database.transaction()))
        for _ in range(4):
            tasks.create_task(hold(database.snapshot()))
        with pytest.raises(Busy):
            await _until_it_fails(database.ping)
        with pytest.raises(Busy):
            await database.execute(MARK, text="a")
        free.set()
    await database.execute(MARK, text="a")


def locked(path: Path) -> bool:
    try:
        with writing(path):
            return False
    except sqlite3.OperationalError:
        return True


FILL = """
    WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300000)
    INSERT INTO marks (text) SELECT i FROM n
"""


@pytest.mark.parametrize(
    "write", [lambda database: database.execute(FILL), lambda database: database.returning(f"{FILL} RETURNING text")]
)
async def test_a_write_that_has_begun_is_finished_before_its_cancellation_is_heard(path, write):
    database = SQLite(path)
    await database.execute(MAKE)
    task = asyncio.create_task(write(database))
    while not locked(path):
        await asyncio.sleep(0)
        assert not task.done()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await database.row("SELECT count(*) AS many FROM marks") == {"many": 300000}
    await database.close()


async def test_a_transaction_cancelled_as_it_begins_is_not_left_open(path):
    database = SQLite(path)
    await database.execute(MAKE)

    async def begin() -> None:
        async with database.transaction():
            await asyncio.Event().wait()

    for _ in range(100):
        task = asyncio.create_task(begin())
        await asyncio.sleep(0)
        # The loop stands still meanwhile: that it has begun is not yet known when it is cancelled.
        begun = any(locked(path) for _ in range(50))
        task.cancel()
        await asyncio.wait({task})
        if begun:
            break
    assert begun
    await database.execute(MARK, text="next")
    assert await database.rows("SELECT text FROM marks") == [{"text": "next"}]
    await database.close()


async def test_readers_that_connect_at_once_get_a_connection_each(path):
    for _ in range(20):
        database = SQLite(path)
        await asyncio.gather(*(database.ping() for _ in range(20)))
        await database.close()


@pytest.mark.parametrize("kind, stored", [("JSON", "{broken"), ("TIMESTAMP", "yesterday")])
async def test_a_value_that_cannot_be_read_says_so_and_no_reader_stays_in_its_past(database, path, kind, stored):
    await database.execute(f"CREATE TABLE theirs (thing {kind})")
    await database.execute("INSERT INTO theirs VALUES (:stored)", stored=stored)
    with pytest.raises(QueryFailed, match="stored value") as failed:
        await database.rows("SELECT thing FROM theirs UNION ALL SELECT NULL")
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("UPDATE theirs SET thing = NULL")
    assert await database.rows("SELECT thing FROM theirs") == [{"thing": None}]
    assert stored not in failed.value.message


async def failure(path: Path) -> SourceError:
    database = SQLite(path)
    with pytest.raises(SourceError) as failed:
        await database.ping()
    await database.close()
    assert str(path) not in failed.value.message
    return failed.value


async def test_a_file_that_is_no_database_says_so(path):
    path.parent.mkdir(parents=True)
    path.write_bytes(b"certainly not a database" * 100)
    assert isinstance(await failure(path), QueryFailed)


async def test_a_damaged_database_says_so(database, path):
    await database.execute(MAKE)
    await database.execute_many(MARK, [{"text": str(i) * 50} for i in range(2000)])
    await database.close()
    whole = path.read_bytes()
    path.write_bytes(whole[:4096] + b"\xff" * (len(whole) - 4096))
    damaged = SQLite(path)
    with pytest.raises(QueryFailed, match="damaged"):
        await damaged.rows("SELECT text FROM marks WHERE text = 'x'")
    await damaged.close()


async def test_a_full_disk_says_so_and_leaves_what_was_there(database):
    await database.execute(MAKE)
    await database.execute(MARK, text="small")
    await database.execute("PRAGMA max_page_count = 12")
    with pytest.raises(QueryFailed, match="full"):
        await database.execute(MARK, text="x" * 1_000_000)
    with pytest.raises(QueryFailed, match="full"):
        await database.execute_many(MARK, [{"text": "y" * 1_000}, {"text": "x" * 1_000_000}])
    assert await database.rows("SELECT text FROM marks") == [{"text": "small"}]
    await database.execute(MARK, text="next")


async def test_a_folder_in_the_way_is_no_connection(tmp_path):
    assert isinstance(await failure(tmp_path), Unreachable)


async def test_a_failed_first_use_can_be_repeated(tmp_path):
    (tmp_path / "home").write_text("a file in the way")
    database = SQLite(tmp_path / "home" / "test.db")
    with pytest.raises(Unreachable, match="connection"):
        await database.ping()
    (tmp_path / "home").unlink()
    await database.ping()
    await database.close()
