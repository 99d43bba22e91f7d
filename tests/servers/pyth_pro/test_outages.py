"""What is still answered while a part of Pyth is out of reach, and how it is said that it is."""

from __future__ import annotations

import asyncio

import orjson
import pytest

from tests.servers.pyth_pro.conftest import THEN_S
from tests.support.contracts import contract_of
from tests.support.pyth_stub import KEY, PARTLY, PythStub

SPEC = contract_of("pyth")
DOWN = (500, b"")
CANDLES = {"resolution": "1", "from": THEN_S, "to": THEN_S + 6000}


def without_the_list(**traits):
    return PythStub(failing=[DOWN] * 50, on_path="/v1/symbols", **traits)


def without_the_history(**traits):
    return PythStub(failing=[DOWN] * 50, on_path="00ms/price", **traits)


# without the list of feeds


async def test_full_symbols_reach_the_router(pyth):
    ask = await pyth(stub=without_the_list())
    body = await ask("get_latest_price", symbols=["Crypto.ETH/USD", " Crypto.BTC/USD ", "Crypto.ETH/USD"])
    assert orjson.loads(ask.stub.last("/latest_price").body)["symbols"] == ["Crypto.ETH/USD", "Crypto.BTC/USD"]
    assert [(row["priceFeedId"], row["symbol"]) for row in body["priceFeeds"]] == [
        (2, "Crypto.ETH/USD"), (1, "Crypto.BTC/USD"),
    ]  # fmt: skip
    assert body["priceFeeds"][1]["display_price"] == "80639.53748222"
    assert "missing" not in body
    (event,) = ask.events
    assert (event["num_feeds"], event["num_feeds_returned"], event["feed_ids_queried"]) == (2, 2, [])


async def test_full_symbols_at_a_time_reach_the_router_too(pyth):
    ask = await pyth(stub=without_the_list())
    (row,) = (await ask("get_historical_price", symbols=["Crypto.BTC/USD"], timestamp=THEN_S))["prices"]
    assert (row["price_feed_id"], row["symbol"], row["display_price"], row["served_by"]) == (
        1, "Crypto.BTC/USD", "80639.53748222", "router",
    )  # fmt: skip


async def test_other_symbols_are_asked_for_in_full(pyth):
    ask = await pyth(stub=without_the_list())
    for tool, more in (("get_latest_price", {}), ("get_historical_price", {"timestamp": THEN_S})):
        kind, said = await ask.refused(tool, symbols=["BTC/USD"], **more)
        assert (kind, "must be written in full, such as Crypto.BTC/USD" in said) == ("invalid_input", True)
        assert "Unknown symbol: BTC/USD" in said


async def test_if_it_cannot_be_told_which_has_no_price_nothing_is_made_up(pyth):
    ask = await pyth(stub=without_the_list(silent=frozenset({2})))
    body = await ask("get_latest_price", symbols=["Crypto.ETH/USD", "Crypto.BTC/USD"])
    (row,) = body["priceFeeds"]
    assert (row["priceFeedId"], row["symbol"], "missing" in body) == (1, None, False)
    assert "cannot be told" in body["note"]
    body = await ask("get_latest_price", symbols=["Crypto.ETH/USD"])
    assert body["missing"] == [{"price_feed_id": None, "symbol": "Crypto.ETH/USD", "reason": "no data now"}]


async def test_without_a_token_the_outage_is_told(pyth):
    ask = await pyth("", stub=without_the_list())
    kind, said = await ask.refused("get_historical_price", symbols=["Crypto.BTC/USD"], timestamp=THEN_S)
    assert (kind, "try again later" in said) == ("upstream", True)


@pytest.mark.parametrize("tool", ["get_latest_price", "get_historical_price"])
async def test_a_token_that_the_list_refuses_is_sent_nowhere_else(pyth, tool):
    more = {"timestamp": THEN_S} if tool == "get_historical_price" else {}
    ask = await pyth(stub=PythStub(failing=[(401, b"")], on_path="/v1/symbols"))
    assert await ask.refused(tool, symbols=["Crypto.BTC/USD"], **more) == ("auth", SPEC["errors"]["invalid_token"])
    assert ask.stub.asked == ["/v1/symbols"]


async def test_a_list_that_is_forbidden_is_no_invalid_token(pyth):
    ask = await pyth(stub=PythStub(failing=[(403, b"")], on_path="/v1/symbols"))
    assert (await ask("get_latest_price", symbols=["Crypto.BTC/USD"]))["priceFeeds"]


async def test_a_feed_that_is_slower_than_the_default_channel_is_found_on_the_slowest(pyth):
    ask = await pyth(stub=without_the_list())
    body = await ask("get_candlestick_data", symbol="Commodities.Index.PYTHOIL/USD", **CANDLES)
    assert (body["channel"], body["count"]) == ("fixed_rate@1000ms", 100)
    assert ask.stub.last("/symbols").path == "/v1/fixed_rate@1000ms/symbols"
    assert ask.events[-1]["channel"] == "fixed_rate@1000ms"


