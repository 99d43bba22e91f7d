"""get_latest_price, through a client."""

from __future__ import annotations

import asyncio
import logging

import orjson
import pytest
from mcp.shared.exceptions import MCPError

from tests.servers.pyth_pro.conftest import THEN_S
from tests.support.contracts import contract_of
from tests.support.hunt import MARK
from tests.support.pyth_stub import FEEDS, KEY, NOBODYS, PARTLY, PROPERTIES, TRIAL, PythStub, feed

SPEC = contract_of("pyth")
TOOL = next(tool for tool in SPEC["tools"] if tool["name"] == "get_latest_price")


def sent(ask):
    return orjson.loads(ask.stub.last("/latest_price").body)


async def test_a_row_is_as_it_was_sent_and_says_what_it_means(pyth):
    ask = await pyth()
    body = await ask("get_latest_price", symbols=["BTC/USD"])
    assert set(TOOL["result_fields"]) <= body.keys()
    (row,) = body["priceFeeds"]
    assert (row["price"], row["confidence"], row["publisherCount"]) == ("8063953748222", 1783407, 16)
    assert {name: row[name] for name in row if name.startswith("display_")} == {
        "display_price": "80639.53748222", "display_bid": "80639.27547065", "display_ask": "80639.54312758",
        "display_confidence": "0.01783407",
    }  # fmt: skip
    assert (row["age_ms"], row["is_fresh"], row["market_open"], row["confidence_bps"]) == (0, True, True, 0.0)
    assert row["spread_bps"] == pytest.approx(0.03)
    assert set(SPEC["default_properties"]) < set(sent(ask)["properties"])
    assert sent(ask)["formats"] == []


async def test_what_is_asked_is_given_and_the_exponent_only_where_it_was_asked(pyth):
    ask = await pyth()
    (row,) = (await ask("get_latest_price", ids=[1], properties=["price", "ema_price", "price"]))["priceFeeds"]
    assert row.keys() & set(PROPERTIES) == {"price", "emaPrice"}
    assert "exponent" in sent(ask)["properties"]
    assert row["display_ema_price"] == "80639.53748229"
    (row,) = (await ask("get_latest_price", ids=[1], properties=list(PROPERTIES)))["priceFeeds"]
    assert row.keys() >= set(PROPERTIES) - {"fundingRate", "fundingTimestamp", "fundingRateInterval"}


async def test_a_property_that_there_is_none_of_is_named(pyth):
    ask = await pyth()
    kind, said = await ask.refused("get_latest_price", ids=[1], properties=["price", "volume"])
    assert (kind, said.startswith("Invalid property: volume. Valid properties: price, ")) == ("invalid_input", True)
    assert ask.stub.asked == ["/docs/openapi.json"]  # which may know it


@pytest.mark.parametrize("token", ["", "   "])
async def test_without_a_token_the_answer_is_the_specs_sentence_and_nobody_is_asked(pyth, token):
    ask = await pyth(token)
    assert await ask.refused("get_latest_price", symbols=["BTC/USD"]) == ("auth", SPEC["errors"]["missing_token"])
    assert ask.stub.asked == []


async def test_a_token_that_is_none_has_the_specs_sentence(pyth):
    ask = await pyth(NOBODYS)
    assert await ask.refused("get_latest_price", ids=[1]) == ("auth", SPEC["errors"]["invalid_token"])


@pytest.mark.parametrize("spelling", ["ids", "priceFeedIds", "price_feed_ids"])
async def test_a_hundred_ids_go_out_once_each_and_symbols_stay_behind(pyth, spelling):
    many = [feed(number, f"Crypto.X{number}/USD", "X") for number in range(1, 101)]
    ask = await pyth(stub=PythStub(feeds=many))
    body = await ask("get_latest_price", **{spelling: [*range(1, 101), 5]}, symbols=["NOPE"])
    assert [row["priceFeedId"] for row in body["priceFeeds"]] == list(range(1, 101))
    assert "symbols" not in sent(ask)


