"""execution.sim_quote over REST. The arithmetic: tests/domain/test_execution.py."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from quantdeck.domain.candles import Bars
from quantdeck.domain.timeframes import TIMEFRAMES
from quantdeck.settings import Execution
from quantdeck.sources.candles import Candles
from quantdeck.sources.fills import Fills, NewFill
from tests.support.bars import at, every, walk
from tests.support.over_http import Served

TOOL = "execution.sim_quote"
PATIENT = {"deadline_s": {TOOL: 20}, "per_minute": {TOOL: 0}}
HALF_PAST = at("2024-01-15T10:30")
EXAMPLE: dict[str, Any] = {
    "instrument": "EURUSD", "side": "buy", "qty": 100_000, "order_type": "market", "timestamp": "2024-01-15T10:30:00Z",
}  # fmt: skip


async def fill(server: Served, symbol: str, bars: Bars, base: str = "1m") -> None:
    await server.app.runtime.source(Candles).write(symbol, TIMEFRAMES[base], bars)


async def ask(server: Served, **said: Any) -> Any:
    arguments = {name: value for name, value in {**EXAMPLE, **said}.items() if value is not ...}
    return (await server.rest(TOOL, arguments=arguments)).json()


async def data(server: Served, **said: Any) -> Any:
    body = await ask(server, **said)
    assert body["error"] is False, body
    return body["data"]


@pytest.fixture
async def market(serving):
    async with serving(clock="2024-01-15T12:00:00Z", **PATIENT) as server:
        await fill(server, "EUR/USD", walk(every(60, HALF_PAST - 6000 * 60, 6090)))
        yield server


async def test_the_specs_own_call_is_from_the_bar_that_closed_then(market):
    quote = await data(market)
    bars = walk(every(60, HALF_PAST - 6000 * 60, 6090))
    mid = float(bars.close[bars.time == HALF_PAST - 60][0])
    conditions = quote["market_conditions"]
    assert (conditions["bid_price"] + conditions["ask_price"]) / 2 == pytest.approx(mid, rel=1e-12)
    assert quote["expected_price"] == pytest.approx(mid * (1 + quote["slippage_bps"] / 1e4), rel=1e-12)
    impact = quote["market_impact"]
    assert impact["total_cost_bps"] == impact["permanent_bps"] + impact["temporary_bps"] > 0
    assert quote["slippage_bps"] == pytest.approx(conditions["spread_bps"] / 2 + impact["total_cost_bps"])
    assert quote["execution_estimate"]["fill_probability"] > 0.99


async def test_the_same_order_is_quoted_alike_again(serving):
    async with serving(clock="2024-01-15T12:00:00Z", **PATIENT, cache={"ttl_s": {TOOL: 0}}) as server:
        await fill(server, "EUR/USD", walk(every(60, HALF_PAST - 600 * 60, 600)))
        first, again = await ask(server), await ask(server)
        assert again["metadata"]["cached"] is False
        assert again["data"] == first["data"]


async def test_nothing_that_came_later_than_the_timestamp_is_in_a_quote(serving):
    async with serving(clock="2024-02-01T00:00:00Z", **PATIENT, cache={"ttl_s": {TOOL: 0}}) as server:
        await fill(server, "BTC/USD", walk(every(60, HALF_PAST - 6000 * 60, 6000)))
        asked = {"instrument": "BTC/USD", "qty": 1}
        before = await data(server, **asked)
        await fill(server, "BTC/USD", walk(every(60, HALF_PAST, 3000), seed=8))
        assert await data(server, **asked) == before
        assert await data(server, **asked, timestamp="2024-01-15T10:31:00Z") != before


async def test_a_timestamp_ahead_of_the_clock_is_the_clock(market):
    assert await data(market, timestamp="2030-01-01T00:00:00Z") == await data(market, timestamp="2024-01-15T12:00:00Z")


async def test_a_limit_and_a_stop_need_their_price(market):
    for kind in ("limit", "stop"):
        body = await ask(market, order_type=kind)
        assert (body["code"], "limit_price is required" in body["message"]) == ("MCP-001", True)
        for price in (0, -1):
            assert (await ask(market, order_type=kind, limit_price=price))["code"] == "MCP-001"
    mid = (await data(market))["market_conditions"]["bid_price"]
    quote = await data(market, order_type="limit", limit_price=mid * 0.999)
    assert quote["expected_price"] == mid * 0.999
    assert 0 < quote["execution_estimate"]["fill_probability"] < 1
    stopped = await data(market, order_type="stop", limit_price=mid * 1.01)
    assert stopped["expected_price"] > mid * 1.01


async def test_more_than_its_share_of_a_day_is_mcp_012_and_says_how_much_is_not(market):
    assert (await ask(market, qty=1.7e308))["code"] == "MCP-012"
    body = await ask(market, qty=1e9)
    assert (body["code"], "insufficient liquidity" in body["message"].lower()) == ("MCP-012", True)
    assert (await ask(market, qty=body["details"]["max_qty"]))["error"] is False


async def test_without_market_data_at_the_timestamp_it_is_mcp_003(market):
    for timestamp in ("2020-01-01T00:00:00Z", "0001-01-01T00:00:00Z"):
        body = await ask(market, timestamp=timestamp)
        assert (body["code"], "backend unavailable" in body["message"].lower()) == ("MCP-003", True)


async def test_a_price_of_long_ago_is_none(serving):
    async with serving(clock="2024-03-01T00:00:00Z", **PATIENT) as server:
        await fill(server, "EUR/USD", walk(every(60, HALF_PAST - 600 * 60, 600)))
        assert (await ask(server))["error"] is False
        assert (await ask(server, timestamp="2024-02-15T10:30:00Z"))["code"] == "MCP-003"


async def test_an_instrument_of_which_nothing_is_known_is_mcp_001(market):
    assert (await ask(market, instrument="GBPUSD"))["code"] == "MCP-001"


async def test_settings_say_what_a_market_is_like_where_nothing_tells_it_better(serving):
    wide = Execution(spread_bps_fx=20, impact=0, permanent_impact=0)
    async with serving(clock="2024-01-15T12:00:00Z", **PATIENT, execution=wide) as server:
        await fill(server, "EUR/USD", walk(every(60, HALF_PAST - 600 * 60, 600)))
        quote = await data(server)
        assert (quote["market_conditions"]["spread_bps"], quote["slippage_bps"]) == (20, 10)


async def test_stored_fills_teach_what_size_costs(serving):
    kept = {"clock": "2024-01-15T12:00:00Z", **PATIENT, "cache": {"ttl_s": {TOOL: 0}}}
    async with serving(**kept) as server:
        await server.app.databases.migrate()
        await fill(server, "EUR/USD", walk(every(60, HALF_PAST - 6000 * 60, 6000)))
        plain = await data(server)
    async with serving(**kept) as server:
        fills, then = server.app.runtime.source(Fills), datetime.fromtimestamp(HALF_PAST, UTC) - timedelta(hours=1)
        for number in range(30):
            price = 1.1 * (1 + 30e-4)
            assert await fills.add(NewFill(f"f{number}", "default", "EUR/USD", "BUY", 1e6, price, 1.1, then, then))
        assert not await fills.add(NewFill("f0", "default", "EUR/USD", "BUY", 1.0, 1.0, None, then, then))
        taught = await data(server)
        assert taught["market_impact"]["temporary_bps"] > 2 * plain["market_impact"]["temporary_bps"]
        early = await data(server, timestamp="2024-01-15T09:00:00Z")
        assert early["market_impact"]["temporary_bps"] < taught["market_impact"]["temporary_bps"] / 2, "not known yet"


async def test_a_series_of_days_is_enough(serving):
    async with serving(clock="2024-01-15T12:00:00Z", **PATIENT) as server:
        await fill(server, "SPY", walk(every(86_400, at("2023-09-01T00:00"), 136)), "1d")
        assert (await data(server, instrument="SPY", qty=0.5))["market_conditions"]["spread_bps"] > 0


@pytest.mark.parametrize(
    "said",
    [
        {"qty": 0}, {"qty": -1}, {"side": "long"}, {"order_type": "iceberg"}, {"instrument": "eurusd"},
        {"timestamp": "now"}, {"timestamp": ...}, {"timestamp": "2024-01-15T10:30:00"}, {"limit_price": "1"},
        {"more": 1},
    ],
    ids=str,
)  # fmt: skip
async def test_what_is_no_order_is_mcp_001(market, said):
    body = await ask(market, **said)
    assert (body["code"], body["message"][:19]) == ("MCP-001", "Invalid arguments: ")
