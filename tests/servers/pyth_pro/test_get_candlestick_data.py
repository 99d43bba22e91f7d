"""get_candlestick_data, through a client."""

from __future__ import annotations

import asyncio

import pytest
from mcp.shared.exceptions import MCPError

from tests.servers.pyth_pro.conftest import THEN_S
from tests.support.contracts import contract_of
from tests.support.pyth_stub import KEY, NOBODYS, PARTLY, PythStub

SPEC = contract_of("pyth")
TOOL = next(tool for tool in SPEC["tools"] if tool["name"] == "get_candlestick_data")
RANGE = {"from": THEN_S, "to": THEN_S + 6000}


def asked(**more):
    return {"symbol": "BTC/USD", "resolution": "1", **RANGE, **more}


async def test_an_answer_has_what_the_spec_names(pyth):
    ask = await pyth("")
    body = await ask("get_candlestick_data", **asked())
    assert set(TOOL["result_fields"] + TOOL["result_metadata"]) <= body.keys()
    assert (body["s"], body["count"], body["truncated"], len(body["t"])) == ("ok", 100, False, 100)
    assert (body["symbol"], body["channel"]) == ("Crypto.BTC/USD", "fixed_rate@200ms")
    assert all(THEN_S <= at <= THEN_S + 6000 for at in body["t"])
    assert ask.stub.last("/history").path.endswith("fixed_rate@200ms/history")


async def test_of_more_than_500_the_newest_are_kept_and_it_is_said(pyth):
    ask = await pyth()
    body = await ask("get_candlestick_data", **asked(to=THEN_S + 600 * 60 - 1))
    assert {name: body[name] for name in TOOL["truncation"]} == TOOL["truncation"]
    assert (body["count"], body["total_available"], len(body["t"])) == (500, 600, 500)
    assert body["t"][-1] > THEN_S + 599 * 60 - 60
    assert "newest" in body["note"]


async def test_288_000_candles_are_not_carried_to_keep_500(pyth):
    ask = await pyth()
    end_s = THEN_S + 200 * 86_400
    body = await ask("get_candlestick_data", **asked(to=end_s))
    assert (body["count"], body["truncated"], body["t"][-1]) == (500, True, end_s - end_s % 60)
    assert "total_available" not in body
    spans = [int(r.query["to"]) - int(r.query["from"]) for r in ask.stub.http.heard if r.path.endswith("/history")]
    assert max(spans) <= 5000 * 60


