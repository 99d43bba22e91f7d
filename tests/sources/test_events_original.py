"""A file of the program that the event spec was written for: what is done to it, and what is not."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from quantdeck.core.clock import Now
from quantdeck.sources.events import EVER, Slice
from quantdeck.sources.events.embedded import EventFile
from tests.connections.conftest import elsewhere
from tests.support.desk import NOON
from tests.support.events import RUN, at, begin
from tests.support.original import as_original

AS_OF = Now.of(NOON, fixed=True)
ALL = Slice(0, 10)
NOBODY = 65534


@pytest.fixture
def theirs() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        with begin(Path(folder) / "ours.db") as run:
            run.trade(at(1), "AAPL", "Buy", 1, 1)
        yield as_original(Path(folder) / "ours.db", Path(folder) / "theirs.db")
        Path(folder).chmod(0o755)


def indexes(path: Path) -> set[str]:
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT name FROM sqlite_master WHERE name LIKE 'quantdeck%'").fetchall()
    return {name for (name,) in rows}


async def asked(path: Path) -> int:
    source = EventFile(path)
    try:
        found = await source.of_type(RUN, "TradeExecution", EVER, ALL, as_of=AS_OF)
    finally:
        await source.close()
    return -1 if found is None else found.total


async def test_the_indexes_that_it_lacks_are_added_once(theirs):
    assert indexes(theirs) == set()
    assert await asked(theirs) == 1
    added = indexes(theirs)
    assert len(added) == 11
    before = theirs.read_bytes()
    assert await asked(theirs) == 1
    assert theirs.read_bytes() == before


async def test_its_own_program_goes_on_writing_it(theirs):
    assert await asked(theirs) == 1
    with closing(sqlite3.connect(theirs)) as connection, connection:
        connection.execute(
            "INSERT INTO Events (EventId, RunId, Timestamp, EventType, Severity, Category, Properties)"
            " SELECT 'another', RunId, Timestamp, EventType, Severity, Category, Properties FROM Events"
        )
    assert await asked(theirs) == 2


async def test_a_file_that_its_program_has_locked_is_read_without(theirs):
    writer = sqlite3.connect(theirs, isolation_level=None)
    try:
        writer.execute("BEGIN IMMEDIATE")
        assert await asked(theirs) == 1
    finally:
        writer.close()
    assert indexes(theirs) == set()
    assert await asked(theirs) == 1
    assert len(indexes(theirs)) == 11


async def test_a_file_that_was_locked_gets_its_indexes_with_the_next_connection(theirs):
    writer = sqlite3.connect(theirs, isolation_level=None)
    source = EventFile(theirs)
    try:
        writer.execute("BEGIN IMMEDIATE")
        assert await source.run(RUN, as_of=AS_OF) is not None
        writer.execute("ROLLBACK")
        await asyncio.gather(*(source.run(RUN, as_of=AS_OF) for _ in range(50)))
    finally:
        writer.close()
        await source.close()
    assert len(indexes(theirs)) == 11


async def test_ids_may_be_written_in_capitals(theirs):
    with closing(sqlite3.connect(theirs)) as connection, connection:
        connection.execute("UPDATE Events SET EventId = upper(EventId), ParentEventId = upper(ParentEventId)")
        ((own,),) = connection.execute("SELECT EventId FROM Events").fetchall()
    source = EventFile(theirs)
    try:
        found = await source.chain(RUN, own.lower(), [], 10, as_of=AS_OF)
    finally:
        await source.close()
    assert found is not None
    assert (found.root, len(found.events)) == (own, 1)


async def _asks_as_nobody(path: Path) -> None:
    if os.geteuid() == 0:  # whom no file mode stops
        os.setuid(NOBODY)
    assert await asked(path) == 1


async def test_a_file_that_may_not_be_written_is_read_without(theirs):
    theirs.chmod(0o444)
    theirs.parent.chmod(0o555)
    assert await asyncio.to_thread(elsewhere, _asks_as_nobody, theirs) == [0]
    assert indexes(theirs) == set()
