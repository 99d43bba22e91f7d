"""Short reads are done where they are asked; what turns out to be long is not asked there again for a while."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

import pytest

from quantdeck.connections.sqlite_short import ShortReads
from tests.support.clock import Ticks

COUNT = """
    WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) SELECT count(*) FROM n
"""


def read(connection: sqlite3.Connection, sql: str, values: Any) -> list[Any]:
    return connection.execute(sql, values).fetchall()


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    opened = sqlite3.connect(":memory:")
    yield opened
    opened.close()


def test_a_short_read_is_answered_at_once_however_often_it_is_asked(connection):
    short = ShortReads(Ticks(), Ticks())  # how long it really takes depends on who else is on this machine
    assert [short.tried(read, connection, COUNT, [40]) for _ in range(2000)] == [[(40,)]] * 2000


def test_a_long_read_is_broken_off_and_its_text_left_alone_for_a_minute(connection):
    ticks = Ticks()
    short = ShortReads(ticks)
    assert short.tried(read, connection, COUNT, [10_000_000]) is None
    assert short.tried(read, connection, COUNT, [1]) is None
    assert short.tried(read, connection, "SELECT 1", []) == [(1,)]  # others are not concerned
    ticks.advance(61)
    assert short.tried(read, connection, COUNT, [1]) == [(1,)]


def test_nothing_is_broken_off_where_a_long_read_belongs(connection):
    short = ShortReads()
    assert short.tried(read, connection, COUNT, [10_000_000]) is None
    assert read(connection, COUNT, [200_000]) == [(200_000,)]


def test_a_read_that_finds_the_file_locked_goes_where_there_is_patience(tmp_path):
    path = tmp_path / "locked.db"
    with sqlite3.connect(path) as writer:
        writer.execute("CREATE TABLE things (name)")
    writer.execute("BEGIN EXCLUSIVE")
    reader = sqlite3.connect(path, timeout=0)
    assert ShortReads().tried(read, reader, "SELECT name FROM things", []) is None
    writer.close()
    reader.close()


def test_a_slow_disk_is_believed_the_second_time(connection):
    ticks = Ticks()
    short = ShortReads(ticks)

    def slowly(opened: sqlite3.Connection, sql: str, values: Any) -> list[Any]:
        ticks.advance(0.05)
        return read(opened, sql, values)

    assert [short.tried(slowly, connection, "SELECT 1", []) for _ in range(3)] == [[(1,)], [(1,)], None]


def test_large_values_are_believed_the_second_time_too(connection):
    worked = Ticks()
    short = ShortReads(Ticks(), worked)

    def largely(opened: sqlite3.Connection, sql: str, values: Any) -> list[Any]:
        worked.advance(0.002)
        return read(opened, sql, values)

    assert [short.tried(largely, connection, "SELECT 1", []) for _ in range(3)] == [[(1,)], [(1,)], None]


def test_what_is_wrong_with_a_read_is_left_to_the_thread_to_say(connection):
    assert ShortReads().tried(read, connection, "SELECT nothing FROM nowhere", []) is None
    assert ShortReads().tried(read, connection, "SELECT ?", ["\ud800"]) is None


def test_a_thousand_long_texts_are_remembered_and_no_more(connection):
    short = ShortReads()
    for number in range(1500):
        short.tried(read, connection, f"SELECT {number} FROM nowhere", [])
    assert len(short._long_until) == 1000
