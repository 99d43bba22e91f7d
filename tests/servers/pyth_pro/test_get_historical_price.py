"""get_historical_price, through a client."""

from __future__ import annotations

import orjson
import pytest
from mcp.shared.exceptions import MCPError

from tests.servers.pyth_pro.conftest import THEN_S
from tests.support.contracts import contract_of
from tests.support.pyth_stub import NOBODYS, PARTLY, TRIAL, PythStub

SPEC = contract_of("pyth")
TOOL = next(tool for tool in SPEC["tools"] if tool["name"] == "get_historical_price")


async def test_a_row_has_all_that_the_service_says_and_what_it_means(pyth):
    ask = await pyth("")
    body = await ask("get_historical_price", symbols=["BTC/USD"], timestamp=THEN_S)
    (row,) = body["prices"]
    assert set(TOOL["result_fields"]) <= row.keys()
    assert (row["price"], row["exponent"], row["display_price"]) == (8063953748222, -8, "80639.53748222")
    assert (row["channel"], row["channel_name"], row["funding_rate"]) == (3, "fixed_rate@200ms", None)
    assert (row["display_bid"], row["symbol"], row["market_open"]) == ("80639.27547065", "Crypto.BTC/USD", True)
    assert "display_funding_rate" not in row
    assert body["resolved_symbols"] == {"BTC/USD": "Crypto.BTC/USD"}
    assert (body["timestamp_us"], body["timestamp"]) == (THEN_S * 1_000_000, "2025-06-15T15:06:40Z")


@pytest.mark.parametrize(
    "timestamp, at_us",
    [
        (THEN_S, THEN_S * 10**6),
        (str(THEN_S), THEN_S * 10**6),
        (THEN_S * 1000 + 250, THEN_S * 10**6 + 200_000),  # aligned down to the channel
        (THEN_S * 10**6 + 399_999, THEN_S * 10**6 + 200_000),
        (THEN_S + 0.5, THEN_S * 10**6 + 400_000),
    ],
)
async def test_seconds_milliseconds_and_microseconds_are_told_apart(pyth, timestamp, at_us):
    ask = await pyth()
    body = await ask("get_historical_price", ids=[1], timestamp=timestamp)
    assert body["timestamp_us"] == at_us
    assert ask.stub.last("/price").query["timestamp"] == str(at_us)


async def test_the_fastest_channel_is_not_aligned(pyth):
    ask = await pyth()
    at_us = THEN_S * 10**6 + 123_457
    assert (await ask("get_historical_price", ids=[1], timestamp=at_us, channel="real_time"))["timestamp_us"] == at_us


@pytest.mark.parametrize("timestamp", [0, -5, THEN_S * 10**9])
async def test_what_can_be_no_time_is_refused(pyth, timestamp):
    ask = await pyth()
    kind, said = await ask.refused("get_historical_price", ids=[1], timestamp=timestamp)
    assert (kind, said.startswith("Invalid timestamp: "), ask.stub.asked) == ("invalid_input", True, [])


@pytest.mark.parametrize(
    "timestamp, said", [(1_700_000_000, "Prices begin at 2025-04-01"), (9_999_999_999, "later than now")]
)
async def test_a_time_before_or_after_all_prices_is_said_to_be(pyth, timestamp, said):
    ask = await pyth()
    kind, told = await ask.refused("get_historical_price", ids=[1], timestamp=timestamp)
    assert kind == "not_found"
    assert told.startswith(SPEC["errors"]["timestamp_not_found"])
    assert said in told


@pytest.mark.parametrize("answer", [(200, b"[]"), (404, b"")])
async def test_no_price_at_that_time_has_the_specs_sentence(pyth, answer):
    ask = await pyth(stub=PythStub(failing=[answer], on_path="/price"))
    told = await ask.refused("get_historical_price", ids=[1], timestamp=THEN_S)
    assert told == ("not_found", SPEC["errors"]["timestamp_not_found"])


