"""The Parquet adapter: the spec's files, whoever writes them. What it has in common with others: the port's suite."""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from quantdeck.connections.databases import Databases
from quantdeck.core.errors import NotConfigured, QueryFailed, Unreachable
from quantdeck.domain.candles import Bars
from quantdeck.domain.timeframes import DAY, MINUTE, TIMEFRAMES
from quantdeck.settings import MisconfiguredError, Settings
from quantdeck.sources.candles.layout import name_of, parsed
from quantdeck.sources.candles.parquet import IN_MEMORY, ParquetCandles, connect
from tests.support.bars import FAR, at, every, now, rows, walk

NOON_S = at("2026-01-15T12:00")
BARS = walk(every(60, NOON_S, 100))
HOUR = TIMEFRAMES["1h"]

Opening = Callable[..., ParquetCandles]


@pytest.fixture
async def opened(tmp_path: Path) -> AsyncIterator[Opening]:
    async with AsyncExitStack() as stack:

        def open_(url: str = "parquet:", home: Path = tmp_path) -> ParquetCandles:
            settings = Settings(home=home)
            candles = connect(url, settings, Databases(settings))
            stack.push_async_callback(candles.close)
            return candles

        yield open_


@pytest.fixture
def candles(opened, tmp_path) -> ParquetCandles:
    (tmp_path / "data").mkdir()
    store: ParquetCandles = opened()
    return store


