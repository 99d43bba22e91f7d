"""What every adapter of the port `candles` does. An adapter joins by an entry in tests/support/candle_stores.py."""

from __future__ import annotations

import asyncio
import itertools
import multiprocessing
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import UTC, datetime
from multiprocessing.synchronize import Event
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quantdeck.core.errors import QueryFailed, SourceError
from quantdeck.domain.candles import Bars, joined, resampled
from quantdeck.domain.timeframes import DAY, MINUTE, TIMEFRAMES, FinerThanStored, derivable
from quantdeck.sources.candles import Candles, Series
from tests.support.bars import FAR, at, every, now, rows, walk
from tests.support.candle_stores import FEATURES, KINDS, Place
from tests.support.leaks import Reads, assert_sealed

HOUR = TIMEFRAMES["1h"]
NOON_S = at("2026-01-15T12:00")
LONG_AGO, LONG_AFTER = datetime(1900, 1, 1, tzinfo=UTC), datetime(2090, 1, 1, tzinfo=UTC)


def at_any_base(base: str) -> Any:
    """A base that only some stores take."""
    return pytest.param(base, marks=pytest.mark.relies_on("any base"))


each_timeframe = pytest.mark.parametrize("timeframe", TIMEFRAMES.values(), ids=str)
quick = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(params=[pytest.param(name, marks=kind.marks) for name, kind in KINDS.items()])
async def place(request, tmp_path) -> Place:
    """A place with no bars in it. What a kind lacks must fail: a gap that is closed is struck from its entry."""
    kind = KINDS[request.param]
    for mark in request.node.iter_markers("relies_on"):
        assert mark.args[0] in FEATURES
        if reason := kind.lacks.get(mark.args[0]):
            request.applymarker(pytest.mark.xfail(reason=f"{request.param} lacks {mark.args[0]}: {reason}"))
    return await kind.make(tmp_path / "place")


@pytest.fixture
async def candles(place) -> AsyncIterator[Candles]:
    async with place.open() as opened:
        yield opened


async def everything(candles: Candles, symbol: str, timeframe=MINUTE, as_of=FAR) -> Bars:
    return await candles.between(symbol, timeframe, LONG_AGO, LONG_AFTER, as_of=as_of)


def gappy(first_s: int, many: int, seed: int = 3, step_s: int = 60) -> list[int]:
    """Opens with gaps of every size up to two weeks."""
    steps = np.random.default_rng(seed).choice(list(ODDS), size=many, p=list(ODDS.values()))
    steps[steps * step_s > 86_400 * 15] = 2
    return [first_s + step_s * int(place) for place in np.cumsum(steps)]


ODDS = {1: 0.9, 2: 0.05, 7: 0.03, 61: 0.0145, 1441: 0.005, 20_000: 0.0005}


# What is written is read.


@pytest.mark.relies_on("exact values")
@pytest.mark.parametrize("base", ["1m", *map(at_any_base, ["2m", "5m", "15m", "30m", "1h", "4h", "8h", "12h", "1d"])])
async def test_bars_are_read_as_they_were_written_at_any_base(place, candles, base):
    length = TIMEFRAMES[base]
    bars = walk(gappy(length.floor(at("2019-12-30T00:00")), 3000, step_s=length.seconds))
    await place.fill("BTC/USD", length, bars)
    assert rows(await everything(candles, "BTC/USD", length)) == rows(bars)
    assert rows(await candles.newest("BTC/USD", length, 5000, as_of=FAR)) == rows(bars)
    assert await candles.count("BTC/USD", length, as_of=FAR) == len(bars)
    first, last = int(bars.time[0]), int(bars.time[-1])
    assert await candles.series("BTC/USD", as_of=FAR) == Series("BTC/USD", length, first, last)


@pytest.mark.relies_on("exact values")
async def test_every_digit_of_a_number_is_kept(place, candles):
    odd = [0.1 + 0.2, 5e-324, 1e-300, 1e300, -37.63, -0.0, 123456789.123456789]
    columns = [np.array(odd)] * 4
    bars = Bars.of(every(60, NOON_S, len(odd)), *columns, np.abs(odd))
    await place.fill("ODD", MINUTE, bars)
    assert rows(await everything(candles, "ODD")) == rows(bars)