async def test_a_feed_that_the_token_does_not_cover_hides_no_other_however_many_there_are(pyth):
    feeds = [*FEEDS, *(feed(5000 + n, f"FX.X{n}/USD", "X", asset_type="fx") for n in range(40))]
    ask = await pyth(PARTLY, stub=PythStub(feeds=feeds))
    body = await ask("get_latest_price", ids=[327, *range(5000, 5040), 1])
    assert [row["priceFeedId"] for row in body["priceFeeds"]] == [1]
    assert len(body["not_entitled"]) == 41
    assert body["not_entitled"][0]["symbol"] == "FX.EUR/USD"
    assert sum(path.endswith("latest_price") for path in ask.stub.asked) == 3


async def test_a_refusal_that_names_no_feed_hides_none_that_the_token_covers(pyth):
    ask = await pyth(PARTLY, stub=PythStub(failing=[(403, b"Not entitled to some of these")], on_path="/latest_price"))
    body = await ask("get_latest_price", ids=[327, 1])
    assert [row["priceFeedId"] for row in body["priceFeeds"]] == [1]
    assert [left["reason"] for left in body["not_entitled"]] == ["not covered by this token"]
    ask.stub.failing = [(403, b"Not entitled at all")]
    kind, said = await ask.refused("get_latest_price", ids=[1])
    assert (kind, said) == ("entitlement", "Your Pyth Pro access token does not cover this: Not entitled at all")


async def test_ids_that_there_are_none_of_hide_no_other_however_many_there_are(pyth):
    ask = await pyth()
    body = await ask("get_latest_price", ids=[*range(70_000, 70_040), 1])
    assert [row["priceFeedId"] for row in body["priceFeeds"]] == [1]
    assert len(body["missing"]) == 40
    assert sum(path.endswith("latest_price") for path in ask.stub.asked) == 3


async def test_if_it_covers_none_the_reason_is_told(pyth):
    ask = await pyth(PARTLY)
    kind, said = await ask.refused("get_latest_price", symbols=["EUR/USD"])
    assert kind == "entitlement"
    assert "FX.EUR/USD" in said
    assert "asset type 'fx'" in said
    assert ask.events[-1]["error_type"] == "auth"


async def test_feeds_that_are_silent_unknown_or_not_live_are_named(pyth):
    ask = await pyth(stub=PythStub(silent=frozenset({2})))
    body = await ask("get_latest_price", ids=[1, 2, 4001, 77777])
    assert [row["priceFeedId"] for row in body["priceFeeds"]] == [1]
    assert {left["price_feed_id"]: left["reason"] for left in body["missing"]} == {
        2: "no data now", 4001: "its state is coming_soon", 77777: "no such feed",
    }  # fmt: skip


async def test_an_unknown_id_alone_has_the_specs_sentence(pyth):
    ask = await pyth()
    told = await ask.refused("get_latest_price", ids=[4000000])
    assert told == ("not_found", SPEC["errors"]["feed_not_found"].format(symbol=4000000))


async def test_an_unknown_symbol_has_the_specs_sentence_and_the_router_is_not_asked(pyth):
    ask = await pyth()
    told = await ask.refused("get_latest_price", symbols=["NOPE/USD"])
    assert told == ("not_found", SPEC["errors"]["feed_not_found"].format(symbol="NOPE/USD"))
    assert ask.stub.asked == ["/v1/symbols"]


@pytest.mark.parametrize("channel", ["fixed_rate@123ms", "nope"])
async def test_an_invalid_channel_has_the_specs_sentence(pyth, channel):
    ask = await pyth()
    told = await ask.refused("get_latest_price", ids=[1], channel=channel)
    assert told == ("invalid_input", SPEC["errors"]["invalid_channel"].format(channel=channel))


async def test_a_channel_faster_than_a_feeds_is_refused_before_the_call(pyth):
    ask = await pyth()
    kind, said = await ask.refused("get_latest_price", symbols=["BTC/USD", "AAPL"], channel="real_time")
    assert kind == "invalid_input"
    assert "Equity.US.AAPL/USD has fixed_rate@50ms at the fastest" in said
    assert ask.stub.asked == ["/v1/symbols"]


