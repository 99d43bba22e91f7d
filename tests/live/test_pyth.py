"""Pyth Pro itself, through a client: shapes, candles that are known, searches, and what it refuses.

PYTH_ROUTER_URL and PYTH_HISTORY_URL count here too.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from decimal import Decimal

import orjson
import pytest
from mcp.client import Client

from quantdeck.app import open_app
from quantdeck.core.clock import Clock
from quantdeck.servers import load
from quantdeck.settings import Settings
from quantdeck.sources.pyth import Pyth
from quantdeck.transports.mcp import mcp_server
from quantdeck.transports.watchers import Watchers
from tests.servers.pyth_pro.conftest import Asked
from tests.support.contracts import contract_of
from tests.support.held import Held
from tests.support.pyth_stub import NOBODYS, PythStub

NEEDS = ("PYTH_PRO_E2E_TOKEN",)
SPEC = contract_of("pyth")
TOOLS = {tool["name"]: tool for tool in SPEC["tools"]}

JUNE_3_S = 1_748_908_800  # 2025-06-03T00:00:00Z
DAY_S = 86_400
BITCOIN, APPLE = (95_000, 115_000), (190, 215)
"""Between what each traded in the first week of June 2025, with room."""


@pytest.fixture
async def pyth(tmp_path) -> AsyncIterator[object]:
    """`await pyth(token)`: our server in front of the service."""
    async with Held() as held:

        async def opened(token: str) -> Asked:
            addresses = {
                name: os.environ[name] for name in ("PYTH_ROUTER_URL", "PYTH_HISTORY_URL") if name in os.environ
            }
            said = {"QUANTDECK_HOME": str(tmp_path), "PYTH_PRO_ACCESS_TOKEN": token, **addresses}
            servers = (load("pyth-pro"),)
            app = await held.enter(open_app(Settings.read(said), servers))
            client = await held.enter(Client(mcp_server(app, servers, Watchers())))
            return Asked(app, client, PythStub(), [])

        yield opened


@pytest.fixture
async def ask(pyth):
    return await pyth(os.environ["PYTH_PRO_E2E_TOKEN"])


async def test_a_search_finds_what_everybody_knows(ask):
    body = await ask("get_symbols", query="BTC/USD", asset_type="crypto")
    assert set(TOOLS["get_symbols"]["result_metadata"]) <= body.keys()
    row = next(row for row in body["feeds"] if row["symbol"] == "Crypto.BTC/USD")
    assert set(TOOLS["get_symbols"]["item_fields"]) <= row.keys()
    assert (row["pyth_lazer_id"], row["exponent"], row["state"], row["market_open"]) == (1, -8, "stable", True)
    for query, symbol in (("AAPL", "Equity.US.AAPL/USD"), ("gold", "Metal.XAU/USD"), ("euro", "FX.EUR/USD")):
        found = (await ask("get_symbols", query=query, limit=200))["feeds"]
        assert symbol in [row["symbol"] for row in found]


async def test_the_list_is_as_long_as_is_known_and_its_words_are_too(ask):
    body = await ask("get_symbols", limit=200)
    assert (body["count"], body["total_available"] > 1000, body["has_more"]) == (200, True, True)
    (contents,) = (await ask.client.read_resource("pyth://feeds")).contents
    told = orjson.loads(contents.text)
    assert told["count"] == body["total_available"]
    assert {"crypto", "equity", "fx", "metal"} <= set(told["asset_types"])
    assert {row["min_channel"] for row in told["feeds"]} <= set(told["key_types"]["channels"]) | {""}


@pytest.mark.parametrize("symbol, bounds", [("BTC/USD", BITCOIN), ("AAPL", APPLE)])
async def test_candles_of_a_known_week_are_where_they_were(ask, symbol, bounds):
    asked = {"symbol": symbol, "resolution": "D", "from": JUNE_3_S, "to": JUNE_3_S + 2 * DAY_S}
    body = await ask("get_candlestick_data", **asked)
    assert set(TOOLS["get_candlestick_data"]["result_fields"]) <= body.keys()
    assert 2 <= body["count"] <= 3
    for opened, high, low, close in zip(body["o"], body["h"], body["l"], body["c"], strict=True):
        assert bounds[0] < low <= min(opened, close) <= max(opened, close) <= high < bounds[1]


async def test_more_candles_than_are_shown_are_the_newest(ask):
    body = await ask(
        "get_candlestick_data", **{"symbol": "BTC/USD", "resolution": "1", "from": JUNE_3_S, "to": JUNE_3_S + DAY_S}
    )
    assert (body["count"], body["truncated"]) == (500, True)
    assert body["t"][-1] >= JUNE_3_S + DAY_S - 120


@pytest.mark.parametrize("at", [JUNE_3_S, JUNE_3_S * 1000, JUNE_3_S * 1_000_000])
async def test_a_price_at_a_time_is_where_it_was(ask, at):
    body = await ask("get_historical_price", symbols=["BTC/USD"], timestamp=at)
    (row,) = body["prices"]
    assert set(TOOLS["get_historical_price"]["result_fields"]) <= row.keys()
    assert BITCOIN[0] < Decimal(row["display_price"]) < BITCOIN[1]
    assert body["timestamp"] == "2025-06-03T00:00:00Z"


async def test_the_latest_prices_are_fresh_and_near_the_last_candle(ask):
    body = await ask("get_latest_price", symbols=["BTC/USD", "ETH/USD"])
    assert set(TOOLS["get_latest_price"]["result_fields"]) <= body.keys()
    bitcoin, _ = body["priceFeeds"]
    assert (bitcoin["priceFeedId"], bitcoin["symbol"], bitcoin["market_open"]) == (1, "Crypto.BTC/USD", True)
    assert bitcoin["age_ms"] < 60_000
    now_s = int(body["timestampUs"]) // 1_000_000
    candles = await ask(
        "get_candlestick_data", **{"symbol": "BTC/USD", "resolution": "1", "from": now_s - 900, "to": now_s}
    )
    assert Decimal(bitcoin["display_price"]) == pytest.approx(Decimal(str(candles["c"][-1])), rel=Decimal("0.02"))


async def test_every_property_is_known_to_the_router(ask):
    everything = list(ask.app.runtime.source(Pyth).known.properties)
    (row,) = (await ask("get_latest_price", ids=[1], properties=everything))["priceFeeds"]
    assert {"price", "exponent", "marketSession", "feedUpdateTimestamp"} <= row.keys()


async def test_the_router_keeps_prices_and_the_history_charts(ask):
    """What stands in for the list and the history while they are out of reach."""
    source, token, now = ask.app.runtime.source(Pyth), os.environ["PYTH_PRO_E2E_TOKEN"].strip(), Clock().now()
    (row,) = await source.prices(["Crypto.BTC/USD"], JUNE_3_S * 1_000_000, "fixed_rate@200ms", token=token, as_of=now)
    assert (row["price_feed_id"], row["symbol"]) == (1, "Crypto.BTC/USD")
    assert BITCOIN[0] < Decimal(row["price"]).scaleb(row["exponent"]) < BITCOIN[1]
    assert await source.has_chart("Crypto.BTC/USD", "fixed_rate@1000ms", token=token)
    assert not await source.has_chart("Crypto.NO-SUCH-FEED/USD", "fixed_rate@1000ms", token=token)


@pytest.mark.parametrize(
    "tool, more",
    [
        ("get_latest_price", {"symbols": ["NO-SUCH-FEED/USD"]}),
        ("get_historical_price", {"symbols": ["NO-SUCH-FEED/USD"], "timestamp": JUNE_3_S}),
        ("get_candlestick_data", {
            "symbol": "NO-SUCH-FEED/USD", "resolution": "D", "from": JUNE_3_S, "to": JUNE_3_S + DAY_S}),
    ],
)  # fmt: skip
async def test_a_feed_that_there_is_none_of_has_the_specs_sentence(ask, tool, more):
    told = await ask.refused(tool, **more)
    assert told == ("not_found", SPEC["errors"]["feed_not_found"].format(symbol="NO-SUCH-FEED/USD"))


async def test_a_token_that_is_none_has_the_specs_sentence(pyth):
    ask = await pyth(NOBODYS)
    assert await ask.refused("get_latest_price", ids=[1]) == ("auth", SPEC["errors"]["invalid_token"])


async def test_without_a_token_there_is_the_list_and_no_latest_price(pyth):
    ask = await pyth("")
    assert (await ask("get_symbols", query="BTC"))["feeds"]
    assert await ask.refused("get_latest_price", ids=[1]) == ("auth", SPEC["errors"]["missing_token"])


@pytest.mark.parametrize("uri", ["pyth://schema/openapi/rest", "pyth://schema/openapi/history"])
async def test_the_services_describe_themselves(ask, uri):
    (contents,) = (await ask.client.read_resource(uri)).contents
    assert orjson.loads(contents.text)["openapi"].startswith("3.")


async def test_the_chart_configuration_is_passed_on(ask):
    (contents,) = (await ask.client.read_resource("pyth://tradingview/config")).contents
    assert isinstance(orjson.loads(contents.text), dict)