async def test_columns_are_what_arithmetic_takes(place, candles):
    await place.fill("BTC/USD", MINUTE, walk(every(60, NOON_S, 3000)))
    for bars in (await everything(candles, "BTC/USD"), await candles.newest("BTC/USD", HOUR, 10, as_of=FAR)):
        assert bars.time.dtype == np.int64
        assert {column.dtype for column in list(bars.columns())[1:]} == {np.dtype(np.float64)}
        assert all(column.flags.c_contiguous for column in bars.columns())


EDGES = ["1969-12-31T23:58", "2024-02-28T23:58", "2024-02-29T23:58", "2025-12-31T23:58", "2026-01-31T23:58"]


@pytest.mark.parametrize("edge", EDGES)
async def test_days_months_and_years_end_without_a_seam(place, candles, edge):
    bars = walk(every(60, at(edge), 4))
    await place.fill("BTC/USD", MINUTE, bars)
    assert rows(await everything(candles, "BTC/USD")) == rows(bars)
    assert rows(await candles.newest("BTC/USD", MINUTE, 3, as_of=FAR)) == rows(bars)[1:]
    middle = datetime.fromtimestamp(at(edge) + 120, UTC)
    assert rows(await candles.between("BTC/USD", MINUTE, LONG_AGO, middle, as_of=FAR)) == rows(bars)[:2]
    assert rows(await candles.between("BTC/USD", MINUTE, middle, LONG_AFTER, as_of=FAR)) == rows(bars)[2:]
    for timeframe in TIMEFRAMES.values():
        assert rows(await everything(candles, "BTC/USD", timeframe)) == rows(resampled(bars, timeframe))