@pytest.mark.parametrize("spelling", ["ids", "priceFeedIds", "price_feed_ids"])
async def test_ids_have_three_spellings_and_count_once_and_before_symbols(pyth, spelling):
    ask = await pyth()
    body = await ask("get_historical_price", **{spelling: [2, 1, "2", 1]}, symbols=["NOPE"], timestamp=THEN_S)
    assert [row["price_feed_id"] for row in body["prices"]] == [2, 1]
    assert ask.events[0]["num_feeds"] == 2


async def test_a_feed_without_a_price_is_named_and_hides_no_other(pyth):
    ask = await pyth(stub=PythStub(silent=frozenset({2})))
    body = await ask("get_historical_price", ids=[1, 2, 4001, 77777], timestamp=THEN_S)
    assert [row["price_feed_id"] for row in body["prices"]] == [1]
    assert {left["price_feed_id"]: left["reason"] for left in body["missing"]} == {
        2: "no price at that time", 4001: "not ready: its state is coming_soon", 77777: "no such feed",
    }  # fmt: skip


async def test_a_feed_that_the_token_does_not_cover_is_named_and_hides_no_other(pyth):
    ask = await pyth(PARTLY, stub=PythStub(history_needs_key=True))
    body = await ask("get_historical_price", symbols=["EUR/USD", "BTC/USD"], timestamp=THEN_S)
    assert [row["price_feed_id"] for row in body["prices"]] == [1]
    (left,) = body["not_entitled"]
    assert (left["price_feed_id"], left["symbol"], "asset type 'fx'" in left["reason"]) == (327, "FX.EUR/USD", True)


@pytest.mark.parametrize("asked, symbol", [({"symbols": ["NOPE/USD"]}, "NOPE/USD"), ({"ids": [77777]}, "77777")])
async def test_a_feed_that_there_is_none_of_has_the_specs_sentence(pyth, asked, symbol):
    ask = await pyth()
    told = await ask.refused("get_historical_price", **asked, timestamp=THEN_S)
    assert told == ("not_found", SPEC["errors"]["feed_not_found"].format(symbol=symbol))


async def test_every_symbol_that_is_wrong_is_named_at_once(pyth):
    ask = await pyth()
    _, said = await ask.refused(
        "get_historical_price", symbols=["NOPE", "BTC/USD", "DUO/USD", "WTI/USD"], timestamp=THEN_S
    )
    lines = said.split("\n")
    assert [line.partition(":")[0] for line in lines] == ["Feed not found", "Ambiguous symbol", "Feed not found"]
    assert "no longer published: Commodities.WTI/USD" in lines[2]


@pytest.mark.parametrize("asked", [{}, {"ids": []}, {"symbols": []}])
async def test_nothing_asked_is_a_sentence(pyth, asked):
    ask = await pyth()
    kind, said = await ask.refused("get_historical_price", **asked, timestamp=THEN_S)
    assert (kind, "give symbols" in said) == ("invalid_input", True)


@pytest.mark.parametrize(
    "wrong", [{"ids": ["x"]}, {"ids": 1}, {"ids": [True]}, {"timestamp": None}, {"symbols": "BTC/USD"}]
)
async def test_what_is_no_proper_request_is_a_protocol_error(pyth, wrong):
    ask = await pyth()
    with pytest.raises(MCPError) as refused:
        await ask.client.call_tool("get_historical_price", {"ids": [1], "timestamp": THEN_S, **wrong})
    assert refused.value.error.code == -32602


async def test_a_history_that_wants_a_token_says_so_in_the_specs_words(pyth):
    for token, name in (("", "missing_token"), (NOBODYS, "invalid_token")):
        ask = await pyth(token, stub=PythStub(history_needs_key=True))
        told = await ask.refused("get_historical_price", ids=[1], timestamp=THEN_S)
        assert told == ("auth", SPEC["errors"][name])


async def test_an_integer_beyond_what_a_float_holds_is_exact(pyth):
    ask = await pyth()
    (row,) = (await ask("get_historical_price", ids=[112], timestamp=THEN_S))["prices"]
    assert (row["price"], row["display_price"]) == (80_813_667_608_700_001, "80813.667608700001")
    assert (row["display_funding_rate"], row["best_bid_price"]) == ("0.000038770000", None)


