"""get_positions, through a client."""

from __future__ import annotations

import pytest

from tests.support.desk import LATER, add_account, add_position


async def test_answers_what_is_held_in_the_specs_shape(portfolio):
    await add_position(portfolio.desk, "one", size=2.0, entry_price=500.0, current_price=560.0)
    body = await portfolio("get_positions")
    item = {
        "symbol": "BTC/USD", "side": "LONG", "size": 2.0, "entry_price": 500.0, "current_price": 560.0,
        "unrealized_pnl": 120.0, "opened_at": "2025-10-07T12:00:00Z",
    }  # fmt: skip
    assert body["data"] == {"items": [item], "pagination": {"offset": 0, "limit": 50, "total": 1, "has_more": False}}
    assert body["_metadata"]["source"] == portfolio.desk.source


async def test_a_short_gains_when_the_price_falls_and_an_unknown_price_is_null(portfolio):
    await add_position(portfolio.desk, "short", side="SHORT", size=2.0, entry_price=500.0, current_price=450.0)
    await add_position(portfolio.desk, "unpriced", "ETH/USD", current_price=None)
    items = {item["symbol"]: item for item in (await portfolio("get_positions"))["data"]["items"]}
    assert (items["BTC/USD"]["side"], items["BTC/USD"]["unrealized_pnl"]) == ("SHORT", 100.0)
    assert (items["ETH/USD"]["current_price"], items["ETH/USD"]["unrealized_pnl"]) == (None, None)


async def test_is_filtered_by_a_symbol_in_any_spelling(portfolio):
    await add_position(portfolio.desk, "one")
    await add_position(portfolio.desk, "two", "ETH/USD")
    for spelt in ("eth-usd", "ETHUSD", "ETH/USD"):
        data = (await portfolio("get_positions", symbol=spelt))["data"]
        assert ([item["symbol"] for item in data["items"]], data["pagination"]["total"]) == (["ETH/USD"], 1)
    assert (await portfolio("get_positions", symbol=None))["data"]["pagination"]["total"] == 2
    assert (await portfolio("get_positions", symbol="XAU/USD"))["data"]["items"] == []


async def test_pages_and_says_whether_there_is_more(portfolio):
    for number in range(7):
        await add_position(portfolio.desk, f"{number}")
    first = (await portfolio("get_positions", limit=5))["data"]
    rest = (await portfolio("get_positions", limit=5, offset=5))["data"]
    beyond = (await portfolio("get_positions", limit=500, offset=70))["data"]
    assert (len(first["items"]), first["pagination"]["has_more"]) == (5, True)
    assert (len(rest["items"]), rest["pagination"]["has_more"]) == (2, False)
    assert beyond == {"items": [], "pagination": {"offset": 70, "limit": 200, "total": 7, "has_more": False}}


async def test_is_never_cached(portfolio):
    assert (await portfolio("get_positions"))["data"]["items"] == []
    await add_position(portfolio.desk, "one")
    body = await portfolio("get_positions")
    assert (len(body["data"]["items"]), body["_metadata"]["cached"]) == (1, False)
    assert body["_metadata"]["cache_ttl_remaining"] is None


async def test_answers_for_the_account_of_the_settings(serve, database):
    portfolio = await serve("portfolio-mcp", account="mine", **database)
    await add_account(portfolio.desk, "mine")
    await add_position(portfolio.desk, "mine", account_id="mine")
    await add_position(portfolio.desk, "theirs", "ETH/USD")
    items = (await portfolio("get_positions"))["data"]["items"]
    assert [item["symbol"] for item in items] == ["BTC/USD"]


@pytest.mark.parametrize(
    "arguments, code",
    [
        ({"symbol": "nope"}, "INVALID_SYMBOL"),
        ({"symbol": ""}, "INVALID_SYMBOL"),
        ({"symbol": 7}, "INVALID_SYMBOL"),
        ({"limit": 0}, "INVALID_PARAMETER"),
        ({"limit": "7"}, "INVALID_PARAMETER"),
        ({"offset": -1}, "INVALID_PARAMETER"),
        ({"account": "another"}, "INVALID_PARAMETER"),
        ({"force_refresh": True}, "INVALID_PARAMETER"),
    ],
    ids=str,
)
async def test_fails_with_a_declared_code(portfolio, arguments, code):
    assert (await portfolio.refused("get_positions", **arguments))[0] == code


async def test_what_was_changed_after_the_fixed_clock_is_refused(portfolio):
    await add_position(portfolio.desk, "one", updated_at=LATER)
    code, message = await portfolio.refused("get_positions")
    assert (code, "after the fixed clock" in message) == ("NOT_FOUND", True)