def foreign(path: Path, select: str, **columns: Any) -> None:
    """A file that somebody else wrote."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with duckdb.connect() as engine:
        engine.register("bars", columns)
        engine.execute(f"COPY ({select}) TO '{path}' (FORMAT parquet)")


AS_IT_SHOULD_BE = "SELECT to_timestamp(time) AS time, * EXCLUDE (time) FROM bars"


def written(path: Path, bars: Bars, select: str = AS_IT_SHOULD_BE) -> None:
    names = ("time", "open", "high", "low", "close", "volume")
    foreign(path, select, **dict(zip(names, bars.columns(), strict=True)))


async def newest(candles: ParquetCandles, count: int = 10_000, symbol: str = "AAPL") -> list[Any]:
    return rows(await candles.newest(symbol, MINUTE, count, as_of=FAR))


async def test_files_are_where_the_spec_has_them_by_each_bars_own_month(candles, tmp_path):
    await candles.write("AAPL", MINUTE, walk([at("2025-09-30T23:59"), at("2025-10-01T00:00"), at("2026-01-01T00:00")]))
    await candles.write("BRK.B", MINUTE, walk([at("2025-12-31T23:59")]))
    await candles.write("BTC/USD", MINUTE, walk([at("2025-12-31T23:59")]))
    files = sorted(str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*.parquet"))
    assert files == [
        "data/crypto/1min/BTC_USD_2025-12.parquet",
        "data/stocks/1min/AAPL_2025-09.parquet",
        "data/stocks/1min/AAPL_2025-10.parquet",
        "data/stocks/1min/AAPL_2026-01.parquet",
        "data/stocks/1min/BRK.B_2025-12.parquet",
    ]


async def test_a_file_is_what_other_programs_read(candles, tmp_path):
    await candles.write("AAPL", MINUTE, BARS)
    file = str(tmp_path / "data/stocks/1min/AAPL_2026-01.parquet")
    with duckdb.connect() as engine:
        shape = engine.execute("SELECT column_name, column_type FROM (DESCRIBE SELECT * FROM read_parquet(?))", [file])
        kinds = dict(shape.fetchall())
        packed = engine.execute("SELECT DISTINCT compression FROM parquet_metadata(?)", [file]).fetchall()
        times = engine.execute("SELECT epoch(time) FROM read_parquet(?)", [file]).fetchall()
    assert kinds == {
        "time": "TIMESTAMP WITH TIME ZONE",
        **dict.fromkeys(("open", "high", "low", "close", "volume"), "DOUBLE"),
    }
    assert packed == [("SNAPPY",)]
    assert [time for (time,) in times] == BARS.time.tolist()


OTHERS = {
    "naive": "SELECT to_timestamp(time) AT TIME ZONE 'UTC' AS time, * EXCLUDE (time) FROM bars",
    "nanoseconds": "SELECT (to_timestamp(time) AT TIME ZONE 'UTC')::TIMESTAMP_NS AS time, * EXCLUDE (time) FROM bars",
    "integers": "SELECT * EXCLUDE (time, volume), volume::BIGINT AS volume, to_timestamp(time) AS time FROM bars",
    "disorder": "SELECT 1 AS vwap, to_timestamp(time) AS time, * EXCLUDE (time) FROM bars ORDER BY random()",
    "no time": f"{AS_IT_SHOULD_BE} UNION ALL SELECT NULL, 1, 1, 1, 1, 1",
    "no numbers": f"{AS_IT_SHOULD_BE} UNION ALL SELECT to_timestamp(time + 86400), 'nan', NULL, 1, 1, 1 FROM bars",
    "half minutes": f"{AS_IT_SHOULD_BE} UNION ALL SELECT to_timestamp(time + 30), 1, 1, 1, 1, 1 FROM bars",
    "another month": f"{AS_IT_SHOULD_BE} UNION ALL SELECT to_timestamp(time - 40 * 86400), 1, 1, 1, 1, 1 FROM bars",
}


@pytest.mark.parametrize("select", OTHERS.values(), ids=OTHERS)
async def test_what_others_wrote_is_read_and_what_is_no_bar_left_out(candles, tmp_path, select):
    bars = replace(BARS, volume=BARS.volume.round())
    written(tmp_path / "data/stocks/1min/AAPL_2026-01.parquet", bars, select)
    assert await newest(candles) == rows(bars)


async def test_of_two_bars_of_one_open_the_last_counts(candles, tmp_path):
    price = [1.0, 2.0, 3.0]
    twice = Bars.of([NOON_S, NOON_S + 60, NOON_S], price, price, price, price, price)
    written(tmp_path / "data/stocks/1min/AAPL_2026-01.parquet", twice)
    assert [bar[:2] for bar in await newest(candles)] == [(NOON_S, 3.0), (NOON_S + 60, 2.0)]


async def test_what_would_not_be_written_again_is_kept_beside_the_file(candles, tmp_path):
    file = tmp_path / "data/stocks/1min/AAPL_2026-01.parquet"
    written(file, BARS, "SELECT 1 AS vwap, to_timestamp(time) AS time, * EXCLUDE (time) FROM bars")
    before = file.read_bytes()
    await candles.write("AAPL", MINUTE, walk([NOON_S + 60_000]))
    assert file.with_suffix(".parquet.before").read_bytes() == before
    assert len(await newest(candles)) == 101
    assert await candles.symbols(as_of=FAR) == ["AAPL"]


async def test_a_change_by_anybody_is_in_the_next_answer(opened, candles, tmp_path):
    file = tmp_path / "data/stocks/1min/AAPL_2026-01.parquet"
    written(file, BARS[:50])
    assert await newest(candles) == rows(BARS)[:50]
    written(file, BARS[:60])  # in place, as a careless program does it
    assert await newest(candles) == rows(BARS)[:60]
    await opened().write("AAPL", MINUTE, BARS[60:70])
    assert await newest(candles) == rows(BARS)[:70]
    await candles.write("AAPL", MINUTE, BARS[70:80])
    assert await newest(candles) == rows(BARS)[:80]
    file.unlink()
    assert await newest(candles) == []
    assert await candles.symbols(as_of=FAR) == []


async def test_changes_that_follow_at_once_are_all_seen(opened, candles):
    """Faster than the file system's clock ticks, and of one size."""
    other = opened()
    for price in range(1, 40):
        await other.write("AAPL", MINUTE, Bars.of([NOON_S], [price], [price], [price], [price], [1]))
        assert [bar[4] for bar in await newest(candles)] == [price]
        hourly = await candles.newest("AAPL", HOUR, 5, as_of=FAR)
        assert hourly.close.tolist() == [price]
        assert await candles.count("AAPL", DAY, as_of=FAR) == 1


async def test_a_month_in_the_middle_that_changes_changes_what_is_derived_of_it(opened, candles):
    months = ["2025-10-15T12:00", "2025-11-15T12:00", "2025-12-15T12:00", "2026-01-15T12:00"]
    await candles.write("AAPL", MINUTE, walk([open_s for month in months for open_s in every(60, at(month), 1500)]))
    asked = [lambda: candles.newest("AAPL", DAY, 8, as_of=FAR), lambda: candles.newest("AAPL", HOUR, 500, as_of=FAR)]
    first = [rows(await ask()) for ask in asked]
    assert [rows(await ask()) for ask in asked] == first
    await opened().write("AAPL", MINUTE, walk([at("2025-11-20T12:00")]))
    days, hours = [(await ask()).time.tolist() for ask in asked]
    assert at("2025-11-20T00:00") in days
    assert at("2025-11-20T12:00") in hours
    assert len(days) == len(first[0])


