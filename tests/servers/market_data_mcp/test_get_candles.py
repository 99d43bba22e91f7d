"""get_candles, through a client. What a store does: tests/sources/test_candles_port.py."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quantdeck.domain.candles import Bars, resampled
from quantdeck.domain.timeframes import DAY, TIMEFRAMES, Timeframe
from quantdeck.sources.candles import Candles
from tests.servers.market_data_mcp.conftest import fill, for_all
from tests.support.bars import at, every, rows, walk

NOON_S = at("2026-01-15T12:00")
ASKED = ["1m", "5m", "15m", "1h", "4h", "1d"]
quick = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def bars_until(end_s: int, minutes: int) -> Bars:
    return walk(every(60, end_s - 60 * minutes, minutes))


def gappy(end_s: int) -> Bars:
    """Two days with holes of a minute, of an hour and of most of a day."""
    opens = [open_s for open_s in every(60, end_s - 2 * 86_400, 2880) if open_s % 7 and open_s // 3600 % 9]
    return walk([open_s for open_s in opens if not end_s - 100_000 < open_s < end_s - 50_000])


def items(bars: Bars) -> list[dict[str, Any]]:
    names = ("open", "high", "low", "close", "volume")
    return [{"timestamp": iso(bar[0]), **dict(zip(names, bar[1:], strict=True))} for bar in rows(bars)]


def iso(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def from_columns(columns: dict[str, Any]) -> list[dict[str, Any]]:
    """What a program makes of the compact form, by its description alone."""
    if columns["start"] is None:
        assert columns["open"] == []
        return []
    start_s = at(columns["start"].removesuffix("Z"))
    missing = dict(columns["gaps"])
    steps = [place + sum(m for n, m in missing.items() if n <= place) for place in range(len(columns["open"]))]
    names = ("open", "high", "low", "close", "volume")
    figures = zip(*(columns[name] for name in names), strict=True)
    return [
        {"timestamp": iso(start_s + step * columns["step_s"]), **dict(zip(names, bar, strict=True))}
        for step, bar in zip(steps, figures, strict=True)
    ]


async def test_answers_in_the_specs_shape(market):
    await fill(market, "BTC/USD", Bars.of([NOON_S - 120, NOON_S - 60], [1, 3], [5, 4], [0.5, 2], [3, 2.5], [10, 0]))
    body = await market("get_candles", symbol="btc-usd", timeframe="1m", limit=2)
    assert body["data"] == {
        "items": [
            {"timestamp": "2026-01-15T11:58:00Z", "open": 1.0, "high": 5.0, "low": 0.5, "close": 3.0, "volume": 10.0},
            {"timestamp": "2026-01-15T11:59:00Z", "open": 3.0, "high": 4.0, "low": 2.0, "close": 2.5, "volume": 0.0},
        ],
        "pagination": {"offset": 0, "limit": 2, "total": 2, "has_more": False},
    }
    assert body["_metadata"]["source"] == market.app.runtime.source(Candles).source
    assert body["_metadata"]["source"] in ("sqlite", "influxdb")


async def test_without_more_it_is_the_last_hundred_hours(market):
    await fill(market, "BTC/USD", bars_until(NOON_S, 120 * 60))
    data = (await market("get_candles", symbol="BTC/USD"))["data"]
    assert (len(data["items"]), data["items"][-1]["timestamp"]) == (100, "2026-01-15T11:00:00Z")
    assert data["pagination"] == {"offset": 0, "limit": 100, "total": 120, "has_more": True}


@pytest.mark.parametrize("timeframe", ["1m", "15m", "4h"])
async def test_any_page_is_that_part_of_the_whole_and_counts_from_the_same_end(market, timeframe):
    bars = gappy(NOON_S)
    await fill(market, "ETH/USD", bars)
    whole = items(resampled(bars, TIMEFRAMES[timeframe]))

    def property_of(wait):
        @quick
        @given(limit=st.integers(1, 1400), offset=st.integers(0, len(whole) + 3))
        def paged(limit, offset):
            asked = {"symbol": "ETH/USD", "timeframe": timeframe, "limit": limit, "offset": offset}
            data = wait(market("get_candles", **asked))["data"]
            end, size = max(len(whole) - offset, 0), min(limit, 1000)
            assert data["items"] == whole[max(end - size, 0) : end]
            more = offset + len(data["items"]) < len(whole)
            assert data["pagination"] == {"offset": offset, "limit": size, "total": len(whole), "has_more": more}

        paged()

    await for_all(property_of)


async def test_an_offset_beyond_the_beginning_is_an_empty_page_and_no_error(market):
    await fill(market, "BTC/USD", bars_until(NOON_S, 60))
    for offset in (60, 61, 2**62):
        for form in ("rows", "columns"):
            data = (await market("get_candles", symbol="BTC/USD", timeframe="1m", offset=offset, format=form))["data"]
            assert data["pagination"] == {"offset": offset, "limit": 100, "total": 60, "has_more": False}
            assert (data["items"] if form == "rows" else from_columns(data["columns"])) == []


@pytest.mark.parametrize("timeframe", ASKED)
async def test_a_bar_is_given_at_its_close_and_not_a_second_before(market_at, timeframe):
    length: Timeframe = TIMEFRAMES[timeframe]
    day_s = at("2026-01-14T00:00")
    bars = walk(every(60, day_s, 2 * 1440))
    closes_s = day_s + length.seconds
    before, after = await market_at(iso(closes_s - 1)), await market_at(iso(closes_s))
    await fill(after, "BTC/USD", bars)
    asked = {"symbol": "BTC/USD", "timeframe": timeframe}
    assert (await before.refused("get_candles", **asked))[0] == "NO_DATA"
    assert (await after("get_candles", **asked))["data"]["items"] == items(resampled(bars, length))[:1]


@pytest.mark.parametrize("form", ["rows", "columns"])
@pytest.mark.parametrize("timeframe", ASKED)
async def test_nothing_that_became_known_later_is_in_an_answer(market_at, timeframe, form):
    now, later = await market_at("2026-01-15T12:00:30Z"), await market_at("2026-01-17T00:00:00Z")
    bars = walk(every(60, at("2026-01-12T00:00"), 5 * 1440))
    cut = int(bars.time.searchsorted(NOON_S))
    asked = {"symbol": "BTC/USD", "timeframe": timeframe, "limit": 1000, "format": form, "force_refresh": True}
    await fill(now, "BTC/USD", bars[:cut])
    before = (await now("get_candles", **asked))["data"]
    await fill(now, "BTC/USD", bars[cut:])
    await fill(now, "LATER/USD", bars[cut:])
    assert (await now("get_candles", **asked))["data"] == before
    assert (await now.refused("get_candles", **{**asked, "symbol": "LATER/USD"}))[0] == "NO_DATA"
    assert (await later("get_candles", **asked))["data"] != before


@pytest.mark.parametrize("timeframe", ["1m", "5m", "1h"])
async def test_columns_say_what_rows_say(market, timeframe):
    await fill(market, "ETH/USD", gappy(NOON_S))

    def property_of(wait):
        @quick
        @given(limit=st.integers(1, 1000), offset=st.integers(0, 2000))
        def same(limit, offset):
            asked = {"symbol": "ETH/USD", "timeframe": timeframe, "limit": limit, "offset": offset}
            listed = wait(market("get_candles", **asked))["data"]
            compact = wait(market("get_candles", **asked, format="columns"))["data"]
            assert from_columns(compact["columns"]) == listed["items"]
            assert compact["pagination"] == listed["pagination"]
            assert compact.keys() == {"columns", "pagination"}

        same()

    await for_all(property_of)


async def test_columns_name_their_gaps_and_nothing_else(market):
    await fill(market, "BTC/USD", bars_until(NOON_S, 10))
    await fill(market, "ETH/USD", walk([NOON_S - 300, NOON_S - 240, NOON_S - 60]))
    regular = (await market("get_candles", symbol="BTC/USD", timeframe="1m", format="columns"))["data"]["columns"]
    assert (regular["start"], regular["step_s"], regular["gaps"]) == ("2026-01-15T11:50:00Z", 60, [])
    broken = (await market("get_candles", symbol="ETH/USD", timeframe="1m", format="columns"))["data"]["columns"]
    assert (broken["start"], broken["gaps"]) == ("2026-01-15T11:55:00Z", [[2, 2]])


async def test_gaps_stay_gaps(market):
    await fill(market, "ETH/USD", walk([NOON_S - 7 * 3600, NOON_S - 3600]))
    data = (await market("get_candles", symbol="ETH/USD", timeframe="1h"))["data"]
    assert [bar["timestamp"] for bar in data["items"]] == ["2026-01-15T05:00:00Z", "2026-01-15T11:00:00Z"]
    assert data["pagination"]["total"] == 2


async def test_a_sum_of_volumes_has_no_noise_in_its_last_digits(market):
    volumes = [0.1, 0.2, 0.3, 0.7, 1.1]
    prices = [1.0] * len(volumes)
    await fill(market, "BTC/USD", Bars.of(every(60, NOON_S - 300, 5), prices, prices, prices, prices, volumes))
    (bar,) = (await market("get_candles", symbol="BTC/USD", timeframe="5m"))["data"]["items"]
    assert bar["volume"] == 2.4 != sum(volumes)


async def test_prices_may_be_zero_or_below(market):
    prices = Bars.of(every(60, NOON_S - 180, 3), [0, -1, 2], [0, 0, 2], [-1, -37.63, 0], [-1, -37.63, 0], [0, 0, 0])
    await fill(market, "OIL/USD", prices)
    data = (await market("get_candles", symbol="OIL/USD", timeframe="1m"))["data"]
    assert data["items"] == items(prices)


@pytest.mark.parametrize("spelt", ["BTC/USD", "btc/usd", "BTC-USD", "btc_usd", "BTCUSD", " btcusd "])
async def test_a_pair_is_understood_in_every_spelling(market, spelt):
    await fill(market, "BTC/USD", bars_until(NOON_S, 5))
    data = (await market("get_candles", symbol=spelt, timeframe="1m"))["data"]
    assert data["pagination"]["total"] == 5


@pytest.mark.parametrize("stored, spelt", [("AAPL", "aapl"), ("BRK.B", "brk-b"), ("BRK.B", "BRK/B")])
async def test_a_ticker_whose_bars_are_stored_is_understood(market, stored, spelt):
    await fill(market, stored, bars_until(NOON_S, 5))
    assert (await market("get_candles", symbol=spelt, timeframe="1m"))["data"]["pagination"]["total"] == 5


@pytest.mark.parametrize(
    "arguments, code",
    [
        ({"symbol": "nope!"}, "INVALID_SYMBOL"),
        ({"symbol": ""}, "INVALID_SYMBOL"),
        ({"symbol": 7}, "INVALID_SYMBOL"),
        ({}, "INVALID_SYMBOL"),
        ({"symbol": "NVDA"}, "INVALID_SYMBOL"),  # a ticker of which there is nothing
        ({"symbol": "DOGE/USD"}, "NO_DATA"),
        ({"symbol": "BTC/USD", "timeframe": "2h"}, "INVALID_TIMEFRAME"),
        ({"symbol": "BTC/USD", "timeframe": "1H"}, "INVALID_TIMEFRAME"),
        ({"symbol": "BTC/USD", "timeframe": 60}, "INVALID_TIMEFRAME"),
        ({"symbol": "BTC/USD", "limit": 0}, "INVALID_PARAMETER"),
        ({"symbol": "BTC/USD", "limit": "7"}, "INVALID_PARAMETER"),
        ({"symbol": "BTC/USD", "offset": -1}, "INVALID_PARAMETER"),
        ({"symbol": "BTC/USD", "offset": True}, "INVALID_PARAMETER"),
        ({"symbol": "BTC/USD", "format": "csv"}, "INVALID_PARAMETER"),
        ({"symbol": "BTC/USD", "since": "2026-01-01"}, "INVALID_PARAMETER"),
    ],
    ids=str,
)
async def test_fails_with_a_declared_code(market, arguments, code):
    await fill(market, "BTC/USD", bars_until(NOON_S, 5))
    assert (await market.refused("get_candles", **arguments))[0] == code


async def test_null_is_as_if_an_argument_had_not_been_given(market):
    await fill(market, "BTC/USD", bars_until(NOON_S, 120))
    nulls = dict.fromkeys(("timeframe", "limit", "offset", "format", "force_refresh"))
    assert (await market("get_candles", symbol="BTC/USD", **nulls))["data"]["pagination"]["total"] == 2


async def test_a_timeframe_finer_than_stored_says_what_there_is(market_at):
    market = await market_at("2026-01-15T12:00:00Z", base="1d")
    await fill(market, "AAPL", walk(every(86_400, at("2026-01-05T00:00"), 10)), DAY)
    error = (await market("get_candles", symbol="AAPL", timeframe="4h"))["error"]
    assert (error["code"], error["details"]["available"]) == ("INVALID_TIMEFRAME", ["1d"])
    assert "stored in bars of 1d" in error["message"]
    assert (await market("get_candles", symbol="AAPL", timeframe="1d"))["data"]["pagination"]["total"] == 10


async def test_a_second_call_comes_from_the_cache_unless_refreshed(market):
    await fill(market, "BTC/USD", bars_until(NOON_S - 60, 5))
    asked = {"symbol": "BTC/USD", "timeframe": "1m"}
    first = await market("get_candles", **asked)
    await fill(market, "BTC/USD", bars_until(NOON_S, 1))
    again = await market("get_candles", symbol="btcusd", timeframe="1m", limit=100)
    assert (first["_metadata"]["cached"], again["_metadata"]["cached"]) == (False, True)
    assert again["data"] == first["data"]
    assert 0 < again["_metadata"]["cache_ttl_remaining"] <= 60
    fresh = await market("get_candles", **asked, force_refresh=True)
    assert (fresh["_metadata"]["cached"], fresh["data"]["pagination"]["total"]) == (False, 6)
