"""The port `pyth`: what every adapter keeps to, as of any instant."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from quantdeck.core.clock import Now
from quantdeck.core.errors import NotInPast
from quantdeck.domain.demo_market import DemoMarket
from quantdeck.domain.demo_sessions import shape_of
from quantdeck.settings import Pyth as Group
from quantdeck.sources.candles.demo import DemoCandles
from quantdeck.sources.pyth import RESOLUTIONS, UnknownFeed, closes_at
from quantdeck.sources.pyth.demo import DemoPyth
from quantdeck.sources.pyth.http import HttpPyth
from tests.support.pyth_stub import KEY, PythStub

NOON = datetime(2026, 1, 15, 12, tzinfo=UTC)
NOON_S = int(NOON.timestamp())
AT = Now.of(NOON, fixed=True)
OPEN = Now.of(NOON, fixed=False)
CHANNEL = "fixed_rate@200ms"


@pytest.fixture(params=["http", "demo"])
async def pyth(request):
    if request.param == "demo":
        yield DemoPyth(DemoCandles(lambda: DemoMarket(7, shape_of)))
        return
    async with PythStub().serving() as stub:
        adapter = HttpPyth(Group(router_url=stub.url, history_url=stub.url, retry_s=0))
        yield adapter
        await adapter.close()


@pytest.mark.parametrize("resolution", RESOLUTIONS)
async def test_candles_are_those_that_open_within_and_had_closed(pyth, resolution):
    begin_s = NOON_S - 4 * RESOLUTIONS[resolution]
    found = await pyth.candles("Crypto.BTC/USD", resolution, begin_s, NOON_S, CHANNEL, token=KEY, as_of=AT)
    assert 2 <= len(found) <= 4
    assert found.t == sorted(set(found.t))
    assert all(begin_s <= at and closes_at(at, resolution) <= NOON_S for at in found.t)
    rows = zip(found.o, found.h, found.l, found.c, strict=True)
    assert all(low <= min(opened, close) and max(opened, close) <= high for opened, high, low, close in rows)


async def test_a_candle_that_opens_at_the_end_of_the_range_is_in_it(pyth):
    found = await pyth.candles("Crypto.BTC/USD", "1", NOON_S - 180, NOON_S - 60, CHANNEL, token=KEY, as_of=OPEN)
    assert found.t == [NOON_S - 180, NOON_S - 120, NOON_S - 60]


async def test_what_lies_beyond_a_fixed_clock_is_refused(pyth):
    with pytest.raises(NotInPast, match="2026-01-15T12:00:00Z"):
        await pyth.candles("Crypto.BTC/USD", "1", NOON_S, NOON_S + 1, CHANNEL, token=KEY, as_of=AT)
    with pytest.raises(NotInPast, match="2026-01-15T12:00:00Z"):
        await pyth.prices([1], (NOON_S + 1) * 1_000_000, CHANNEL, token=KEY, as_of=AT)


async def test_nothing_of_the_future_is_known_on_the_wall_clock_either(pyth):
    assert await pyth.prices([1], (NOON_S + 1) * 1_000_000, CHANNEL, token=KEY, as_of=OPEN) == []


async def test_prices_at_a_time_are_rows_of_the_service(pyth):
    (row,) = await pyth.prices([1], NOON_S * 1_000_000, CHANNEL, token=KEY, as_of=AT)
    assert (row["price_feed_id"], row["publish_time"], row["channel"]) == (1, NOON_S * 1_000_000, 3)
    assert all(isinstance(row[name], int) for name in ("price", "best_bid_price", "best_ask_price", "exponent"))
    assert row["best_bid_price"] < row["price"] < row["best_ask_price"]


async def test_the_latest_prices_are_strings_beside_numbers_as_the_service_has_them(pyth):
    asked = ("price", "confidence", "exponent", "feedUpdateTimestamp")
    told = await pyth.latest([2, 1], asked, CHANNEL, token=KEY, as_of=OPEN)
    assert isinstance(told["timestampUs"], str)
    assert [row["priceFeedId"] for row in told["priceFeeds"]] == [2, 1]
    for row in told["priceFeeds"]:
        assert row.keys() == {"priceFeedId", *asked}
        assert [type(row[name]) for name in asked] == [str, int, int, int]


async def test_the_catalog_has_what_symbols_mean(pyth):
    catalog = await pyth.catalog(token=None)
    assert catalog.resolve("BTC/USD").id == 1
    assert catalog.by_id[922].symbol == "Equity.US.AAPL/USD"
    assert {feed.id for feed in catalog.feeds} >= await pyth.covered(token=KEY)


async def test_a_symbol_that_there_is_none_of_is_unknown(pyth):
    with pytest.raises(UnknownFeed):
        await pyth.candles("Crypto.NOPE/USD", "1", NOON_S - 60, NOON_S, CHANNEL, token=KEY, as_of=AT)


# the demo world's own


@pytest.fixture
def demo():
    return DemoPyth(DemoCandles(lambda: DemoMarket(7, shape_of)))


async def test_the_demo_world_has_latest_prices_at_any_clock_and_none_of_later(demo):
    told = {}
    for minutes in (0, 1):
        at = Now.of(NOON + timedelta(minutes=minutes), fixed=True)
        (row,) = (await demo.latest([1], ("price", "feedUpdateTimestamp"), CHANNEL, token=None, as_of=at))["priceFeeds"]
        told[minutes] = row["price"]
    (earlier,) = await demo.prices([1], NOON_S * 1_000_000, CHANNEL, token=None, as_of=AT)
    assert str(earlier["price"]) == told[0] != told[1]


async def test_candles_of_the_demo_world_end_with_the_present(demo):
    ahead_s = NOON_S + 86_400
    for as_of in (OPEN, AT):
        end_s = ahead_s if not as_of.fixed else NOON_S
        found = await demo.candles("Crypto.BTC/USD", "1", NOON_S - 600, end_s, CHANNEL, token=None, as_of=as_of)
        assert found.t[-1] == NOON_S - 60
    days = await demo.candles("Crypto.BTC/USD", "D", NOON_S - 86_400 * 2, ahead_s, CHANNEL, token=None, as_of=OPEN)
    assert days.t[-1] < NOON_S - 86_400 / 2


async def test_the_demo_world_carries_a_price_on_while_its_market_is_closed(demo):
    night = Now.of(datetime(2026, 1, 17, 12, tzinfo=UTC), fixed=True)  # a Saturday
    asked = ("price", "marketSession", "feedUpdateTimestamp")
    told = await demo.latest([922, 1], asked, CHANNEL, token=None, as_of=night)
    apple, bitcoin = told["priceFeeds"]
    assert (apple["marketSession"], bitcoin["marketSession"]) == ("closed", "regular")
    assert apple["feedUpdateTimestamp"] < int(told["timestampUs"]) == bitcoin["feedUpdateTimestamp"]


async def test_weeks_of_the_demo_world_begin_on_mondays_and_months_on_their_first(demo):
    weeks, months = [
        await demo.candles("Crypto.BTC/USD", of, NOON_S - 86_400 * 100, NOON_S, CHANNEL, token=None, as_of=AT)
        for of in ("W", "M")
    ]
    assert {datetime.fromtimestamp(at, UTC).weekday() for at in weeks.t} == {0}
    assert {datetime.fromtimestamp(at, UTC).day for at in months.t} == {1}
    days = await demo.candles("Crypto.BTC/USD", "D", weeks.t[0], NOON_S, CHANNEL, token=None, as_of=AT)
    assert (weeks.o[0], weeks.h[0], weeks.c[0]) == (days.o[0], max(days.h[:7]), days.c[6])
