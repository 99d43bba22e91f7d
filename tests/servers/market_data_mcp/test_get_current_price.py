"""get_current_price, through a client."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from quantdeck.domain.candles import Bars
from quantdeck.domain.timeframes import TIMEFRAMES
from tests.servers.market_data_mcp.conftest import fill
from tests.support.bars import at, every, walk

NOON_S = at("2026-01-15T12:00")  # a Thursday


def flat(opens: Sequence[int], prices: Sequence[float], volumes: Sequence[float] | None = None) -> Bars:
    return Bars.of(opens, prices, prices, prices, prices, volumes or [1.0] * len(opens))


def clock(second: float) -> str:
    return datetime.fromtimestamp(second, UTC).isoformat()


async def test_answers_in_the_specs_shape(market):
    closes_s = [NOON_S - 86_400 - 60, NOON_S - 86_400, NOON_S - 3600, NOON_S]
    await fill(market, "BTC/USD", flat([s - 60 for s in closes_s], [50, 80, 100, 120], [1, 2, 4, 8]))
    body = await market("get_current_price", symbol="btcusd")
    assert body["data"] == {
        "price": 120.0,
        "change_1h": pytest.approx(0.2),
        "change_24h": pytest.approx(0.5),
        "volume_24h": 12.0,
        "timestamp": "2026-01-15T11:59:00Z",
    }


@pytest.mark.parametrize(
    "change, span_s, tolerance_s", [("change_1h", 3600, 600), ("change_24h", 86_400, 3600)], ids=str
)
async def test_a_change_is_counted_from_a_close_that_is_near_enough(market, change, span_s, tolerance_s):
    for number, (closes_s, expected) in enumerate(
        {
            NOON_S - span_s: 1.0,
            NOON_S - span_s - tolerance_s: 1.0,
            NOON_S - span_s - tolerance_s - 60: None,
            NOON_S - span_s + 60: None,  # it came too late: an hour ago nobody knew it
        }.items()
    ):
        symbol = f"A{number}/USD"
        await fill(market, symbol, flat([closes_s - 60, NOON_S - 60], [50, 100]))
        data = (await market("get_current_price", symbol=symbol))["data"]
        assert data[change] == expected


async def test_of_several_closes_the_newest_that_was_there_counts(market):
    opens = [NOON_S - 3600 - 240, NOON_S - 3600 - 120, NOON_S - 3600, NOON_S - 60]
    await fill(market, "BTC/USD", flat(opens, [1, 50, 77, 100]))
    assert (await market("get_current_price", symbol="BTC/USD"))["data"]["change_1h"] == 1.0


async def test_volume_is_of_the_24_hours_before_the_close_and_no_more(market):
    opens = [NOON_S - 86_400 - 60, NOON_S - 86_400, NOON_S - 60]
    await fill(market, "BTC/USD", flat(opens, [1, 1, 1], [100, 10, 1]))
    assert (await market("get_current_price", symbol="BTC/USD"))["data"]["volume_24h"] == 11.0


@pytest.mark.parametrize("earlier", [0.0, -37.63, 5e-324])
async def test_there_is_no_fraction_of_what_is_not_above_zero_or_out_of_reach(market, earlier):
    latest = 1e300 if earlier > 0 else 20.0
    await fill(market, "OIL/USD", flat([NOON_S - 3660, NOON_S - 60], [earlier, latest]))
    data = (await market("get_current_price", symbol="OIL/USD"))["data"]
    assert (data["price"], data["change_1h"]) == (latest, None)


@pytest.mark.parametrize("price", [0.0, -37.63])
async def test_a_price_of_zero_or_below_is_a_price(market, price):
    await fill(market, "OIL/USD", flat([NOON_S - 3660, NOON_S - 60], [20, price]))
    data = (await market("get_current_price", symbol="OIL/USD"))["data"]
    assert (data["price"], data["change_1h"]) == (price, pytest.approx(price / 20 - 1))


async def test_without_an_hour_or_a_day_before_changes_are_null_and_not_zero(market):
    await fill(market, "BTC/USD", walk([NOON_S - 60]))
    data = (await market("get_current_price", symbol="BTC/USD"))["data"]
    assert (data["change_1h"], data["change_24h"]) == (None, None)


# Too old.


async def test_a_price_is_stale_after_300_seconds_and_not_before(market_at):
    just, past = await market_at(clock(NOON_S + 300)), await market_at(clock(NOON_S + 301))
    await fill(just, "BTC/USD", flat([NOON_S - 60], [100]))
    assert (await just("get_current_price", symbol="BTC/USD"))["data"]["price"] == 100.0
    error = (await past("get_current_price", symbol="BTC/USD"))["error"]
    assert error["code"] == "STALE_DATA"
    assert error["details"] == {
        "symbol": "BTC/USD", "last_price": 100.0, "timestamp": "2026-01-15T11:59:00Z", "age_seconds": 301,
        "open_seconds": 301, "max_age_seconds": 300,
    }  # fmt: skip


LAST_OF_FRIDAY = {"AAPL": "2026-01-16T20:59", "EUR/USD": "2026-01-16T21:59", "XAU/USD": "2026-01-16T21:59"}
"""The last minute before the weekend. Monday 2026-01-19 is a holiday in New York."""


@pytest.mark.parametrize(
    "symbol, instant, stale",
    [
        ("AAPL", "2026-01-17T12:00:00", False),  # Saturday
        ("AAPL", "2026-01-19T18:00:00", False),  # a holiday
        ("AAPL", "2026-01-20T14:29:59", False),  # the minute before Tuesday's opening
        ("AAPL", "2026-01-20T14:35:00", False),
        ("AAPL", "2026-01-20T14:35:01", True),
        ("EUR/USD", "2026-01-18T21:59:59", False),  # Sunday, before New York's 17:00
        ("EUR/USD", "2026-01-18T22:05:00", False),
        ("EUR/USD", "2026-01-18T22:05:01", True),
        ("XAU/USD", "2026-01-18T12:00:00", False),
        ("XAU/USD", "2026-01-18T22:05:01", True),
    ],
)
async def test_only_open_hours_make_a_price_old(market_at, symbol, instant, stale):
    market = await market_at(f"{instant}+00:00")
    await fill(market, symbol, flat([at(LAST_OF_FRIDAY[symbol])], [100]))
    body = await market("get_current_price", symbol=symbol)
    assert body.get("error", {}).get("code") == ("STALE_DATA" if stale else None)


@pytest.mark.parametrize(
    "base, symbol, opened, instant, stale",
    [
        ("1h", "BTC/USD", "2026-01-15T10:00", "2026-01-15T12:04:00", False),  # the bar of 11:00 is four minutes late
        ("1h", "BTC/USD", "2026-01-15T10:00", "2026-01-15T12:04:01", True),
        ("1d", "BTC/USD", "2026-01-14T00:00", "2026-01-15T23:59:00", False),
        ("1d", "BTC/USD", "2026-01-14T00:00", "2026-01-16T00:04:01", True),
        ("1d", "AAPL", "2026-01-14T00:00", "2026-01-15T20:59:59", False),  # Wednesday's bar, on Thursday
        ("1d", "AAPL", "2026-01-14T00:00", "2026-01-16T14:34:00", False),  # Thursday's is five minutes late
        ("1d", "AAPL", "2026-01-14T00:00", "2026-01-16T14:34:01", True),
        ("1d", "AAPL", "2026-01-16T00:00", "2026-01-20T20:59:59", False),  # Friday's, over a long weekend
        ("1d", "AAPL", "2026-01-16T00:00", "2026-01-21T14:34:01", True),
        ("1h", "AAPL", "2026-01-16T20:00", "2026-01-20T15:04:00", False),  # Tuesday's first hour has half an hour
        ("1h", "AAPL", "2026-01-16T20:00", "2026-01-20T15:04:01", True),
    ],
)
async def test_long_bars_are_waited_for_until_the_next_was_due(market_at, base, symbol, opened, instant, stale):
    market = await market_at(f"{instant}+00:00", base=base)
    await fill(market, symbol, flat([at(opened)], [100]), TIMEFRAMES[base])
    body = await market("get_current_price", symbol=symbol)
    assert body.get("error", {}).get("code") == ("STALE_DATA" if stale else None)


async def test_daily_bars_have_a_change_over_a_day_and_none_over_an_hour(market_at):
    market = await market_at("2026-01-15T12:00:00Z", base="1d")
    await fill(market, "AAPL", flat(every(86_400, at("2026-01-12T00:00"), 3), [50, 80, 100]), TIMEFRAMES["1d"])
    data = (await market("get_current_price", symbol="AAPL"))["data"]
    assert (data["price"], data["change_1h"], data["change_24h"]) == (100.0, None, 0.25)


async def test_after_a_week_a_price_is_forgotten(market_at):
    week_s = 7 * 86_400
    just, past = await market_at(clock(NOON_S + week_s)), await market_at(clock(NOON_S + week_s + 1))
    await fill(just, "BTC/USD", flat([NOON_S - 60], [100]))
    assert (await just.refused("get_current_price", symbol="BTC/USD"))[0] == "STALE_DATA"
    error = (await past("get_current_price", symbol="BTC/USD"))["error"]
    assert (error["code"], error["details"]["timestamp"]) == ("SYMBOL_NOT_FOUND", "2026-01-15T11:59:00Z")
    assert "not found" in error["message"] or "No price found" in error["message"]


# Not there.


@pytest.mark.parametrize(
    "arguments, code",
    [
        ({"symbol": "DOGE/USD"}, "SYMBOL_NOT_FOUND"),
        ({"symbol": "LATER/USD"}, "SYMBOL_NOT_FOUND"),
        ({"symbol": "NVDA"}, "INVALID_SYMBOL"),
        ({"symbol": "nope!"}, "INVALID_SYMBOL"),
        ({"symbol": None}, "INVALID_SYMBOL"),
        ({}, "INVALID_SYMBOL"),
        ({"symbol": "BTC/USD", "at": "now"}, "INVALID_PARAMETER"),
        ({"symbol": "BTC/USD", "force_refresh": "yes"}, "INVALID_PARAMETER"),
    ],
    ids=str,
)
async def test_fails_with_a_declared_code(market, arguments, code):
    await fill(market, "BTC/USD", walk([NOON_S - 60]))
    await fill(market, "LATER/USD", walk([NOON_S]))
    assert (await market.refused("get_current_price", **arguments))[0] == code


async def test_what_became_known_later_is_in_no_answer(market_at):
    now, later = await market_at("2026-01-15T12:00:59.999999Z"), await market_at("2026-01-15T12:05:00Z")
    bars = walk(every(60, NOON_S - 2 * 86_400, 2 * 1440 + 5))
    asked = {"symbol": "BTC/USD", "force_refresh": True}
    await fill(now, "BTC/USD", bars[:-5])
    before = (await now("get_current_price", **asked))["data"]
    assert before["timestamp"] == "2026-01-15T11:59:00Z"
    await fill(now, "BTC/USD", bars)
    assert (await now("get_current_price", **asked))["data"] == before
    assert (await later("get_current_price", **asked))["data"]["timestamp"] == "2026-01-15T12:04:00Z"


async def test_an_answer_is_kept_for_five_seconds_and_errors_are_not(market):
    await fill(market, "ETH/USD", walk([NOON_S - 120]))
    assert (await market.refused("get_current_price", symbol="BTC/USD"))[0] == "SYMBOL_NOT_FOUND"
    await fill(market, "BTC/USD", walk([NOON_S - 120]))
    first = await market("get_current_price", symbol="BTC/USD")
    await fill(market, "BTC/USD", walk([NOON_S - 60]))
    again = await market("get_current_price", symbol="BTC-USD")
    assert (first["_metadata"]["cached"], again["_metadata"]["cached"]) == (False, True)
    assert 0 < again["_metadata"]["cache_ttl_remaining"] <= 5
    fresh = await market("get_current_price", symbol="BTC/USD", force_refresh=True)
    assert fresh["data"]["timestamp"] == "2026-01-15T11:59:00Z"
