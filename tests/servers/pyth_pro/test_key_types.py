"""Words that the service has and we did not know: channels, asset types, sessions, properties."""

from __future__ import annotations

import orjson
import pytest
from mcp_types import ResourceTemplateReference

from tests.servers.pyth_pro.conftest import THEN_S
from tests.support.contracts import contract_of
from tests.support.pyth_stub import FEEDS, PythStub, feed

SPEC = contract_of("pyth")
NEW = feed(9001, "Crypto.NEW/USD", "NEW", asset_type="tokens", min_channel="fixed_rate@10ms",
           market_sessions={"regular": {"schedule": "x"}, "lunch": {"schedule": "y"}})  # fmt: skip
DESCRIBED = {"components": {"schemas": {"PriceFeedProperty": {"enum": ["price", "exponent", "twapPrice"]}}}}
TEMPLATE = ResourceTemplateReference(uri="pyth://feeds/{asset_type}")


def stub(**traits):
    return PythStub(feeds=[*FEEDS, NEW], **traits)


async def completed(ask, begun):
    return (await ask.client.complete(TEMPLATE, {"name": "asset_type", "value": begun})).completion.values


async def test_a_channel_of_the_list_is_one_once_the_list_is_there(pyth):
    ask = await pyth(stub=stub())
    asked = {"symbol": "NEW/USD", "resolution": "1", "from": THEN_S, "to": THEN_S + 600}
    told = await ask.refused("get_candlestick_data", **asked, channel="fixed_rate@10ms")
    assert told == ("invalid_input", SPEC["errors"]["invalid_channel"].format(channel="fixed_rate@10ms"))
    assert (await ask("get_symbols", query="NEW"))["feeds"][0]["min_channel"] == "fixed_rate@10ms"
    kind, said = await ask.refused("get_candlestick_data", **asked, channel="fixed_rate@7ms")
    assert (kind, "real_time, fixed_rate@10ms, fixed_rate@50ms" in said) == ("invalid_input", True)
    assert (await ask("get_historical_price", ids=[1], timestamp=THEN_S, channel="fixed_rate@1000ms"))["count"] == 1
    kind, said = await ask.refused("get_candlestick_data", **{**asked, "symbol": "AAPL"}, channel="fixed_rate@10ms")
    assert (kind, "Equity.US.AAPL/USD has fixed_rate@50ms at the fastest" in said) == ("invalid_input", True)


async def test_the_default_channel_is_the_slowest_that_its_feeds_need_known_or_not(pyth):
    slow = feed(9002, "Crypto.SLOW/USD", "SLOW", min_channel="fixed_rate@5000ms")
    ask = await pyth(stub=PythStub(feeds=[*FEEDS, slow], failing=[(200, b"[]")], on_path="/price"))
    kind, _ = await ask.refused("get_historical_price", symbols=["BTC/USD", "SLOW/USD"], timestamp=THEN_S + 1)
    assert kind == "not_found"
    assert ask.stub.asked[-1] == "/v1/fixed_rate@5000ms/price"
    assert ask.stub.last("/price").query["timestamp"] == str(THEN_S * 1_000_000)


async def test_a_property_that_only_the_service_knows_is_asked_for(pyth):
    ask = await pyth(stub=stub(described=DESCRIBED))
    for spelling in ("twapPrice", "twap_price"):
        kind, said = await ask.refused("get_latest_price", ids=[1], properties=[spelling])
        assert (kind, "unknown property twapPrice" in said) == ("invalid_input", True)  # by the router: it was asked
    assert ask.stub.asked.count("/docs/openapi.json") == 1


@pytest.mark.parametrize("described", [[(500, b"")], [(200, b"[]")], [(404, b"")], [(200, b"no json")]])
async def test_if_the_service_says_nothing_of_itself_what_was_known_counts(pyth, described):
    ask = await pyth(stub=stub(failing=described * 4, on_path="openapi"))
    for _ in range(2):
        kind, said = await ask.refused("get_latest_price", ids=[1], properties=["twapPrice"])
        assert (kind, said.startswith("Invalid property: twapPrice")) == ("invalid_input", True)
    assert (await ask("get_latest_price", ids=[1], properties=["emaPrice"]))["priceFeeds"]


async def test_asset_types_are_completed_from_the_list(pyth):
    ask = await pyth(stub=stub())
    assert await completed(ask, "t") == ["tokens"]
    assert await completed(ask, "KALSHI") == []
    assert ask.stub.asked == ["/v1/symbols"]


@pytest.mark.parametrize("answer", [(500, b""), (401, b""), (200, b"{}"), (200, b"[]")])
async def test_without_the_list_the_known_ones_are(pyth, answer):
    ask = await pyth(stub=stub(failing=[answer] * 2, on_path="/symbols"))
    assert await completed(ask, " Crypto") == ["crypto", "crypto-index", "crypto-redemption-rate"]


async def test_the_resource_of_all_feeds_names_all_the_words(pyth):
    ask = await pyth(stub=stub(described=DESCRIBED))
    await ask.client.read_resource("pyth://schema/openapi/rest")
    (contents,) = (await ask.client.read_resource("pyth://feeds")).contents
    words = orjson.loads(contents.text)["key_types"]
    assert words.keys() == {"channels", "asset_types", "sessions", "properties"}
    assert "fixed_rate@10ms" in words["channels"]
    assert {"tokens", "kalshi"} <= set(words["asset_types"])
    assert "lunch" in words["sessions"]
    assert {"twapPrice", "feedUpdateTimestamp"} <= set(words["properties"])
