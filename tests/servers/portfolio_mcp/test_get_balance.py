"""get_balance, through a client."""

from __future__ import annotations

from tests.support.desk import add_account, add_position


async def test_answers_what_the_account_has_in_the_specs_shape(portfolio):
    await add_account(portfolio.desk)
    await add_position(portfolio.desk, "one", size=2.0, entry_price=500.0, current_price=560.0)
    body = await portfolio("get_balance")
    assert body["data"] == {
        "total_balance": 100_000.0, "available_balance": 80_000.0, "margin_used": 20_000.0, "unrealized_pnl": 120.0,
    }  # fmt: skip
    assert (body["_metadata"]["cached"], body["_metadata"]["source"]) == (False, portfolio.desk.source)


async def test_nothing_is_nothing_and_what_is_not_known_is_null(portfolio):
    await add_account(portfolio.desk, total_balance=0.0, available_balance=0.0, margin_used=0.0)
    assert set((await portfolio("get_balance"))["data"].values()) == {0}
    await add_position(portfolio.desk, "unpriced", current_price=None)
    assert (await portfolio("get_balance"))["data"]["unrealized_pnl"] is None


async def test_an_account_that_there_is_none_of_is_an_error_and_no_zeros(portfolio):
    await add_account(portfolio.desk, "another")
    code, message = await portfolio.refused("get_balance")
    assert (code, "'default' not found" in message) == ("ACCOUNT_NOT_FOUND", True)


async def test_is_never_cached(portfolio):
    await add_account(portfolio.desk)
    assert (await portfolio("get_balance"))["data"]["total_balance"] == 100_000.0
    await portfolio.desk.execute("UPDATE accounts SET total_balance = 5.0")
    assert (await portfolio("get_balance"))["data"]["total_balance"] == 5.0


async def test_takes_no_arguments(portfolio):
    assert (await portfolio.refused("get_balance", account="default"))[0] == "INVALID_PARAMETER"