async def test_a_channel_that_is_too_fast_is_told_from_a_symbol_that_there_is_none_of(pyth):
    ask = await pyth(stub=without_the_list())
    kind, said = await ask.refused("get_candlestick_data", symbol="Metal.XAU/USD", channel="real_time", **CANDLES)
    assert (kind, said.startswith("Channel real_time is too fast for Metal.XAU/USD")) == ("invalid_input", True)
    for channel in ({}, {"channel": "real_time"}, {"channel": "fixed_rate@1000ms"}):
        told = await ask.refused("get_candlestick_data", symbol="XAU/USD", **channel, **CANDLES)
        assert told == ("not_found", SPEC["errors"]["feed_not_found"].format(symbol="XAU/USD"))


# without the history


async def test_the_router_keeps_prices_too(pyth):
    ask = await pyth(stub=without_the_history())
    body = await ask("get_historical_price", symbols=["BTC/USD"], ids=[112, 1], timestamp=THEN_S + 0.25)
    first, second = body["prices"]
    assert (first["price"], first["display_price"]) == (80_813_667_608_700_001, "80813.667608700001")
    assert {"price_feed_id", "publish_time", "channel", "price", "best_bid_price", "best_ask_price", "confidence",
            "exponent", "publisher_count"} <= second.keys()  # fmt: skip
    assert (second["price"], second["channel"], second["channel_name"]) == (8063953748222, 3, "fixed_rate@200ms")
    assert [row["served_by"] for row in body["prices"]] == ["router"] * 2
    asked = orjson.loads(ask.stub.last("/v1/price").body)
    assert (asked["timestamp"], asked["priceFeedIds"]) == (THEN_S * 1_000_000 + 200_000, [112, 1])


async def test_the_router_is_asked_for_a_history_that_is_busy_too(pyth):
    busy = (429, b"", {"retry-after": "99"})
    ask = await pyth(stub=PythStub(failing=[busy], on_path="00ms/price"))
    (row,) = (await ask("get_historical_price", ids=[1], timestamp=THEN_S))["prices"]
    assert row["served_by"] == "router"


async def test_without_a_token_there_is_no_router(pyth):
    ask = await pyth("", stub=without_the_history())
    kind, _ = await ask.refused("get_historical_price", ids=[1], timestamp=THEN_S)
    assert (kind, "/v1/price" in ask.stub.asked) == ("upstream", False)


async def test_what_a_token_does_not_cover_hides_no_other_there_either(pyth):
    ask = await pyth(PARTLY, stub=without_the_history())
    body = await ask("get_historical_price", ids=[327, 1], timestamp=THEN_S)
    assert [row["price_feed_id"] for row in body["prices"]] == [1]
    assert [left["price_feed_id"] for left in body["not_entitled"]] == [327]


async def test_with_both_down_it_is_the_history_that_is(pyth):
    ask = await pyth(stub=PythStub(failing=[(429, b"", {"retry-after": "0"})] * 2 + [DOWN], on_path="/price"))
    kind, said = await ask.refused("get_historical_price", ids=[1], timestamp=THEN_S)
    assert (kind, "takes no more calls" in said) == ("rate_limited", True)


async def test_at_a_fixed_clock_the_router_tells_nothing_later_either(pyth):
    ask = await pyth(stub=without_the_list(), clock="2025-06-15T16:00:00Z")
    kind, _ = await ask.refused("get_historical_price", symbols=["Crypto.BTC/USD"], timestamp=THEN_S + 86_400)
    assert (kind, "/v1/price" in ask.stub.asked) == ("invalid_input", False)
    assert (await ask("get_historical_price", symbols=["Crypto.BTC/USD"], timestamp=THEN_S))["count"] == 1


# answers that begin and never end


STALLED = (200, b'{"parsed": {', {"content-length": "5000"})


@pytest.mark.parametrize(
    "tool, arguments, path, tries",
    [
        ("get_symbols", {}, "/v1/symbols", 2),
        ("get_latest_price", {"ids": [1]}, "/latest_price", 2),
        ("get_historical_price", {"ids": [1], "timestamp": THEN_S}, "/price", 4),  # the router in the history's place
        ("get_candlestick_data", {"symbol": "BTC/USD", **CANDLES}, "/history", 2),
    ],
)
async def test_a_body_that_stalls_is_a_timeout_after_one_more_try(pyth, tool, arguments, path, tries):
    ask = await pyth(stub=PythStub(failing=[STALLED] * tries, on_path=path), request_timeout_ms=100)
    assert await ask.refused(tool, **arguments) == ("timeout", SPEC["errors"]["timeout"])
    assert sum(path in asked for asked in ask.stub.asked) == tries


async def test_a_body_that_stalls_once_is_asked_for_again(pyth):
    ask = await pyth(stub=PythStub(failing=[STALLED], on_path="/latest_price"), request_timeout_ms=500)
    assert (await ask("get_latest_price", ids=[1]))["priceFeeds"]


async def test_a_slow_answer_within_the_time_is_one(pyth):
    gate = asyncio.Event()
    ask = await pyth(KEY, stub=PythStub(stalled=gate, on_path="/latest_price"))
    waiting = asyncio.ensure_future(ask("get_latest_price", ids=[1]))
    while "/v1/latest_price" not in ask.stub.asked:
        await ask.stub.arrived.wait()
        await asyncio.sleep(0)
    gate.set()
    assert (await waiting)["priceFeeds"]