async def test_no_more_than_the_spec_says_is_kept_in_memory_and_older_bars_are_read(candles):
    bars = walk(every(60, at("2025-12-31T00:00"), 2 * IN_MEMORY))
    await candles.write("BTC/USD", MINUTE, bars)
    for count in (1, IN_MEMORY - 1, IN_MEMORY, IN_MEMORY + 1, 2 * IN_MEMORY):
        found = await candles.newest("BTC/USD", MINUTE, count, as_of=FAR)
        assert rows(found) == rows(bars)[-count:]
        kept = found.time if found.time.base is None else found.time.base
        assert count > IN_MEMORY or len(kept) == IN_MEMORY
    cut = now(int(bars.time[1440]))
    assert rows(await candles.newest("BTC/USD", MINUTE, 5, as_of=cut)) == rows(bars)[1435:1440]


TORN = [b"", b"PAR1", b"not a parquet file at all", b"PAR1" + b"\0" * 4000 + b"PAR1"]


@pytest.mark.parametrize("content", TORN, ids=["empty", "begun", "text", "zeroes"])
async def test_a_torn_file_is_named_never_written_over_and_others_are_read(candles, tmp_path, content):
    await candles.write("AAPL", MINUTE, BARS)
    torn = tmp_path / "data/stocks/1min/TSLA_2026-01.parquet"
    torn.write_bytes(content)
    for ask in (newest(candles, symbol="TSLA"), candles.write("TSLA", MINUTE, BARS)):
        with pytest.raises(QueryFailed, match=r"TSLA_2026-01\.parquet is damaged"):
            await ask
    assert torn.read_bytes() == content
    assert await newest(candles) == rows(BARS)
    written(torn, BARS)
    assert await newest(candles, symbol="TSLA") == rows(BARS)