async def test_a_refusal_of_the_router_is_told_with_its_reason_and_not_as_something_to_try_again(pyth):
    refusal = b"Channel fixed_rate@200ms violates rate limit. Minimum allowed channel is 1000ms"
    ask = await pyth(stub=PythStub(failing=[(400, refusal)], on_path="/latest_price"))
    kind, said = await ask.refused("get_latest_price", ids=[1])
    assert (kind, refusal.decode() in said, "again" in said) == ("invalid_input", True, False)


async def test_an_old_price_that_is_carried_on_is_not_fresh(pyth):
    ask = await pyth(stub=PythStub(lag_us={922: 3_600_000_000}))
    (row,) = (await ask("get_latest_price", symbols=["AAPL"]))["priceFeeds"]
    assert (row["is_fresh"], row["age_ms"]) == (False, 3_600_000)


async def test_no_signed_bytes_are_told_even_if_they_come(pyth):
    blob = {"encoding": "base64", "data": "A" * 500}
    parsed = {"timestampUs": "1", "priceFeeds": [{"priceFeedId": 1, "price": "5", "evm": blob}], "leSigned": blob}
    told = {"parsed": parsed, "solana": blob, "leUnsigned": blob}
    ask = await pyth(stub=PythStub(failing=[(200, orjson.dumps(told))], on_path="/latest_price"))
    assert b"AAAA" not in orjson.dumps(await ask("get_latest_price", ids=[1]))


async def test_members_that_nobody_knew_are_passed_on(pyth):
    told = {"parsed": {"timestampUs": "1", "priceFeeds": [{"priceFeedId": 1, "price": 5, "novel": [1]}, 7, None]}}
    ask = await pyth(stub=PythStub(failing=[(200, orjson.dumps(told))], on_path="/latest_price"))
    (row,) = (await ask("get_latest_price", ids=[1]))["priceFeeds"]
    assert (row["novel"], row["price"], row["display_price"]) == ([1], 5, "0.00000005")  # by the list's exponent


async def test_an_integer_beyond_what_a_float_holds_is_exact(pyth):
    ask = await pyth()
    (row,) = (await ask("get_latest_price", ids=[112], properties=["price", "fundingRate"]))["priceFeeds"]
    assert (row["price"], row["display_price"]) == ("80813667608700001", "80813.667608700001")
    assert row["display_funding_rate"] == "0.000038770000"


async def test_without_the_list_ids_still_work(pyth):
    ask = await pyth(stub=PythStub(failing=[(500, b"")], on_path="/symbols"))
    (row,) = (await ask("get_latest_price", ids=[1]))["priceFeeds"]
    assert (row["symbol"], row["display_price"], row["market_open"]) == (None, "80639.53748222", None)


async def test_at_a_fixed_clock_there_are_no_latest_prices(pyth):
    ask = await pyth(clock="2026-06-01T12:00:00Z")
    kind, said = await ask.refused("get_latest_price", ids=[1])
    assert (kind, "get_historical_price" in said) == ("invalid_input", True)
    assert "/v1/latest_price" not in ask.stub.asked


async def test_a_service_that_does_not_answer_has_the_specs_sentence(pyth):
    ask = await pyth(stub=PythStub(stalled=asyncio.Event(), on_path="/latest"), request_timeout_ms=200)
    assert await ask.refused("get_latest_price", ids=[1]) == ("timeout", SPEC["errors"]["timeout"])
    ask.stub.stalled.set()


@pytest.mark.parametrize("wrong", [{"ids": ["x"]}, {"properties": "price"}, {"bogus": 1}, {"channel": 3}])
async def test_what_is_no_proper_request_is_a_protocol_error(pyth, wrong):
    ask = await pyth()
    with pytest.raises(MCPError) as refused:
        await ask.client.call_tool("get_latest_price", wrong)
    assert refused.value.error.code == -32602


# the token for trial


async def test_who_has_no_token_is_lent_one_where_there_is_one_and_told_so(pyth):
    ask = await pyth("", server_token=TRIAL, stub=PythStub(covered={TRIAL: None}))
    body = await ask("get_latest_price", ids=[1])
    assert body["trial_notice"] == SPEC["watermark"]
    (event,) = ask.events
    assert (event["is_trial"], event["has_token"], event["token_hash"]) == (True, False, "")


