"""A file that is only read: given up queries end, files that come and go, and those that cannot be written."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import tempfile
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from quantdeck.connections.read_only import ReadOnlyFile
from quantdeck.core.errors import QueryFailed, Unreachable
from tests.connections.conftest import elsewhere

NOBODY = 65534
ENDLESS = "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"


def make(path: Path, *values: int) -> Path:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE numbers (x)")
        connection.executemany("INSERT INTO numbers VALUES (?)", [(value,) for value in values])
    return path


def total(connection: sqlite3.Connection, _: object) -> int:
    (found,) = connection.execute("SELECT sum(x) FROM numbers").fetchone()
    return int(found)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return make(tmp_path / "a.db", 1, 2)


@pytest.fixture
async def opened() -> AsyncIterator[Callable[..., ReadOnlyFile[object]]]:
    files: list[ReadOnlyFile[object]] = []

    def open_it(path: Path, **said) -> ReadOnlyFile[object]:
        files.append(ReadOnlyFile(path, lambda _: None, **said))
        return files[-1]

    yield open_it
    for file in files:
        await file.close()


async def test_a_query_that_is_given_up_ends_and_its_thread_is_free_again(path, opened):
    file = opened(path, connections=1)
    begun = threading.Event()

    def endless(connection: sqlite3.Connection, _: object) -> None:
        begun.set()
        connection.execute(ENDLESS).fetchone()

    asked = asyncio.create_task(file.read(endless))
    await asyncio.to_thread(begun.wait)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await asked
    async with asyncio.timeout(20):
        assert await file.read(total) == 3


async def test_what_waits_and_is_given_up_is_never_asked(path, opened):
    file = opened(path, connections=1)
    gate, begun, asked = threading.Event(), threading.Event(), list[str]()

    def hold(_: sqlite3.Connection, __: object) -> None:
        begun.set()
        gate.wait()

    holding = asyncio.create_task(file.read(hold))
    await asyncio.to_thread(begun.wait)
    waiting = asyncio.create_task(file.read(lambda _, __: asked.append("asked")))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])  # or the thread could be quicker than the loop
    gate.set()
    await holding
    assert await file.read(total) == 3
    assert (waiting.cancelled(), asked) == (True, [])


async def test_no_more_connections_are_used_than_allowed(path, opened):
    file = opened(path, connections=3)
    threads: set[int] = set()

    def note(connection: sqlite3.Connection, _: object) -> int:
        threads.add(threading.get_ident())
        return total(connection, _)

    assert await asyncio.gather(*(file.read(note) for _ in range(300))) == [3] * 300
    assert len(threads) <= 3


async def test_all_that_a_query_reads_is_of_one_moment(path, opened):
    file = opened(path)

    def twice(connection: sqlite3.Connection, _: object) -> tuple[int, int]:
        before = total(connection, _)
        with closing(sqlite3.connect(path)) as other, other:
            other.execute("INSERT INTO numbers VALUES (100)")
        return before, total(connection, _)

    assert await file.read(twice) == (3, 3)
    assert await file.read(total) == 103


async def test_nothing_can_be_written(path, opened):
    with pytest.raises(QueryFailed, match="may not be written"):
        await opened(path).read(lambda connection, _: connection.execute("DELETE FROM numbers"))


async def test_a_file_that_was_exchanged_is_the_one_that_is_read(path, tmp_path, opened):
    file = opened(path)
    assert await file.read(total) == 3
    for old in tmp_path.glob("a.db*"):
        old.unlink()
    with pytest.raises(Unreachable):
        await file.read(total)
    make(path, 40)
    assert await file.read(total) == 40


@pytest.fixture
def shown() -> Iterator[Path]:
    """A folder that other users may look into, unlike pytest's own."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)
        Path(folder).chmod(0o755)


async def _reads_what_it_cannot_write(path: Path, expected: int) -> None:
    if os.geteuid() == 0:  # whom no file mode stops
        os.setuid(NOBODY)
    file = ReadOnlyFile(path, lambda _: None)
    assert await asyncio.gather(*(file.read(total) for _ in range(8))) == [expected] * 8
    await file.close()


@pytest.mark.parametrize("journal", ["WAL", "DELETE"])
async def test_what_may_not_be_written_nor_its_folder_is_read_all_the_same(shown, journal):
    path = make(shown / "a.db", 1, 2)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA journal_mode = {journal}")
    path.chmod(0o444)
    shown.chmod(0o555)
    assert await asyncio.to_thread(elsewhere, _reads_what_it_cannot_write, path, 3) == [0]


async def test_a_closed_one_answers_nothing_more(path, opened):
    file = opened(path)
    assert await file.read(total) == 3
    await file.close()
    with pytest.raises(Unreachable, match="closed"):
        await file.read(total)