async def test_half_a_file_is_damaged_whereever_it_ends(candles, tmp_path):
    await candles.write("AAPL", MINUTE, BARS)
    file = tmp_path / "data/stocks/1min/AAPL_2026-01.parquet"
    whole = file.read_bytes()
    for size in range(1, len(whole), len(whole) // 7):
        file.write_bytes(whole[:size])
        with pytest.raises(QueryFailed, match="damaged"):
            await newest(candles)
    file.write_bytes(whole)
    assert await newest(candles) == rows(BARS)


async def test_a_file_without_the_columns_is_no_file_of_bars(candles, tmp_path):
    foreign(tmp_path / "data/stocks/1min/AAPL_2026-01.parquet", "SELECT a AS close FROM bars", a=np.ones(1))
    with pytest.raises(QueryFailed, match="no Parquet file with the columns time, open"):
        await newest(candles)


async def test_whatever_else_lies_there_is_left_alone(candles, tmp_path):
    await candles.write("AAPL", MINUTE, BARS)
    folder = tmp_path / "data/stocks/1min"
    for name in (
        ".DS_Store", "README", "AAPL.parquet", "AAPL_2026-13.parquet", "AAPL_0000-01.parquet", "aapl_2026-02.parquet",
        "AAPL_2026-01.parquet.tmp", "A*_2026-01.parquet", "BTC_USD_2026-01.parquet", "_2026-01.parquet",
        "AAPL_2026-1.parquet",
    ):  # fmt: skip
        (folder / name).write_bytes(b"?")
    (folder / "MSFT").mkdir()
    assert await candles.symbols(as_of=FAR) == ["AAPL"]
    assert await newest(candles) == rows(BARS)


HOSTILE = ["../AAPL", "..", "a/../../b", "AAPL/../X", "/etc/passwd", "C:\\x", "A*", "A?", "[A]", "A'B", "A B", "AAPL\n",
           ".AAPL", "AAPL.", "aapl", "BTC_USD", "BTC//USD", "BTC/USD/X", "A\u0041\u030a", "X" * 11]  # fmt: skip


@pytest.mark.parametrize("symbol", HOSTILE, ids=ascii)
async def test_a_name_that_could_be_a_path_reaches_none(candles, tmp_path, symbol):
    assert name_of(symbol) is None
    assert await newest(candles, symbol=symbol) == []
    with pytest.raises((QueryFailed, ValueError)):
        await candles.write(symbol, MINUTE, BARS)
    await candles.forget(symbol)
    assert [file for file in tmp_path.rglob("*") if file.is_file() and file.name != ".lock"] == []


def test_each_name_is_read_back_from_its_file():
    for symbol in ("AAPL", "BRK.B", "A", "BTC/USD", "1INCH/USD", "ETH/BTC"):
        name = name_of(symbol)
        assert name is not None
        for month in (-1, 0, 671, 672, 96_359):
            assert parsed(name.folder, name.file(month)) == (symbol, month)


async def test_a_home_may_have_any_name(opened, tmp_path):
    for name in ("a[b]c", "it's", "x=1", "st*r", "what?", "per%20cent", "ünï"):
        candles = opened(home=tmp_path / name)
        (tmp_path / name / "data").mkdir(parents=True)
        await candles.write("AAPL", MINUTE, BARS)
        assert await newest(candles) == rows(BARS)


async def test_a_home_without_bars_says_what_to_do_and_the_first_write_makes_it(opened, tmp_path):
    candles = opened()
    for ask in (candles.ping(), newest(candles), candles.symbols(as_of=FAR)):
        with pytest.raises(NotConfigured, match=r"collect alpaca.*ALPACA_API_KEY.*QUANTDECK_CANDLES") as told:
            await ask
        assert told.value.details == {"setting": "QUANTDECK_CANDLES"}
    assert (await candles.storage(as_of=FAR)).size_bytes == 0
    await candles.forget("AAPL")
    assert list(tmp_path.iterdir()) == []
    await candles.write("AAPL", MINUTE, BARS)
    assert await newest(candles) == rows(BARS)


async def test_a_url_may_name_another_folder(opened, tmp_path):
    other = tmp_path / "other place"
    await opened(f"parquet:///{str(other).replace(' ', '%20')}").write("AAPL", MINUTE, BARS)
    assert (other / "stocks/1min/AAPL_2026-01.parquet").is_file()
    for url in ("parquet:data", "parquet://host/data", "parquet:///data", "parquet:////data?x", "parquet:////a%00b"):
        with pytest.raises(MisconfiguredError, match="parquet:////absolute/folder"):
            opened(url)


async def test_where_the_system_refuses_it_is_said(opened, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data/stocks").write_text("a file where a folder should be")
    with pytest.raises(Unreachable, match="the system refuses"):
        await opened().write("AAPL", MINUTE, BARS)


async def test_storage_is_what_the_files_take_of_months_that_had_begun(candles, tmp_path):
    await candles.write("AAPL", MINUTE, walk([at("2025-12-15T12:00"), at("2026-01-15T12:00")]))
    sizes = [file.stat().st_size for file in sorted(tmp_path.rglob("*.parquet"))]
    found = await candles.storage(as_of=FAR)
    assert (found.place, found.size_bytes) == (str(tmp_path / "data"), sum(sizes))
    assert (await candles.storage(as_of=now(at("2025-12-31T23:00")))).size_bytes == sizes[0]


async def test_reading_files_does_not_hold_up_others(candles):
    await candles.write("BTC/USD", MINUTE, walk(every(60, at("2026-01-01T00:00"), 40_000)))
    read = asyncio.ensure_future(newest(candles, symbol="BTC/USD", count=39_000))
    turns = 0
    while not read.done():
        await asyncio.sleep(0)
        turns += 1
    assert len(await read) == 39_000
    assert turns > 50


def _write_on(home: Path, begun: Event) -> None:
    async def run() -> None:
        settings = Settings(home=home)
        candles = connect("parquet:", settings, Databases(settings))
        for minute in range(10_000):
            await candles.write("AAPL", MINUTE, walk(every(60, NOON_S, minute + 1)))
            if minute == 5:
                begun.set()

    asyncio.run(run())


async def test_a_writer_that_is_killed_leaves_whole_files_and_nobody_locked_out(candles, tmp_path):
    context = multiprocessing.get_context("spawn")
    begun = context.Event()
    writer = context.Process(target=_write_on, args=(tmp_path, begun))
    writer.start()
    assert await asyncio.to_thread(begun.wait, 40)
    writer.kill()
    await asyncio.to_thread(writer.join, 20)
    found = await newest(candles)
    assert len(found) >= 6
    assert found == rows(walk(every(60, NOON_S, len(found))))
    (tmp_path / "data/stocks/1min/.TSLA_2026-01.parquet.0.tmp").write_bytes(b"half of a file")
    await candles.write("AAPL", MINUTE, BARS)
    assert [file.name for file in (tmp_path / "data/stocks/1min").iterdir()] == ["AAPL_2026-01.parquet"]


async def test_a_write_that_is_given_up_is_whole_or_not_at_all(candles):
    for steps in range(12):
        write = asyncio.ensure_future(candles.write("AAPL", MINUTE, walk(every(60, NOON_S, 50), seed=steps)))
        for _ in range(steps):
            await asyncio.sleep(0)
        write.cancel()
        await asyncio.gather(write, return_exceptions=True)
    await candles.write("AAPL", MINUTE, BARS)
    assert await newest(candles) == rows(BARS)


async def test_what_is_there_already_is_not_written_again(candles, tmp_path):
    """A backfill asks for ten minutes again after each break; no reader has to read a file anew for that."""
    await candles.write("AAPL", MINUTE, BARS)
    (file,) = (tmp_path / "data/stocks/1min").glob("*.parquet")
    before = file.stat().st_ino
    await candles.write("AAPL", MINUTE, BARS[-10:])
    assert file.stat().st_ino == before
    await candles.write("AAPL", MINUTE, walk(BARS.time[-10:].tolist(), seed=9))
    assert file.stat().st_ino != before
