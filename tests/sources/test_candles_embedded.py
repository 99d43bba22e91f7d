"""The embedded store of bars: its file, when there is one, and what is in it."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from quantdeck.connections.databases import Databases
from quantdeck.core.errors import NotConfigured, QueryFailed, SourceError, Unreachable
from quantdeck.domain.timeframes import DAY, MINUTE, TIMEFRAMES
from quantdeck.settings import MisconfiguredError, Settings
from quantdeck.sources.candles.chunks import PLACES
from quantdeck.sources.candles.embedded import Embedded, connect
from tests.support.bars import FAR, at, every, rows, walk

NOON_S = at("2026-01-15T12:00")
BARS = walk(every(60, NOON_S, 3000))

Opening = Callable[..., Embedded]


@pytest.fixture
async def opened(tmp_path: Path) -> AsyncIterator[Opening]:
    async with AsyncExitStack() as stack:

        def open_(url: str = "", **said: Any) -> Embedded:
            settings = Settings(home=tmp_path / "home", **said)
            databases = Databases(settings)
            stack.push_async_callback(databases.close)
            return connect(url, settings, databases)

        yield open_


async def failure(candles: Embedded) -> SourceError:
    failed = []
    for ask in (candles.ping, lambda: candles.symbols(as_of=FAR), lambda: candles.newest("X", DAY, 1, as_of=FAR)):
        with pytest.raises(SourceError) as caught:
            await ask()
        failed.append(caught.value)
    assert len({error.message for error in failed}) == 1
    return failed[0]


async def test_a_home_without_bars_says_what_to_do_and_makes_no_file(opened, tmp_path):
    failed = await failure(opened())
    assert isinstance(failed, NotConfigured)
    assert failed.details["setting"] == "QUANTDECK_CANDLES"
    for way in ("QUANTDECK_CANDLES", "`quantdeck import candles`", "`quantdeck demo`"):
        assert way in failed.message
    assert not (tmp_path / "home").exists()


async def test_where_there_is_nothing_nothing_is_forgotten(opened, tmp_path):
    await opened().forget("BTC/USD")
    assert not (tmp_path / "home").exists()


async def test_the_first_write_makes_the_file_and_who_was_told_that_there_is_none_finds_it(opened, tmp_path):
    reader = opened()
    await failure(reader)
    await opened("embedded").write("BTC/USD", MINUTE, BARS)
    assert rows(await reader.newest("BTC/USD", MINUTE, 2, as_of=FAR)) == rows(BARS)[-2:]
    assert (tmp_path / "home" / "market.db").stat().st_mode & 0o777 == 0o600


async def test_bars_are_in_the_home_whatever_the_relational_database_is(opened, tmp_path):
    candles = opened(database=SecretStr("postgresql://nobody@localhost:1/nothing"))
    await candles.write("BTC/USD", MINUTE, BARS)
    assert sorted(file.name for file in (tmp_path / "home").glob("*.db")) == ["market.db"]
    assert (await candles.series("BTC/USD", as_of=FAR)).last_s == NOON_S + 60 * 2999
    assert candles.source == "sqlite"


@pytest.mark.parametrize("url", ["", "sqlite"])
async def test_migrate_keeps_the_file_up_to_date_and_does_not_make_it(opened, tmp_path, url):
    database = SecretStr(f"sqlite:///{tmp_path}/desk.db" if url else "")
    databases = Databases(Settings(home=tmp_path / "home", database=database))
    assert "market/0001_candles" not in await databases.migrate()
    assert not (tmp_path / "home" / "market.db").exists()
    (tmp_path / "home").mkdir(exist_ok=True)
    (tmp_path / "home" / "market.db").touch()
    assert "market/0001_candles" in await databases.migrate()
    assert await databases.migrate() == []


async def test_a_file_removed_while_it_is_served_is_out_of_reach_and_not_made_up_anew(opened, tmp_path):
    candles = opened()
    await candles.write("BTC/USD", MINUTE, BARS)
    shutil.rmtree(tmp_path / "home")
    assert isinstance(await failure(candles), Unreachable)
    with pytest.raises(Unreachable, match="removed"):
        await candles.write("BTC/USD", MINUTE, BARS)
    assert not (tmp_path / "home").exists()


async def test_in_a_demo_world_its_bars_are_a_demos(opened, tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "demo.json").write_text("{}")
    assert opened("embedded:").source == "demo"


@pytest.mark.parametrize("url", ["embedded:///tmp/other.db", "embedded:x"])
async def test_another_place_is_not_silently_ignored(opened, url):
    with pytest.raises(MisconfiguredError, match=r"QUANTDECK_CANDLES.*market\.db"):
        opened(url)


@pytest.mark.parametrize("base", ["1m", "5m", "1h", "1d"])
async def test_a_chunk_has_1440_bars_whatever_their_length(opened, tmp_path, base):
    length = TIMEFRAMES[base]
    candles = opened()
    await candles.write("BTC/USD", length, walk(every(length.seconds, at("2020-01-01T00:00"), 5 * PLACES)))
    chunks = asked(tmp_path, "SELECT held, length(data) FROM candle_chunks ORDER BY chunk")
    assert len(chunks) in {5, 6}
    assert all(size_bytes == 40 * held for held, size_bytes in chunks)
    assert {held for held, _ in chunks[1:-1]} == {PLACES}


async def test_pages_are_large_and_the_log_is_ahead(opened, tmp_path):
    await opened().write("BTC/USD", MINUTE, BARS)
    assert asked(tmp_path, "PRAGMA page_size") == [(32_768,)]
    assert asked(tmp_path, "PRAGMA journal_mode") == [("wal",)]


DAMAGES = [
    "UPDATE candle_chunks SET data = substr(data, 9)",
    "UPDATE candle_chunks SET present = zeroblob(180)",
    "UPDATE candle_chunks SET present = x'00'",
    "UPDATE candle_series SET base_s = 61",
]


@pytest.mark.parametrize("damage", DAMAGES)
async def test_damaged_bars_are_an_error_and_no_answer(opened, tmp_path, damage):
    candles = opened()
    await candles.write("BTC/USD", MINUTE, BARS)
    asked(tmp_path, damage)
    with pytest.raises(QueryFailed, match="damaged"):
        await candles.newest("BTC/USD", MINUTE, 10, as_of=FAR)
    with pytest.raises(QueryFailed, match="damaged"):
        await candles.write("BTC/USD", MINUTE, BARS)


def asked(tmp_path: Path, sql: str) -> list[Any]:
    with closing(sqlite3.connect(tmp_path / "home" / "market.db", isolation_level=None)) as market:
        return market.execute(sql).fetchall()