async def test_the_start_belongs_to_a_range_and_the_end_does_not(place, candles):
    bars = walk(every(60, NOON_S, 10))
    await place.fill("BTC/USD", MINUTE, bars)

    async def opens(start_s: float, end_s: float) -> list[int]:
        found = await candles.between("BTC/USD", MINUTE, now(start_s), now(end_s), as_of=FAR)
        return [(int(time) - NOON_S) // 60 for time in found.time]

    assert await opens(NOON_S + 60, NOON_S + 180) == [1, 2]
    assert await opens(NOON_S + 60.000001, NOON_S + 180.000001) == [2, 3]
    assert await opens(NOON_S + 59.999999, NOON_S + 60) == []
    assert await opens(NOON_S + 180, NOON_S + 60) == []


# What is derived.


@pytest.mark.parametrize("base", ["1m", at_any_base("5m")])
async def test_every_coarser_length_is_what_the_one_function_makes_of_the_stored_bars(place, candles, base):
    length = TIMEFRAMES[base]
    bars = walk(gappy(at("2023-11-30T07:35"), 4000, step_s=length.seconds))
    await place.fill("BTC/USD", length, bars)
    for timeframe in derivable(length):
        expected = rows(resampled(bars, timeframe))
        assert rows(await everything(candles, "BTC/USD", timeframe)) == expected
        for count in (1, 7, 100, len(expected), len(expected) + 1):
            assert rows(await candles.newest("BTC/USD", timeframe, count, as_of=FAR)) == expected[-count:]
        assert await candles.count("BTC/USD", timeframe, as_of=FAR) == len(expected)


DUCKDB = """
    SELECT CAST(floor(time / {0}) AS BIGINT) * {0} AS bucket, arg_min(open, time), max(high), min(low),
           arg_max(close, time), sum(volume) FROM bars GROUP BY bucket ORDER BY bucket
"""


async def test_another_engine_makes_the_same_of_the_same_bars(place, candles):
    bars = walk(gappy(at("2023-11-30T07:35"), 6000, seed=5))
    await place.fill("BTC/USD", MINUTE, bars)
    names = ("time", "open", "high", "low", "close", "volume")
    with duckdb.connect() as engine:
        engine.register("bars", dict(zip(names, bars.columns(), strict=True)))
        for timeframe in TIMEFRAMES.values():
            theirs = engine.execute(DUCKDB.format(timeframe.seconds)).fetchall()
            ours = rows(await everything(candles, "BTC/USD", timeframe))
            assert [bar[:5] for bar in ours] == [bar[:5] for bar in theirs]
            assert [bar[5] for bar in ours] == pytest.approx([bar[5] for bar in theirs], rel=1e-12)


@pytest.mark.relies_on("any base")
async def test_a_length_finer_than_stored_is_refused_with_what_there_is(place, candles):
    await place.fill("AAPL", DAY, walk(every(86_400, at("2026-01-01T00:00"), 5)))
    await place.fill("MSFT", TIMEFRAMES["2h"], walk(every(7200, at("2026-01-01T00:00"), 5)))
    for symbol, timeframe, available in (
        ("AAPL", HOUR, ["1d"]),
        ("MSFT", TIMEFRAMES["3h"], ["2h", "4h", "6h", "8h", "12h", "1d"]),
    ):
        for asked in (
            everything(candles, symbol, timeframe),
            candles.newest(symbol, timeframe, 1, as_of=FAR),
            candles.count(symbol, timeframe, as_of=FAR),
        ):
            with pytest.raises(FinerThanStored) as refused:
                await asked
            assert refused.value.available == available


# The barrier.


def reads(timeframe) -> Reads:
    return {
        "symbols": lambda source, as_of: source.symbols(as_of=as_of),
        "series": lambda source, as_of: source.series("BTC/USD", as_of=as_of),
        "between": lambda source, as_of: told(everything(source, "BTC/USD", timeframe, as_of)),
        "newest": lambda source, as_of: told(source.newest("BTC/USD", timeframe, 3, as_of=as_of)),
        "count": lambda source, as_of: source.count("BTC/USD", timeframe, as_of=as_of),
        "page": lambda source, as_of: paged(source.page("BTC/USD", timeframe, 3, skip=1, as_of=as_of)),
    }


async def paged(page) -> tuple[list[tuple[Any, ...]], int]:
    bars, total = await page
    return rows(bars), total


async def told(bars) -> list[tuple[Any, ...]]:
    return rows(await bars)


@each_timeframe
async def test_no_read_has_a_bar_that_closes_later(place, candles, timeframe):
    bars = walk(every(60, NOON_S - 3 * 86_400, 5 * 1440))
    cut = int(bars.time.searchsorted(NOON_S))
    await place.fill("BTC/USD", MINUTE, bars[:cut])

    async def write_later() -> None:
        await place.fill("BTC/USD", MINUTE, bars[cut:])
        await place.fill("LATER/USD", MINUTE, bars[cut:])

    asked_at, later = now(NOON_S + 59.999999), now(NOON_S + 2 * 86_400)
    no_reads = {"write", "forget", "snapshot", "storage", "store_of", "has", "is_there", "symbols_filed"}
    await assert_sealed(candles, reads(timeframe), write_later, at=asked_at, later=later, no_reads=no_reads)


@each_timeframe
async def test_a_bar_is_known_at_its_close_and_not_a_microsecond_before(place, candles, timeframe):
    day_s = at("2026-01-15T00:00")
    bars = walk(every(60, day_s, 2 * 1440))
    await place.fill("BTC/USD", MINUTE, bars)
    close_s = day_s + timeframe.seconds
    expected = rows(resampled(bars, timeframe))[:1]

    async def known(as_of) -> list[Any]:
        newest = rows(await candles.newest("BTC/USD", timeframe, 5, as_of=as_of))
        assert rows(await everything(candles, "BTC/USD", timeframe, as_of)) == newest
        assert await candles.count("BTC/USD", timeframe, as_of=as_of) == len(newest)
        return newest

    assert await known(now(close_s - 0.000001)) == []
    assert await known(now(close_s)) == expected


async def test_a_series_begins_when_its_first_bar_closes_and_ends_at_its_last_that_did(place, candles):
    await place.fill("BTC/USD", MINUTE, walk(every(60, NOON_S, 3000)))
    early = now(NOON_S + 59)
    assert await candles.symbols(as_of=early) == []
    assert await candles.series("BTC/USD", as_of=early) is None
    assert await candles.symbols(as_of=now(NOON_S + 60)) == ["BTC/USD"]
    for minutes in (1, 700, 2999, 3000, 9999):
        found = await candles.series("BTC/USD", as_of=now(NOON_S + 60 * minutes + 30))
        assert found == Series("BTC/USD", MINUTE, NOON_S, NOON_S + 60 * (min(minutes, 3000) - 1))


# Corrections and what is refused.

NUMBERS = itertools.count()
"""Of symbols, where examples share a store."""


@pytest.mark.relies_on("writing")
async def test_the_last_version_of_a_bar_stays(candles):
    bars = walk(every(60, NOON_S, 2000))
    better = walk(every(60, NOON_S + 300, 1500), seed=8)
    assert await candles.write("BTC/USD", MINUTE, bars) == 2000
    assert await candles.write("BTC/USD", MINUTE, better) == 1500
    assert await candles.write("BTC/USD", MINUTE, better) == 1500
    assert rows(await everything(candles, "BTC/USD")) == rows(bars)[:5] + rows(better) + rows(bars)[1505:]


@pytest.mark.relies_on("writing")
async def test_bars_may_come_in_any_order_and_the_last_of_one_open_counts(candles):
    time = [NOON_S + 120, NOON_S, NOON_S + 120, NOON_S + 60, NOON_S]
    price = [1.0, 2.0, 3.0, 4.0, 5.0]
    assert await candles.write("BTC/USD", MINUTE, Bars.of(time, price, price, price, price, price)) == 3
    found = await everything(candles, "BTC/USD")
    assert found.time.tolist() == every(60, NOON_S, 3)
    assert found.close.tolist() == [5.0, 4.0, 3.0]


@pytest.mark.relies_on("writing")
@quick
@given(batches=st.lists(st.lists(st.integers(-40, 40), min_size=1, max_size=12), min_size=1, max_size=5))
async def test_however_bars_arrive_they_end_up_as_if_they_had_come_in_order(place, batches):
    """Each bar's price says which write it came from; hours between places, so that chunks are crossed."""
    expected: dict[int, float] = {}
    symbol = f"BTC{next(NUMBERS)}/USD"
    async with place.open() as candles:
        for number, places in enumerate(batches):
            time = [NOON_S + 3600 * 7 * hours for hours in places]
            price = [1000.0 * number + nth for nth in range(len(time))]
            await candles.write(symbol, MINUTE, Bars.of(time, price, price, price, price, price))
            expected |= dict(zip(time, price, strict=True))
        found = await everything(candles, symbol)
        assert list(zip(found.time.tolist(), found.close.tolist(), strict=True)) == sorted(expected.items())
        ends = await candles.series(symbol, as_of=FAR)
        assert (ends.first_s, ends.last_s) == (min(expected), max(expected))


@pytest.mark.relies_on("writing")
async def test_a_past_that_is_imported_later_moves_the_beginning(candles):
    await candles.write("BTC/USD", MINUTE, walk(every(60, NOON_S, 10)))
    earlier = at("2011-03-01T00:00")
    await candles.write("BTC/USD", MINUTE, walk(every(60, earlier, 10)))
    assert (await candles.series("BTC/USD", as_of=FAR)).first_s == earlier
    assert (await candles.newest("BTC/USD", HOUR, 2, as_of=FAR)).time.tolist() == [earlier, NOON_S]


@pytest.mark.relies_on("writing")
@pytest.mark.parametrize(
    "bar, fault",
    [
        ((NOON_S, 1, float("nan"), 1, 1, 1), "not a finite number"),
        ((NOON_S, 1, 2, 3, 1, 1), "low is above"),
        ((NOON_S, 9, 2, 1, 1, 1), "high is below"),
        ((NOON_S, 1, 1, 1, 1, -1), "negative volume"),
        ((NOON_S, 1, 1e301, 1, 1, 1), "beyond 1e\\+300"),
        ((NOON_S + 1, 1, 1, 1, 1, 1), "between two bars"),
        ((NOON_S * 1000, 1, 1, 1, 1, 1), "no year"),
    ],
)
async def test_one_impossible_bar_keeps_all_that_come_with_it_out(candles, bar, fault):
    good = rows(walk(every(60, NOON_S + 600, 5)))
    with pytest.raises(ValueError, match=fault):
        await candles.write("BTC/USD", MINUTE, Bars.of(*zip(*good, bar, strict=True)))
    assert await candles.symbols(as_of=FAR) == []


@pytest.mark.relies_on("writing")
async def test_a_series_has_one_length(candles):
    await candles.write("BTC/USD", MINUTE, walk(every(60, NOON_S, 10)))
    with pytest.raises(QueryFailed, match="is stored in bars of 1m, so it cannot take bars of 1h"):
        await candles.write("BTC/USD", HOUR, walk(every(3600, NOON_S, 10)))
    assert await candles.count("BTC/USD", MINUTE, as_of=FAR) == 10


@pytest.mark.relies_on("forgetting")
@pytest.mark.relies_on("any base")
async def test_a_forgotten_series_is_gone_and_another_may_take_its_place(candles):
    for symbol in ("BTC/USD", "ETH/USD"):
        await candles.write(symbol, MINUTE, walk(every(60, NOON_S, 3000)))
    for symbol in ("BTC/USD", "BTC/USD", "NOPE", "ETH%", "", "\0"):
        await candles.forget(symbol)
    assert await candles.symbols(as_of=FAR) == ["ETH/USD"]
    assert len(await everything(candles, "BTC/USD")) == 0
    daily = walk(every(86_400, at("2026-01-01T00:00"), 5))
    await candles.write("BTC/USD", DAY, daily)
    assert rows(await everything(candles, "BTC/USD", DAY)) == rows(daily)
    assert await candles.count("ETH/USD", MINUTE, as_of=FAR) == 3000


@pytest.mark.relies_on("writing")
async def test_writing_nothing_makes_no_series(candles):
    assert await candles.write("BTC/USD", MINUTE, Bars.none()) == 0
    assert await candles.symbols(as_of=FAR) == []


# What is not there.

NOBODY = [
    "", " ", "NOPE", "btc%", "BTC/USD ", "\0", "BTC/USD\0", "BTC\nUSD", "'; DROP TABLE candle_series; --", '"', "\\",
    "x" * 5000, "\ud800", "\u202e", "../../etc/passwd", "BTC/USD' OR '1'='1", "*", "_", "$1", ":symbol", "BTC,USD=x",
]  # fmt: skip


@pytest.mark.parametrize("symbol", NOBODY, ids=ascii)
async def test_a_symbol_that_is_nobodys_has_no_bars(place, candles, symbol):
    await place.fill("BTC/USD", MINUTE, walk(every(60, NOON_S, 3)))
    assert await candles.series(symbol, as_of=FAR) is None
    assert len(await everything(candles, symbol)) == 0
    assert len(await candles.newest(symbol, HOUR, 10, as_of=FAR)) == 0
    assert await candles.count(symbol, MINUTE, as_of=FAR) == 0
    assert await candles.count("BTC/USD", MINUTE, as_of=FAR) == 3


STRANGE = [
    "BRK.B",
    "^GSPC",
    "ES=F",
    "O'NEIL",
    'QUO"TE',
    "BACK\\SLASH",
    "A,B=C D",
    "100%",
    "Ünïcode€",
    "株",
    "a_b",
    "a-b",
]


@pytest.mark.relies_on("any symbol")
async def test_strange_names_are_kept_apart(place, candles):
    for number, symbol in enumerate(STRANGE):
        await place.fill(symbol, MINUTE, walk(every(60, NOON_S, 2 + number), seed=number))
    assert await candles.symbols(as_of=FAR) == sorted(STRANGE)
    for number, symbol in enumerate(STRANGE):
        expected = rows(walk(every(60, NOON_S, 2 + number), seed=number))
        assert rows(await everything(candles, symbol)) == expected


@pytest.mark.relies_on("writing")
@pytest.mark.parametrize("symbol", ["", " BTC/USD", "BTC/USD\n", "\0", "x" * 65, "\ud800"], ids=ascii)
async def test_a_name_that_nobody_could_ask_for_is_not_stored(candles, symbol):
    with pytest.raises(ValueError, match="no name of a series"):
        await candles.write(symbol, MINUTE, walk([NOON_S]))
    assert await candles.symbols(as_of=FAR) == []


async def test_an_empty_store_answers_with_nothing(candles):
    await candles.ping()
    assert await candles.symbols(as_of=FAR) == []
    assert await candles.series("BTC/USD", as_of=FAR) is None
    assert len(await candles.newest("BTC/USD", MINUTE, 100, as_of=FAR)) == 0
    assert await candles.count("BTC/USD", DAY, as_of=FAR) == 0


async def test_questions_that_make_no_sense_are_refused_aloud(place, candles):
    await place.fill("BTC/USD", MINUTE, walk(every(60, NOON_S, 3)))
    for count, skip in ((-1, 0), (1, -1)):
        with pytest.raises(ValueError, match="neither may be negative"):
            await candles.newest("BTC/USD", MINUTE, count, skip=skip, as_of=FAR)
    naive = datetime(2026, 1, 15)  # noqa: DTZ001 - that is the point
    for start, end in ((naive, LONG_AFTER), (LONG_AGO, naive)):
        with pytest.raises(ValueError, match="offset from UTC"):
            await candles.between("BTC/USD", MINUTE, start, end, as_of=FAR)
    assert len(await candles.newest("BTC/USD", MINUTE, 0, as_of=FAR)) == 0


async def test_a_range_may_be_as_long_as_dates_go(place, candles):
    await place.fill("BTC/USD", MINUTE, walk(every(60, NOON_S, 3)))
    longest = (datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))
    assert len(await candles.between("BTC/USD", MINUTE, *longest, as_of=FAR)) == 3
    assert len(await candles.between("BTC/USD", DAY, *longest, as_of=FAR)) == 1