async def test_a_row_without_a_price_has_nothing_to_show(pyth):
    ask = await pyth(stub=PythStub(rows=lambda row: {**row, "price": None, "publisherCount": 0, "exponent": None}))
    (row,) = (await ask("get_historical_price", ids=[1], timestamp=THEN_S))["prices"]
    assert (row["price"], "display_price" in row, "confidence_bps" in row) == (None, False, False)


@pytest.mark.parametrize("unit", [1, 1000, 1_000_000])
async def test_at_a_fixed_clock_a_row_of_later_is_none(pyth, unit):
    ask = await pyth(clock="2025-06-15T16:00:00Z")
    rows = [
        {"price_feed_id": 1, "price": 5, "publish_time": (THEN_S + 86_400) * unit},
        {"price_feed_id": 2, "price": 5, "publish_time": THEN_S * unit},
        {"price_feed_id": 6, "price": 5, "publish_time": None},
    ]
    ask.stub.failing, ask.stub.on_path = [(200, orjson.dumps(rows))], "/price"
    body = await ask("get_historical_price", ids=[1, 2, 6], timestamp=THEN_S)
    assert [row["price_feed_id"] for row in body["prices"]] == [2, 6]
    assert [left["price_feed_id"] for left in body["missing"]] == [1]


async def test_at_a_fixed_clock_nothing_later_is_asked(pyth):
    ask = await pyth(clock="2025-06-15T16:00:00Z")
    kind, said = await ask.refused("get_historical_price", ids=[1], timestamp=THEN_S + 86_400)
    assert (kind, "2025-06-15T16:00:00Z" in said) == ("invalid_input", True)
    assert "/price" not in "".join(ask.stub.asked)
    assert (await ask("get_historical_price", ids=[1], timestamp=THEN_S))["count"] == 1


@pytest.mark.parametrize("timestamp, is_open", [(THEN_S, False), (1_750_086_000, True)])  # a Sunday, and a Monday
async def test_whether_a_market_was_open_is_told_of_the_time_that_was_asked(pyth, timestamp, is_open):
    ask = await pyth()
    (row,) = (await ask("get_historical_price", symbols=["AAPL"], timestamp=timestamp))["prices"]
    assert row["market_open"] is is_open


async def test_a_row_without_an_exponent_has_the_lists(pyth):
    rows = orjson.dumps([{"price_feed_id": 1, "price": 5}])
    ask = await pyth(stub=PythStub(failing=[(200, rows)], on_path="/price"))
    (row,) = (await ask("get_historical_price", ids=[1], timestamp=THEN_S))["prices"]
    assert row["display_price"] == "0.00000005"


@pytest.mark.parametrize("number", [0, -1, 2**32])
async def test_what_can_be_no_id_is_refused(pyth, number):
    ask = await pyth()
    kind, said = await ask.refused("get_historical_price", ids=[1, number], timestamp=THEN_S)
    assert (kind, f"{number} is none" in said, ask.stub.asked) == ("invalid_input", True, [])


async def test_of_several_feeds_the_slowest_says_on_which_channel_they_are_asked(pyth):
    ask = await pyth(channel="fixed_rate@50ms")
    body = await ask("get_historical_price", symbols=["XAU/USD", "PYTHOIL/USD", "BTC/USD"], timestamp=THEN_S)
    assert (body["channel"], body["count"]) == ("fixed_rate@1000ms", 3)


async def test_answers_on_trial_say_so_whatever_was_asked(pyth):
    ask = await pyth("", server_token=TRIAL, stub=PythStub(covered={TRIAL: None}))
    candles = {"symbol": "BTC/USD", "resolution": "1", "from": THEN_S, "to": THEN_S + 600}
    for body in (
        await ask("get_historical_price", ids=[1], timestamp=THEN_S),
        await ask("get_candlestick_data", **candles),
    ):
        assert body["trial_notice"] == SPEC["watermark"]
