"""Rows in which something is nothing of its kind: what is sound in them, and all other rows, are told."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from tests.servers.pyth_pro.conftest import THEN_S
from tests.support.pyth_stub import PythStub

NONSENSE = [True, 1.5, [1], {"a": 1}, "text", "9" * 200, -(2**70), 1e300]
OTHERS: list[Any] = [7, None, [], "row", {}, {"price_feed_id": "x", "priceFeedId": [1]}]
each = pytest.mark.parametrize("value", NONSENSE, ids=repr)


def said(rows: list[Any], value: Any) -> bytes:
    """Rows with this value HERE, among rows that are none; orjson would not write integers beyond 64 bits."""
    dumped = str(value).encode() if isinstance(value, int) and not isinstance(value, bool) else orjson.dumps(value)
    return orjson.dumps([*rows, *OTHERS]).replace(b'"HERE"', dumped)


@each
async def test_a_latest_price_costs_no_other(pyth, value):
    members = ("price", "bestBidPrice", "confidence", "exponent", "publisherCount", "marketSession",
               "feedUpdateTimestamp", "fundingRate", "symbol", "display_price", "novel")  # fmt: skip
    rows = [{"priceFeedId": n, "price": "5", "exponent": -8, name: "HERE"} for n, name in enumerate(members, 2)]
    rows.append({"priceFeedId": 1, "price": "5", "exponent": -8})
    told = b'{"parsed":{"timestampUs":"1750000000000000","priceFeeds":%b}}' % said(rows, value)
    ask = await pyth(stub=PythStub(failing=[(200, told)], on_path="/latest_price"))
    body = await ask("get_latest_price", ids=[*range(2, len(members) + 2), 1])
    *odd, good = body["priceFeeds"]
    assert [row["priceFeedId"] for row in odd] == list(range(2, len(members) + 2))
    assert good["display_price"] == "0.00000005"


@pytest.mark.parametrize("value", ["text", 7, [1], None])
async def test_what_this_server_says_itself_is_nothing_that_pyth_could_have_sent(pyth, value):
    row = {"priceFeedId": 1, "price": "5", "marketSession": 1, "age_ms": value, "is_fresh": value, "market_open": value}
    said = {"note": value, "channel": value, "missing": value, "not_entitled": value, "trial_notice": value}
    told = {"parsed": {"timestampUs": "1750000000000000", "priceFeeds": [row], "resolved_symbols": value, **said}}
    ask = await pyth(stub=PythStub(failing=[(200, orjson.dumps(told))], on_path="/latest_price"))
    body = await ask("get_latest_price", ids=[1])
    assert body.keys() == {"timestampUs", "priceFeeds", "channel"}
    assert body["channel"] == "fixed_rate@200ms"
    assert "marketSession" not in body["priceFeeds"][0]  # which is text, and of which a number says nothing


@each
async def test_a_price_at_a_time_costs_no_other(pyth, value):
    members = ("price", "best_ask_price", "confidence", "exponent", "publisher_count", "publish_time", "channel",
               "served_by", "symbol", "display_price", "market_open", "novel")  # fmt: skip
    rows = [{"price_feed_id": n, "price": 5, "exponent": -8, name: "HERE"} for n, name in enumerate(members, 2)]
    rows.append({"price_feed_id": 1, "price": 5, "exponent": -8})
    ask = await pyth(stub=PythStub(failing=[(200, said(rows, value))], on_path="/price"))
    body = await ask("get_historical_price", ids=[*range(2, len(members) + 2), 1], timestamp=THEN_S)
    *odd, good = body["prices"]
    assert [row["price_feed_id"] for row in odd] == list(range(2, len(members) + 2))
    assert good["display_price"] == "0.00000005"


async def test_an_id_in_another_form_is_the_same_one(pyth):
    rows = orjson.dumps([{"price_feed_id": "1", "price": 5.0, "exponent": "-8"}])
    ask = await pyth(stub=PythStub(failing=[(200, rows)], on_path="/price"))
    body = await ask("get_historical_price", ids=[1], timestamp=THEN_S)
    assert [(row["price_feed_id"], row["price"], row["display_price"]) for row in body["prices"]] == [
        (1, 5, "0.00000005")
    ]


async def test_a_candle_at_no_whole_second_is_told_at_one(pyth):
    told = {"s": "ok", "t": [THEN_S + 20.0, THEN_S + 80.5, "x"], "o": [1, 2, 3], "h": [1, 2, 3], "l": [1, 2, 3],
            "c": [1, 2, 3], "v": [0, 0, 0]}  # fmt: skip
    ask = await pyth(stub=PythStub(candles=lambda *_: told))
    body = await ask(
        "get_candlestick_data", **{"symbol": "BTC/USD", "resolution": "1", "from": THEN_S, "to": THEN_S + 600}
    )
    assert (body["t"], body["c"]) == ([THEN_S + 20, THEN_S + 80], [1, 2])


BEYOND = "9" * 30
LONG = "x" * 600_000
"""Makes an answer one that is not parsed by orjson, which has no integers beyond 64 bits."""


async def test_an_integer_that_no_answer_can_carry_costs_no_other_feed(pyth):
    rows = f"""[{{"pyth_lazer_id": {BEYOND}, "symbol": "Crypto.ONE/USD"}}, {{"pyth_lazer_id": 5, "exponent": {BEYOND},
        "symbol": "Crypto.TWO/USD"}}, {{"pyth_lazer_id": 6, "symbol": "Crypto.THREE/USD", "pad": "{LONG}"}}]"""
    ask = await pyth(stub=PythStub(failing=[(200, rows.encode())], on_path="/symbols"))
    body = await ask("get_symbols")
    assert [(feed["pyth_lazer_id"], feed["exponent"]) for feed in body["feeds"]] == [(5, None), (6, None)]


async def test_an_integer_that_no_answer_can_carry_costs_no_other_price(pyth):
    rows = f"""[{{"price_feed_id": 1, "price": {2**64 - 1}, "novel": {BEYOND}, "exponent": -8}},
        {{"price_feed_id": 2, "price": 5, "exponent": -8, "pad": "{LONG}"}}]"""
    ask = await pyth(stub=PythStub(failing=[(200, rows.encode())], on_path="/price"))
    first, second = (await ask("get_historical_price", ids=[1, 2], timestamp=THEN_S))["prices"]
    assert (first["price"], first["novel"], second["price"]) == (2**64 - 1, 1e30, 5)