async def test_a_token_for_trial_that_is_none_is_not_said_to_be_the_callers(pyth):
    ask = await pyth("", server_token=NOBODYS)
    assert await ask.refused("get_latest_price", ids=[1]) == ("auth", SPEC["errors"]["missing_token"])


async def test_who_has_a_token_uses_it(pyth):
    ask = await pyth(KEY, server_token=TRIAL)
    assert "trial_notice" not in await ask("get_latest_price", ids=[1])
    assert "is_trial" not in ask.events[0]
    assert ask.stub.last("/latest").headers["authorization"] == f"Bearer {KEY}"


async def test_a_session_has_so_many_calls_on_trial(pyth):
    ask = await pyth("", server_token=TRIAL, trial_rate_limit=2, stub=PythStub(covered={TRIAL: None}))
    for _ in range(2):
        await ask("get_latest_price", ids=[1])
    kind, said = await ask.refused("get_historical_price", ids=[1], timestamp=THEN_S)
    assert (kind, "2 calls per minute" in said) == ("rate_limited", True)


# what the log has


async def test_the_log_has_every_field_of_the_spec_and_no_token(pyth):
    ask = await pyth()
    await ask("get_latest_price", symbols=["BTC/USD", "AAPL"], properties=["price"])
    (event,) = ask.events
    unsaid = set(SPEC["log_optional"]) | {"timestamp"}  # the writer's own
    assert set(SPEC["log_fields"]) - unsaid <= event.keys()
    told = {
        name: event[name] for name in ("symbols_queried", "feed_ids_queried", "asset_types", "channel", "properties")
    }
    assert told == {
        "symbols_queried": ["BTC/USD", "AAPL"], "feed_ids_queried": [1, 922], "asset_types": ["crypto", "equity"],
        "channel": "fixed_rate@200ms", "properties": ["price"],
    }  # fmt: skip
    assert (event["num_feeds"], event["num_feeds_returned"]) == (2, 2)
    assert event["has_token"] is True


async def test_the_token_is_nowhere_but_in_the_header_that_it_is_meant_for(pyth, caplog):
    caplog.set_level(logging.DEBUG)
    echo = f"who is {KEY}? Bearer {KEY}".encode()
    said = []
    for status in (200, 400, 401, 403, 404, 422, 429, 500, 503):
        answer = (status, echo, {"retry-after": "0", "location": f"/?{KEY}"})
        ask = await pyth(stub=PythStub(failing=[answer] * 2, on_path="/latest_price"))
        said.append(await ask.refused("get_latest_price", ids=[1]))
        ask.stub.failing = [answer] * 4
        ask.stub.on_path = "/price"  # the history's, and the router's in its place
        said.append(await ask.refused("get_historical_price", ids=[1], timestamp=THEN_S))
        ask.stub.failing = [answer] * 2
        ask.stub.on_path = "fixed_rate@200ms"
        said.append(
            await ask.refused(
                "get_candlestick_data", **{"symbol": "BTC/USD", "resolution": "1", "from": THEN_S, "to": THEN_S + 9}
            )
        )
        said.append(ask.events)
        said += [(request.path, request.query, request.body) for request in ask.stub.http.heard]
    assert KEY not in f"{said}{caplog.text}"


@pytest.mark.parametrize("token", [f"{MARK} with a blank", f"{MARK}\nline", f"{MARK} tökén"])
async def test_a_token_that_no_header_can_hold_is_refused_and_not_repeated(pyth, caplog, token):
    caplog.set_level(logging.DEBUG)
    ask = await pyth(token)
    told = await ask.refused("get_latest_price", ids=[1])
    assert told == ("auth", SPEC["errors"]["invalid_token"])
    assert token not in f"{told}{caplog.text}{ask.events}"
    assert ask.stub.asked == []


async def test_a_hundred_calls_at_once_share_the_connections(pyth):
    ask = await pyth(connections=10)
    bodies = await asyncio.gather(*(ask("get_latest_price", ids=[1]) for _ in range(100)))
    assert len(bodies) == 100
    assert ask.stub.http.most_connected <= 10
    assert ask.stub.asked.count("/v1/symbols") == 1
