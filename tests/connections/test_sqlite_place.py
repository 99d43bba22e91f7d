"""Where a SQLite file lies: on what may not be written, removed while it is open, or exchanged for another."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from quantdeck.connections.sqlite import SQLite
from quantdeck.core.errors import QueryFailed, Unreachable
from tests.connections.conftest import elsewhere

MAKE = "CREATE TABLE IF NOT EXISTS marks (text TEXT UNIQUE)"
MARK = "INSERT INTO marks (text) VALUES (:text)"
NOBODY = 65534


async def marks(database: SQLite) -> list[str]:
    return [row["text"] for row in await database.rows("SELECT text FROM marks ORDER BY text")]


async def marked(path: Path, *texts: str) -> None:
    """A file with these marks, that nobody has open."""
    database = SQLite(path)
    await database.execute(MAKE)
    for text in texts:
        await database.execute(MARK, text=text)
    await database.close()


# What may not be written.


@pytest.fixture
def path() -> Iterator[Path]:
    # Not in pytest's own folder: that one keeps other users out.
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder) / "test.db"
        Path(folder).chmod(0o755)


def _nobody() -> None:
    if os.geteuid() == 0:  # whom no file mode stops
        os.setuid(NOBODY)


async def _reads_and_cannot_write(path: Path) -> None:
    _nobody()
    before = sorted(path.parent.iterdir())
    database = SQLite(path)
    assert await asyncio.gather(*(marks(database) for _ in range(8))) == [["a"]] * 8
    async with database.snapshot():
        assert await marks(database) == ["a"]
    for _ in range(2):
        with pytest.raises(QueryFailed, match="may not be written"):
            await database.execute(MARK, text="b")
        with pytest.raises(QueryFailed, match="may not be written"):
            async with database.transaction():
                pass
    assert await marks(database) == ["a"]
    await database.close()
    assert sorted(path.parent.iterdir()) == before


@pytest.mark.parametrize("folder_mode, file_mode", [(0o555, 0o644), (0o555, 0o444), (0o755, 0o444)])
async def test_what_may_not_be_written_can_be_read(path, folder_mode, file_mode):
    await marked(path, "a")
    path.chmod(file_mode)
    path.parent.chmod(folder_mode)
    assert await asyncio.to_thread(elsewhere, _reads_and_cannot_write, path) == [0]


async def _cannot(path: Path, what: str = "cannot be opened") -> None:
    _nobody()
    database = SQLite(path)
    for _ in range(2):
        with pytest.raises((Unreachable, QueryFailed), match=what) as failed:
            await database.ping()
        assert str(path) not in str(failed.value)
    await database.close()


async def test_what_may_not_be_read_either_is_out_of_reach(path):
    await marked(path, "a")
    path.chmod(0)
    assert await asyncio.to_thread(elsewhere, _cannot, path) == [0]


async def test_what_is_not_there_and_may_not_be_made_is_refused(path):
    path.parent.chmod(0o555)
    assert await asyncio.to_thread(elsewhere, _cannot, path, "may not be written") == [0]


async def _die(path: Path) -> None:
    database = SQLite(path)
    await database.execute(MAKE)
    os.kill(os.getpid(), signal.SIGKILL)


async def test_a_log_that_cannot_be_read_beside_its_file_is_not_passed_over(path):
    """Half of the data is in it."""
    assert await asyncio.to_thread(elsewhere, _die, path) == [-signal.SIGKILL]
    for file in path.parent.iterdir():
        file.chmod(0o644)
    path.with_name("test.db-shm").unlink()
    path.parent.chmod(0o555)
    assert await asyncio.to_thread(elsewhere, _cannot, path) == [0]


async def _reads_on(path: Path, read: Any, written: Any) -> None:
    _nobody()
    database = SQLite(path)
    for expected in (["a"], ["a", "b"], ["a", "b", "c"]):
        assert await marks(database) == expected
        read.release()
        written.acquire()
    await database.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs two users, one of whom may write")
async def test_what_another_writes_meanwhile_is_seen_by_who_may_only_read(path):
    await marked(path, "a")
    path.chmod(0o644)
    path.parent.chmod(0o555)
    context = multiprocessing.get_context("spawn")
    read, written = context.Semaphore(0), context.Semaphore(0)
    reading = asyncio.create_task(asyncio.to_thread(elsewhere, _reads_on, path, read, written))
    writer = SQLite(path)
    for text in ("b", "c"):
        await asyncio.to_thread(read.acquire)
        await writer.execute(MARK, text=text)
        written.release()
    written.release()
    assert await reading == [0]
    await writer.close()


# What is removed or exchanged.


def _remove(home: Path) -> None:
    shutil.rmtree(home)


async def test_a_file_made_anew_is_the_one_that_is_read_and_written(tmp_path):
    home = tmp_path / "home"
    await marked(home / "test.db", "old")
    database = SQLite(home / "test.db")
    assert await asyncio.gather(*(marks(database) for _ in range(8))) == [["old"]] * 8
    _remove(home)
    await marked(home / "test.db", "new")
    assert await marks(database) == ["new"]
    await database.execute(MARK, text="newer")
    await database.close()
    after = SQLite(home / "test.db")
    assert await marks(after) == ["new", "newer"]
    await after.close()


async def test_another_file_put_in_its_place_is_noticed_by_a_write_first(tmp_path):
    path = tmp_path / "test.db"
    await marked(path, "old")
    await marked(tmp_path / "other.db", "new")
    database = SQLite(path)
    assert await marks(database) == ["old"]
    (tmp_path / "other.db").replace(path)
    await database.execute(MARK, text="newer")
    assert await marks(database) == ["new", "newer"]
    await database.close()


async def test_a_snapshot_that_is_open_meanwhile_stays_with_its_file_and_a_write_is_not_lost_in_silence(tmp_path):
    path = tmp_path / "home" / "test.db"
    await marked(path, "old")
    database = SQLite(path)
    begun, exchanged = asyncio.Barrier(3), asyncio.Event()

    async def hold(block: Any, work: Any) -> Any:
        async with block:
            await marks(database)
            await begun.wait()
            await exchanged.wait()
            return await work

    reading = asyncio.create_task(hold(database.snapshot(), marks(database)))
    writing = asyncio.create_task(hold(database.transaction(), database.execute(MARK, text="lost")))
    await begun.wait()
    _remove(path.parent)
    await marked(path, "new")
    assert await marks(database) == ["new"]
    exchanged.set()
    assert await reading == ["old"]
    with pytest.raises(Unreachable, match="nothing of this is stored"):
        await writing
    await database.execute(MARK, text="newer")
    assert await marks(database) == ["new", "newer"]
    await database.close()


async def test_what_must_be_there_is_missed_each_time_and_not_made(tmp_path):
    path = tmp_path / "home" / "test.db"
    await marked(path, "old")

    def require() -> None:
        if not path.exists():
            raise Unreachable("It is gone.", source="test")

    database = SQLite(path, require=require)
    assert await marks(database) == ["old"]
    _remove(path.parent)
    for _ in range(3):
        with pytest.raises(Unreachable, match="gone"):
            await marks(database)
        with pytest.raises(Unreachable, match="gone"):
            await database.execute(MARK, text="lost")
    assert not path.parent.exists()
    await marked(path, "new")
    assert await marks(database) == ["new"]
    await database.close()
