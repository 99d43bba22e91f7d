"""Both stores of a home behind one port: a symbol's files where there are any, else what was imported."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from quantdeck.app import open_app
from quantdeck.connections.databases import Databases
from quantdeck.core.errors import NotConfigured, QueryFailed, SourceError, Unreachable
from quantdeck.domain.timeframes import DAY, MINUTE, TIMEFRAMES
from quantdeck.servers import load
from quantdeck.settings import MisconfiguredError, Settings
from quantdeck.sources.candles import Candles, embedded, home, parquet
from quantdeck.sources.candles.embedded import Embedded
from quantdeck.sources.candles.home import Home
from tests.support.bars import FAR, at, every, now, rows, walk
from tests.support.leaks import assert_sealed

NOON_S = at("2026-01-15T12:00")
BARS, OTHER = walk(every(60, NOON_S, 3000)), walk(every(60, NOON_S, 100), seed=9)


class Stores:
    """The home behind one port, and each of its stores by itself."""

    def __init__(self, home_path: Path, stack: AsyncExitStack) -> None:
        settings = Settings(home=home_path)
        databases = Databases(settings)
        stack.push_async_callback(databases.close)
        self.both = home.connect("", settings, databases)
        self.files = parquet.connect("parquet:", settings, databases)
        self.rows = embedded.connect("", settings, databases)
        others = Databases(settings)
        stack.push_async_callback(others.close)
        self.other_rows = embedded.connect("", settings, others)
        for store in (self.both, self.files):
            stack.push_async_callback(store.close)


@pytest.fixture
async def stores(tmp_path: Path) -> AsyncIterator[Stores]:
    async with AsyncExitStack() as stack:
        yield Stores(tmp_path, stack)


async def closes(candles: Candles, symbol: str) -> list[float]:
    found: list[float] = (await candles.newest(symbol, MINUTE, 5000, as_of=FAR)).close.tolist()
    return found


async def test_either_alone_is_read_whole(stores):
    await stores.rows.write("AAPL", MINUTE, BARS)
    assert await closes(stores.both, "AAPL") == BARS.close.tolist()
    assert (await stores.both.store_of("AAPL", as_of=FAR)).source == "sqlite"
    await stores.files.write("TSLA", MINUTE, OTHER)
    assert await closes(stores.both, "TSLA") == OTHER.close.tolist()
    assert (await stores.both.store_of("TSLA", as_of=FAR)).source == "parquet"
    assert await stores.both.symbols(as_of=FAR) == ["AAPL", "TSLA"]
    await stores.both.ping()


async def test_files_hide_rows_of_the_same_symbol(stores):
    await stores.rows.write("AAPL", MINUTE, BARS)
    await stores.files.write("AAPL", MINUTE, OTHER)
    assert await closes(stores.both, "AAPL") == OTHER.close.tolist()
    assert await stores.both.symbols(as_of=FAR) == ["AAPL"]
    assert await stores.both.count("AAPL", TIMEFRAMES["5m"], as_of=FAR) == 20


async def test_every_read_goes_where_the_series_is(stores):
    await stores.rows.write("AAPL", DAY, walk(every(86_400, at("2026-01-01T00:00"), 10)))
    await stores.files.write("TSLA", MINUTE, BARS)
    for symbol, length, store in (("AAPL", DAY, stores.rows), ("TSLA", TIMEFRAMES["1h"], stores.files)):
        page, total = await stores.both.page(symbol, length, 3, skip=2, as_of=FAR)
        expected, expected_total = await store.page(symbol, length, 3, skip=2, as_of=FAR)
        assert (rows(page), total) == (rows(expected), expected_total)
        span = (now(at("2026-01-03T00:00")), now(at("2026-01-16T00:00")))
        both, alone = [await one.between(symbol, length, *span, as_of=FAR) for one in (stores.both, store)]
        assert rows(both) == rows(alone)


async def test_a_home_with_neither_says_what_to_do(stores, tmp_path):
    both = stores.both
    for ask in (both.ping(), both.symbols(as_of=FAR), closes(both, "AAPL"), both.series("AAPL", as_of=FAR)):
        with pytest.raises(NotConfigured, match=r"collect alpaca.*ALPACA_API_KEY.*import candles.*quantdeck demo"):
            await ask
    assert (await stores.both.storage(as_of=FAR)).place == str(tmp_path / "data")
    assert list(tmp_path.iterdir()) == []


async def test_a_series_is_written_where_it_is_and_a_new_one_where_the_setting_says(stores, tmp_path):
    settings = Settings(home=tmp_path)
    filing = home.connect("home:files", settings, Databases(settings))
    await stores.both.write("AAPL", MINUTE, BARS[:10])
    await filing.write("TSLA", MINUTE, BARS[:10])
    for store in (stores.both, filing):
        await store.write("AAPL", MINUTE, BARS[10:20])
        await store.write("TSLA", MINUTE, BARS[10:20])
    assert await closes(stores.rows, "AAPL") == BARS.close[:20].tolist()
    assert await closes(stores.files, "TSLA") == BARS.close[:20].tolist()
    assert await stores.files.symbols(as_of=FAR) == ["TSLA"]
    with pytest.raises(QueryFailed, match="is stored in bars of 1m"):
        await filing.write("AAPL", DAY, walk([at("2026-01-01T00:00")]))
    for symbol in ("AAPL", "TSLA"):
        await stores.both.forget(symbol)
    assert await stores.both.symbols(as_of=FAR) == []
    await filing.close()


async def test_storage_is_that_of_both(stores, tmp_path):
    await stores.rows.write("AAPL", MINUTE, BARS)
    alone = await stores.both.storage(as_of=FAR)
    assert (alone.place, alone.size_bytes >= (tmp_path / "market.db").stat().st_size) == (str(tmp_path), True)
    await stores.files.write("TSLA", MINUTE, BARS)
    both = await stores.both.storage(as_of=FAR)
    assert (both.place, both.size_bytes > alone.size_bytes) == (str(tmp_path / "data"), True)


@pytest.mark.parametrize("where", ["files", "rows"])
async def test_no_read_has_a_bar_that_closes_later(stores, where):
    store = getattr(stores, where)
    await store.write("BTC/USD", MINUTE, BARS[:100])
    hour, middle = TIMEFRAMES["1h"], now(NOON_S + 100 * 60)

    async def told(bars: Any) -> list[Any]:
        return rows(await bars)

    async def page(source: Home, as_of: Any) -> Any:
        bars, total = await source.page("BTC/USD", MINUTE, 3, as_of=as_of)
        return rows(bars), total

    async def write_later() -> None:
        await store.write("BTC/USD", MINUTE, BARS[100:])
        await store.write("LATER/USD", MINUTE, BARS[100:])

    reads = {
        "symbols": lambda source, as_of: source.symbols(as_of=as_of),
        "series": lambda source, as_of: source.series("BTC/USD", as_of=as_of),
        "between": lambda source, as_of: told(source.between("BTC/USD", MINUTE, now(0), FAR, as_of=as_of)),
        "newest": lambda source, as_of: told(source.newest("BTC/USD", hour, 3, as_of=as_of)),
        "count": lambda source, as_of: source.count("BTC/USD", MINUTE, as_of=as_of),
        "page": page,
    }
    no_reads = {"write", "forget", "snapshot", "storage", "store_of"}
    await assert_sealed(stores.both, reads, write_later, at=middle, later=FAR, no_reads=no_reads)


async def test_it_is_what_every_server_reads_where_nothing_is_said(tmp_path):
    for said, kind in (("", Home), ("embedded", Embedded), ("home", Home)):
        async with open_app(Settings(home=tmp_path, candles=SecretStr(said)), (load("market-data-mcp"),)) as app:
            assert type(app.runtime.source(Candles)) is kind


async def test_without_the_extra_files_keep_nobody_from_what_was_imported(stores, monkeypatch):
    await stores.rows.write("AAPL", MINUTE, BARS)
    await stores.files.write("TSLA", MINUTE, OTHER)
    monkeypatch.setitem(sys.modules, "duckdb", None)
    monkeypatch.delitem(sys.modules, "quantdeck.connections.duckdb")
    assert await closes(stores.both, "AAPL") == BARS.close.tolist()
    with pytest.raises(Unreachable, match=r"pip install 'quantdeck\[parquet\]'"):
        await closes(stores.both, "TSLA")


def test_it_has_no_other_place(tmp_path):
    settings = Settings(home=tmp_path)
    with pytest.raises(MisconfiguredError, match="says more than home"):
        home.connect("home:elsewhere", settings, Databases(settings))


async def test_reads_of_one_snapshot_agree(stores):
    await stores.rows.write("AAPL", MINUTE, BARS[:10])
    async with stores.both.snapshot():
        before = await stores.both.count("AAPL", MINUTE, as_of=FAR)
        async with asyncio.TaskGroup() as others:  # of a context of its own, as another process has
            others.create_task(stores.other_rows.write("AAPL", MINUTE, BARS[:20]))
        assert await stores.both.count("AAPL", MINUTE, as_of=FAR) == before
    assert await stores.both.count("AAPL", MINUTE, as_of=FAR) == 20


async def test_a_ping_asks_each_store_that_there_is(stores, tmp_path, monkeypatch):
    await stores.files.write("TSLA", MINUTE, OTHER)
    await stores.both.ping()
    with monkeypatch.context() as hidden:
        hidden.setitem(sys.modules, "duckdb", None)
        hidden.delitem(sys.modules, "quantdeck.connections.duckdb")
        with pytest.raises(Unreachable, match="pip install"):
            await home.connect("", Settings(home=tmp_path), Databases(Settings(home=tmp_path))).ping()
    (tmp_path / "market.db").write_bytes(b"no database" * 1000)
    with pytest.raises(SourceError):
        await stores.both.ping()