async def test_a_market_that_is_mostly_shut_is_looked_through_further(pyth):
    def seldom(symbol, begin, end, resolution):
        times = list(range(-(-begin // 86_400) * 86_400, end + 1, 86_400))
        columns = {name: [1.0] * len(times) for name in "ohlc"}
        return {"s": "ok", "t": times, "v": [0] * len(times), **columns} if times else {"s": "no_data"}

    ask = await pyth(stub=PythStub(candles=seldom))
    body = await ask("get_candlestick_data", **asked(to=THEN_S + 100 * 86_400))
    assert (body["count"], body["truncated"]) == (100, False)


@pytest.mark.parametrize("resolution", SPEC["tools"][1]["input_schema"]["properties"]["resolution"]["enum"])
async def test_every_resolution_is_passed_on(pyth, resolution):
    ask = await pyth()
    await ask("get_candlestick_data", **asked(resolution=resolution, to=THEN_S + 86_400 * 40))
    assert ask.stub.last("/history").query["resolution"] == resolution


@pytest.mark.parametrize("resolution", ["2", "1D", "7", "", "minute"])
async def test_an_invalid_resolution_has_the_specs_sentence(pyth, resolution):
    ask = await pyth()
    told = await ask.refused("get_candlestick_data", **asked(resolution=resolution))
    assert told == ("invalid_input", SPEC["errors"]["invalid_resolution"].format(resolution=resolution))
    assert ask.stub.asked == []


@pytest.mark.parametrize("channel", ["fixed_rate@123ms", "real-time", "", "fixed_rate@1ms"])
async def test_an_invalid_channel_has_the_specs_sentence(pyth, channel):
    ask = await pyth()
    told = await ask.refused("get_candlestick_data", **asked(channel=channel))
    assert told == ("invalid_input", SPEC["errors"]["invalid_channel"].format(channel=channel))
    assert ask.stub.asked == []


async def test_a_feed_that_there_is_none_of_has_the_specs_sentence(pyth):
    ask = await pyth()
    told = await ask.refused("get_candlestick_data", **asked(symbol="NOPE/USD"))
    assert told == ("not_found", SPEC["errors"]["feed_not_found"].format(symbol="NOPE/USD"))
    assert ask.stub.asked == ["/v1/symbols"]


async def test_several_feeds_are_listed_and_none_is_chosen(pyth):
    ask = await pyth()
    kind, said = await ask.refused("get_candlestick_data", **asked(symbol="duo/usd"))
    assert kind == "invalid_input"
    assert "Crypto.DUO/USD, Crypto.Other.DUO/USD" in said


async def test_a_channel_faster_than_the_feeds_is_refused_before_the_call(pyth):
    ask = await pyth()
    kind, said = await ask.refused("get_candlestick_data", **asked(symbol="XAU/USD", channel="real_time"))
    assert kind == "invalid_input"
    assert "Metal.XAU/USD has fixed_rate@200ms at the fastest" in said
    assert ask.stub.asked == ["/v1/symbols"]


@pytest.mark.parametrize("symbol, channel", [("PYTHOIL/USD", "fixed_rate@1000ms"), ("BTC/USD", "fixed_rate@200ms")])
async def test_the_default_channel_gives_way_to_a_slower_feed(pyth, symbol, channel):
    ask = await pyth()
    assert (await ask("get_candlestick_data", **asked(symbol=symbol)))["channel"] == channel


async def test_the_default_channel_is_a_setting(pyth):
    ask = await pyth(channel="fixed_rate@1000ms")
    assert (await ask("get_candlestick_data", **asked()))["channel"] == "fixed_rate@1000ms"
    assert (await ask("get_candlestick_data", **asked(channel="real_time")))["channel"] == "real_time"


@pytest.mark.parametrize(
    "times, said",
    [
        ({"from": THEN_S * 1000, "to": THEN_S * 1000 + 60_000}, "milliseconds"),
        ({"from": THEN_S, "to": THEN_S * 1000}, "milliseconds"),
        ({"from": THEN_S, "to": THEN_S - 1}, "later than to"),
    ],
)
async def test_times_that_make_no_sense_are_explained(pyth, times, said):
    ask = await pyth()
    told = await ask.refused("get_candlestick_data", **asked(**times))
    assert (told[0], said in told[1], ask.stub.asked) == ("invalid_input", True, [])


@pytest.mark.parametrize("wrong", [{"from": 0}, {"to": -1}, {"symbol": ""}, {"from": "x"}, {"resolution": None}])
async def test_what_is_no_proper_request_is_a_protocol_error(pyth, wrong):
    ask = await pyth()
    with pytest.raises(MCPError) as refused:
        await ask.client.call_tool("get_candlestick_data", asked(**wrong))
    assert refused.value.error.code == -32602


@pytest.mark.parametrize(
    "candles", [{"s": "no_data"}, {"s": "ok", "t": [], "o": [], "h": [], "l": [], "c": [], "v": []}]
)
async def test_no_candles_name_the_feed_and_the_range(pyth, candles):
    ask = await pyth(stub=PythStub(candles=lambda *_: candles))
    kind, said = await ask.refused("get_candlestick_data", **asked())
    assert kind == "not_found"
    assert said.startswith("No candles of Crypto.BTC/USD at resolution 1 between 2025-06-15T15:06:40Z and ")


async def test_a_feed_that_is_not_published_yet_is_not_found_yet(pyth):
    answer = (400, b"not ready. Currently in coming_soon state")
    ask = await pyth(stub=PythStub(failing=[answer], on_path="/history"))
    kind, said = await ask.refused("get_candlestick_data", **asked(symbol="SOON/USD"))
    assert (kind, "not ready. Currently in coming_soon state" in said) == ("not_found", True)


async def test_a_history_that_wants_a_token_says_so_in_the_specs_words(pyth):
    for token, name in (("", "missing_token"), (NOBODYS, "invalid_token")):
        ask = await pyth(token, stub=PythStub(history_needs_key=True))
        assert await ask.refused("get_candlestick_data", **asked()) == ("auth", SPEC["errors"][name])


async def test_a_feed_that_the_token_does_not_cover_is_no_invalid_token(pyth):
    ask = await pyth(PARTLY, stub=PythStub(history_needs_key=True))
    kind, said = await ask.refused("get_candlestick_data", **asked(symbol="EUR/USD"))
    assert kind == "entitlement"
    assert "asset type 'fx'" in said
    assert (await ask("get_candlestick_data", **asked()))["count"] == 100


async def test_without_the_list_a_full_symbol_still_works(pyth):
    ask = await pyth(stub=PythStub(failing=[(500, b"")], on_path="/symbols"))
    assert (await ask("get_candlestick_data", **asked(symbol="crypto.btc/usd")))["count"] == 100


async def test_a_service_that_does_not_answer_has_the_specs_sentence(pyth):
    ask = await pyth(stub=PythStub(stalled=asyncio.Event(), on_path="/history"), request_timeout_ms=200)
    assert await ask.refused("get_candlestick_data", **asked()) == ("timeout", SPEC["errors"]["timeout"])
    ask.stub.stalled.set()


async def test_at_a_fixed_clock_nothing_later_is_asked_or_told(pyth):
    ask = await pyth(clock="2025-06-15T16:00:30Z")
    kind, said = await ask.refused("get_candlestick_data", **asked(to=THEN_S + 86_400))
    assert (kind, "2025-06-15T16:00:30Z" in said) == ("invalid_input", True)
    at_s = 1_750_003_230
    body = await ask("get_candlestick_data", **asked(to=at_s))
    assert body["t"][-1] + 60 <= at_s
    assert "last_unfinished" not in body


async def test_the_candle_of_now_is_said_to_be_unfinished(pyth):
    ask = await pyth()
    body = await ask("get_candlestick_data", **asked(resolution="M", to=THEN_S + 20 * 365 * 86_400))
    assert body["last_unfinished"] is True
    kind, _ = await ask.refused(
        "get_candlestick_data", **asked(**{"from": THEN_S + 20 * 365 * 86_400, "to": THEN_S + 21 * 365 * 86_400})
    )
    assert kind == "not_found"


async def test_the_token_goes_with_the_question_and_its_hash_to_the_log(pyth):
    ask = await pyth()
    await ask("get_candlestick_data", **asked())
    assert ask.stub.last("/history").headers["authorization"] == f"Bearer {KEY}"
    (event,) = ask.events
    told = {
        name: event[name] for name in ("symbols_queried", "feed_ids_queried", "asset_types", "channel", "num_feeds")
    }
    assert told == {
        "symbols_queried": ["BTC/USD"], "feed_ids_queried": [1], "asset_types": ["crypto"],
        "channel": "fixed_rate@200ms", "num_feeds": 1,
    }  # fmt: skip
