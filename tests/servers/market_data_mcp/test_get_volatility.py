"""get_volatility, through a client. The arithmetic itself: tests/domain/test_volatility.py."""

from __future__ import annotations

from itertools import pairwise
from statistics import stdev

import pytest

from quantdeck.domain.candles import Bars, resampled
from quantdeck.domain.timeframes import DAY, TIMEFRAMES
from tests.servers.market_data_mcp.conftest import fill
from tests.support.bars import at, every, walk

NOON_S = at("2026-01-15T12:00")
ASKED = ["1h", "4h", "1d"]


def told(bars: Bars) -> dict[str, float]:
    """By plain Python: 24 returns, 14 true ranges, the reach of 24 bars, or over what there is."""
    high, low, close = (column.tolist() for column in (bars.high, bars.low, bars.close))
    moves = [now / before - 1 for before, now in pairwise(close)][-24:]
    ranges = [
        max(h, before) - min(l_, before) for h, l_, before in zip(high[1:], low[1:], close, strict=False)
    ][-14:]  # fmt: skip
    return {
        "volatility": stdev(moves),
        "atr": sum(ranges) / len(ranges),
        "high_low_range": max(high[-24:]) - min(low[-24:]),
    }


@pytest.mark.parametrize("timeframe", ASKED)
async def test_is_of_the_closed_bars_of_the_timeframe(market_at, timeframe):
    market = await market_at("2026-01-15T12:59:59Z")
    bars = walk(every(60, at("2025-12-15T00:00"), 32 * 1440))
    await fill(market, "BTC/USD", bars)
    length = TIMEFRAMES[timeframe]
    closed = resampled(bars.between(0, length.floor(NOON_S + 3599)), length)
    data = (await market("get_volatility", symbol="btc_usd", timeframe=timeframe))["data"]
    assert data == pytest.approx(told(closed), rel=1e-9)


async def test_an_hour_is_the_timeframe_unless_said(market):
    await fill(market, "BTC/USD", walk(every(60, NOON_S - 50 * 3600, 3000)))
    asked = await market("get_volatility", symbol="BTC/USD", timeframe="1h")
    assert (await market("get_volatility", symbol="BTC/USD"))["data"] == asked["data"]


async def test_fifteen_bars_are_enough_and_fourteen_are_not(market):
    bars = walk(every(3600, NOON_S - 15 * 3600, 15))
    await fill(market, "BTC/USD", bars)
    await fill(market, "ETH/USD", bars[1:])
    assert (await market("get_volatility", symbol="BTC/USD"))["data"] == pytest.approx(told(bars))
    error = (await market("get_volatility", symbol="ETH/USD"))["error"]
    assert error["code"] == "INSUFFICIENT_DATA"
    assert error["details"] == {"symbol": "ETH/USD", "timeframe": "1h", "required": 15, "available": 14}


async def test_an_unfinished_bar_is_not_counted(market_at):
    market = await market_at("2026-01-15T12:59:59Z")
    await fill(market, "BTC/USD", walk(every(3600, NOON_S - 14 * 3600, 15)))
    assert (await market.refused("get_volatility", symbol="BTC/USD"))[0] == "INSUFFICIENT_DATA"


async def test_a_flat_market_has_a_volatility_of_zero_and_not_null(market):
    flat = [100.0] * 30
    await fill(market, "BTC/USD", Bars.of(every(3600, NOON_S - 30 * 3600, 30), flat, flat, flat, flat, flat))
    data = (await market("get_volatility", symbol="BTC/USD"))["data"]
    assert data == {"volatility": 0.0, "atr": 0.0, "high_low_range": 0.0}


async def test_prices_that_are_not_above_zero_say_nothing_of_returns(market):
    below = [-2.0] * 30
    await fill(market, "OIL/USD", Bars.of(every(3600, NOON_S - 30 * 3600, 30), below, below, below, below, [1.0] * 30))
    data = (await market("get_volatility", symbol="OIL/USD"))["data"]
    assert data == {"volatility": None, "atr": None, "high_low_range": 0.0}


async def test_a_gap_is_stepped_over(market):
    opens = [*every(3600, NOON_S - 400 * 3600, 10), *every(3600, NOON_S - 10 * 3600, 10)]
    bars = walk(opens)
    await fill(market, "ETH/USD", bars)
    assert (await market("get_volatility", symbol="ETH/USD"))["data"] == pytest.approx(told(bars))


@pytest.mark.parametrize(
    "arguments, code",
    [
        ({"symbol": "nope!"}, "INVALID_SYMBOL"),
        ({"symbol": "NVDA"}, "INVALID_SYMBOL"),
        ({}, "INVALID_SYMBOL"),
        ({"symbol": "DOGE/USD"}, "INSUFFICIENT_DATA"),
        ({"symbol": "BTC/USD", "timeframe": "1m"}, "INVALID_TIMEFRAME"),
        ({"symbol": "BTC/USD", "timeframe": ""}, "INVALID_TIMEFRAME"),
        ({"symbol": "BTC/USD", "periods": 20}, "INVALID_PARAMETER"),
    ],
    ids=str,
)
async def test_fails_with_a_declared_code(market, arguments, code):
    await fill(market, "BTC/USD", walk(every(3600, NOON_S - 30 * 3600, 30)))
    assert (await market.refused("get_volatility", **arguments))[0] == code


async def test_a_timeframe_finer_than_stored_says_what_there_is(market_at):
    market = await market_at("2026-01-15T12:00:00Z", base="1d")
    await fill(market, "AAPL", walk(every(86_400, at("2025-12-20T00:00"), 26)), DAY)
    error = (await market("get_volatility", symbol="AAPL"))["error"]
    assert (error["code"], error["details"]["available"]) == ("INVALID_TIMEFRAME", ["1d"])
    assert "data" in await market("get_volatility", symbol="AAPL", timeframe="1d")


@pytest.mark.parametrize("timeframe", ASKED)
async def test_what_became_known_later_is_in_no_answer(market_at, timeframe):
    now, later = await market_at("2026-01-15T12:30:00Z"), await market_at("2026-01-17T00:00:00Z")
    bars = walk(every(60, at("2025-12-15T00:00"), 34 * 1440))
    cut = int(bars.time.searchsorted(NOON_S + 1800))
    asked = {"symbol": "BTC/USD", "timeframe": timeframe, "force_refresh": True}
    await fill(now, "BTC/USD", bars[:cut])
    before = (await now("get_volatility", **asked))["data"]
    await fill(now, "BTC/USD", bars[cut:])
    assert (await now("get_volatility", **asked))["data"] == before
    assert (await later("get_volatility", **asked))["data"] != before