# Pages.


@pytest.mark.parametrize("timeframe", ["1m", "5m", "1h", "1d"])
async def test_pages_have_each_bar_exactly_once(place, candles, timeframe):
    length = TIMEFRAMES[timeframe]
    bars = walk(gappy(at("2025-06-30T00:00"), 5000, seed=11))
    await place.fill("BTC/USD", MINUTE, bars)
    whole = rows(resampled(bars, length))

    @settings(quick, max_examples=15)
    @given(size=st.integers(1, len(whole) + 5), cut=st.integers(0, len(whole) - 1))
    def paged(size: int, cut: int) -> None:
        asyncio.run(pages(size, cut))

    async def pages(size: int, cut: int) -> None:
        as_of = now(whole[cut][0] + length.seconds)
        async with place.open() as opened:
            total = await opened.count("BTC/USD", length, as_of=as_of)
            found: list[Any] = []
            for skip in range(0, max(total, 1), max(size, total // 8)):
                count = max(size, total // 8)
                found = rows(await opened.newest("BTC/USD", length, count, skip=skip, as_of=as_of)) + found
            assert total == cut + 1
            assert found == whole[: cut + 1]
            assert len(await opened.newest("BTC/USD", length, size, skip=total, as_of=as_of)) == 0

    await asyncio.to_thread(paged)


async def test_a_page_far_back_is_the_right_one(place, candles):
    bars = walk(gappy(at("2024-12-20T00:00"), 6_000, seed=2))
    await place.fill("BTC/USD", MINUTE, bars)
    for timeframe in (MINUTE, TIMEFRAMES["3m"]):
        whole = rows(resampled(bars, timeframe))
        for skip in (0, 2879, 2880, 2881, len(whole) - 1, len(whole), len(whole) + 1, 10**9):
            found = rows(await candles.newest("BTC/USD", timeframe, 7, skip=skip, as_of=FAR))
            end = max(len(whole) - skip, 0)
            assert found == whole[max(end - 7, 0) : end]
            page = await paged(candles.page("BTC/USD", timeframe, 7, skip=skip, as_of=FAR))
            assert page == (found, len(whole))


# Gaps.


async def test_a_gap_is_in_no_answer_and_pages_reach_over_it(place, candles):
    before, after = every(60, at("2024-01-31T23:50"), 20), every(60, at("2026-01-15T12:00"), 20)
    bars = walk([*before, *after])
    await place.fill("BTC/USD", MINUTE, bars)
    assert rows(await candles.newest("BTC/USD", MINUTE, 30, as_of=FAR)) == rows(bars)[-30:]
    found = await candles.newest("BTC/USD", DAY, 10, as_of=FAR)
    assert found.time.tolist() == [at("2024-01-31T00:00"), at("2024-02-01T00:00"), at("2026-01-15T00:00")]
    assert await candles.count("BTC/USD", HOUR, as_of=FAR) == 3
    in_the_gap = (datetime(2024, 6, 1, tzinfo=UTC), datetime(2025, 6, 1, tzinfo=UTC))
    assert len(await candles.between("BTC/USD", MINUTE, *in_the_gap, as_of=FAR)) == 0
    middle = await candles.newest("BTC/USD", MINUTE, 5, as_of=now(at("2025-01-01T00:00")))
    assert middle.time.tolist() == before[-5:]


async def test_sessions_of_a_stock_are_read_across_nights_and_weekends(place, candles):
    days = [at(f"2026-01-{day:02}T14:30") for day in (5, 6, 7, 8, 9, 12, 13, 14, 15, 16)]
    bars = walk([open_s for day in days for open_s in every(60, day, 390)])
    await place.fill("AAPL", MINUTE, bars)
    for name in ("1m", "30m", "1h", "1d"):
        whole = rows(resampled(bars, TIMEFRAMES[name]))
        assert rows(await candles.newest("AAPL", TIMEFRAMES[name], 9, as_of=FAR)) == whole[-9:]
        assert rows(await candles.newest("AAPL", TIMEFRAMES[name], 3000, as_of=FAR)) == whole[-3000:]


# Together.


@pytest.mark.relies_on("snapshots")
async def test_reads_within_a_snapshot_agree(place, candles):
    bars = walk(every(60, NOON_S, 2000))
    await place.fill("BTC/USD", MINUTE, bars[:1000])
    async with candles.snapshot():
        assert await candles.count("BTC/USD", MINUTE, as_of=FAR) == 1000
        await place.fill("BTC/USD", MINUTE, bars[1000:])
        assert await candles.count("BTC/USD", MINUTE, as_of=FAR) == 1000
        assert rows(await candles.newest("BTC/USD", MINUTE, 1, as_of=FAR)) == rows(bars)[999:1000]
    assert await candles.count("BTC/USD", MINUTE, as_of=FAR) == 2000


async def test_a_read_that_is_given_up_leaves_the_store_usable(place, candles):
    bars = walk(every(60, NOON_S, 30_000))
    await place.fill("BTC/USD", MINUTE, bars)
    for steps in range(8):
        read = asyncio.ensure_future(everything(candles, "BTC/USD"))
        for _ in range(steps):
            await asyncio.sleep(0)
        read.cancel()
        with suppress(asyncio.CancelledError):
            await read
    assert len(await everything(candles, "BTC/USD")) == 30_000


@pytest.mark.relies_on("writing")
async def test_many_may_ask_and_write_at_once(candles):
    parts = [walk(every(60, NOON_S + 60 * 50 * number, 50), seed=number) for number in range(20)]
    await asyncio.gather(*(candles.write("BTC/USD", MINUTE, part) for part in parts))
    found = await asyncio.gather(*(everything(candles, "BTC/USD") for _ in range(20)))
    assert all(rows(bars) == rows(joined(parts)) for bars in found)


VERSIONS, WIDE = 25, 4000


def versioned(version: int) -> Bars:
    price = [float(version)] * WIDE
    return Bars.of(every(60, NOON_S, WIDE), price, price, price, price, price)


def _rewrite(place: Place, reading: list[Event], done: Event) -> None:
    async def run() -> None:
        for event in reading:
            event.wait(30)
        async with place.open() as candles:
            for version in range(1, VERSIONS + 1):
                await candles.write("BTC/USD", MINUTE, versioned(version))
        done.set()

    asyncio.run(run())


def _watch(place: Place, reading: Event, done: Event) -> None:
    """Every read has one version whole, and none is older than the one before."""

    async def run() -> None:
        seen = [0.0]
        async with place.open() as candles:
            while not (last := done.is_set()) or seen[-1] < VERSIONS:
                bars = await everything(candles, "BTC/USD")
                versions = set(bars.close.tolist())
                assert len(bars) == WIDE, len(bars)
                assert len(versions) == 1, versions
                seen += versions
                assert (await candles.newest("BTC/USD", HOUR, 1, as_of=FAR)).close[0] >= seen[-1]
                reading.set()
                assert not last or seen[-1] == VERSIONS
        assert all(before <= after for before, after in itertools.pairwise(seen))

    asyncio.run(run())


@pytest.mark.relies_on("writing")
@pytest.mark.relies_on("whole writes")
async def test_readers_in_other_processes_never_see_half_of_a_write(place, candles):
    await candles.write("BTC/USD", MINUTE, versioned(0))
    context = multiprocessing.get_context("spawn")
    reading, done = [context.Event() for _ in range(2)], context.Event()
    processes = [context.Process(target=_watch, args=(place, event, done)) for event in reading]
    processes.append(context.Process(target=_rewrite, args=(place, reading, done)))
    assert await ended(processes) == [0, 0, 0]


def _interleave(place: Place, number: int, of: int) -> None:
    async def run() -> None:
        bars = walk(every(60, NOON_S, 120))
        async with place.open() as candles:
            for nth in range(number, len(bars), of):
                await candles.write("BTC/USD", MINUTE, bars[nth : nth + 1])

    asyncio.run(run())


@pytest.mark.relies_on("writing")
async def test_writers_in_several_processes_lose_nothing_of_each_other(place, candles):
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_interleave, args=(place, number, 2)) for number in range(2)]
    assert await ended(processes) == [0, 0]
    assert rows(await everything(candles, "BTC/USD")) == rows(walk(every(60, NOON_S, 120)))


def _begin(place: Place, base: str, together: Any) -> None:
    async def run() -> None:
        length = TIMEFRAMES[base]
        async with place.open() as candles:
            together.wait(30)
            with suppress(SourceError):
                await candles.write("BTC/USD", length, walk(every(length.seconds, at("2026-01-01T00:00"), 10)))

    asyncio.run(run())


@pytest.mark.relies_on("writing")
@pytest.mark.relies_on("whole writes")
async def test_two_processes_that_begin_a_series_at_once_agree_on_its_length(place, candles):
    context = multiprocessing.get_context("spawn")
    together = context.Barrier(2)
    assert await ended([context.Process(target=_begin, args=(place, base, together)) for base in ("1m", "1h")]) == [
        0,
        0,
    ]
    series = await candles.series("BTC/USD", as_of=FAR)
    expected = walk(every(series.base.seconds, at("2026-01-01T00:00"), 10))
    assert rows(await everything(candles, "BTC/USD", series.base)) == rows(expected)


async def ended(processes: list[Any]) -> list[int | None]:
    for process in processes:
        process.start()
    for process in processes:
        await asyncio.to_thread(process.join, 50)
    codes = [process.exitcode for process in processes]
    for process in processes:
        process.kill()
    return codes


def test_the_gaps_of_a_kind_are_named_as_the_suite_knows_them():
    assert all(kind.lacks.keys() <= FEATURES for kind in KINDS.values())
