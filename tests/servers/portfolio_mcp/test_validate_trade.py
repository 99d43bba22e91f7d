"""validate_trade, through a client. The arithmetic itself: tests/domain/test_risk.py."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.desk import (
    NOON,
    add_account,
    add_implementation,
    add_limits,
    add_position,
    add_signal,
    add_spec,
)

BUY = {"symbol": "BTC/USD", "side": "BUY", "price": 500.0}
SELL = {**BUY, "side": "SELL"}


@pytest.fixture
async def account(portfolio):
    """An account of 100,000, of which 80,000 are free."""
    await add_account(portfolio.desk)
    return portfolio


async def verdict(portfolio, **arguments):
    return (await portfolio("validate_trade", **arguments))["data"]


async def test_a_trade_within_all_limits_is_valid_and_says_which_is_nearest(account):
    body = await account("validate_trade", **BUY, size=4)
    assert body["data"] == {
        "valid": True, "reason": "Within all limits; the tightest, max_position_pct, is used to 20%", "max_size": 20.0,
        "risk_score": 0.2,
    }  # fmt: skip
    assert (body["_metadata"]["cached"], body["_metadata"]["source"]) == (False, account.desk.source)


async def test_every_broken_rule_is_in_the_reason(account):
    await add_limits(
        account.desk, max_position_size=1000.0, max_position_pct=0.01, max_exposure_pct=0.01, max_open_positions=1
    )
    await add_position(account.desk, "held", "ETH/USD")
    found = await verdict(account, **BUY, size=10)
    assert (found["valid"], found["max_size"], found["risk_score"]) == (False, 0.0, 1.0)
    for rule in ("max_position_size", "max_position_pct", "max_exposure_pct", "max_open_positions"):
        assert rule in found["reason"]
    assert "5,000 USD" in found["reason"]


@pytest.fixture
async def limited(account):
    await add_position(account.desk, "held", size=0.3)
    await add_limits(account.desk, max_position_pct=0.07, max_exposure_pct=0.3, allow_short=True)
    return account


@settings(deadline=None, max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(price=st.floats(1e-3, 1e4), side=st.sampled_from(["BUY", "SELL"]))
async def test_the_largest_size_is_valid_and_more_is_not(limited, price, side):
    asked = {"symbol": "BTC/USD", "side": side, "price": price}
    largest = (await verdict(limited, **asked, size=1e-12))["max_size"]
    again = await verdict(limited, **asked, size=largest)
    assert (again["valid"], again["max_size"]) == (True, largest)
    assert not (await verdict(limited, **asked, size=largest * (1 + 1e-9)))["valid"]


async def test_what_only_closes_is_valid_whatever_the_limits(account):
    await add_position(account.desk, "held", size=2.0, current_price=None)
    await add_limits(account.desk, max_position_pct=0.0, max_exposure_pct=0.0, max_open_positions=0, max_daily_loss=0.0)
    found = await verdict(account, symbol="BTC/USD", side="SELL", size=2)
    assert (found["valid"], found["max_size"], found["risk_score"]) == (True, 2.0, 0.0)


async def test_shorts_are_opened_by_setting_only(serve, database, account):
    found = await verdict(account, **SELL, size=1)
    assert (found["valid"], found["max_size"]) == (False, 0.0)
    assert "would open a short, which is not allowed" in found["reason"]
    await add_limits(account.desk, allow_short=True, max_position_size=1000.0)
    assert (await verdict(account, **SELL, size=1))["max_size"] == 2.0


async def test_limits_are_those_of_the_settings_where_none_are_stored(serve, database):
    portfolio = await serve("portfolio-mcp", risk={"max_position_pct": 0.5, "allow_short": True}, **database)
    await add_account(portfolio.desk)
    assert (await verdict(portfolio, **BUY, size=1))["max_size"] == 100.0
    assert (await verdict(portfolio, **SELL, size=1))["valid"]


async def test_more_than_is_available_is_an_error_with_what_would_do(account):
    await add_limits(account.desk, max_position_size=90_000.0)
    error = (await account("validate_trade", **BUY, size=200))["error"]
    assert error["code"] == "INSUFFICIENT_BALANCE"
    assert error["details"] == {
        "required": 100_000.0, "available": 80_000.0, "currency": "USD", "max_size": 160.0,
        "also_breached": ["max_position_size"],
    }  # fmt: skip
    assert "max_position_size" in error["message"]
    assert (await verdict(account, **BUY, size=160))["valid"]


async def test_without_a_price_that_of_the_open_position_counts_and_then_that_of_the_last_signal(account):
    ask = {"symbol": "BTC/USD", "side": "BUY", "size": 1}
    code, message = await account.refused("validate_trade", **ask)
    assert (code, "Give `price`" in message) == ("INVALID_PARAMETER", True)
    impl = await add_implementation(account.desk, "one", await add_spec(account.desk))
    await add_signal(account.desk, "one", impl, price=250.0)
    found = await verdict(account, **ask)
    assert (found["max_size"], "at 250, the price of the last signal" in found["reason"]) == (40.0, True)
    await add_position(account.desk, "held", size=1.0, current_price=1000.0, opened_at=NOON)
    found = await verdict(account, **ask)
    assert (found["max_size"], "at 1,000, the last price of the open position" in found["reason"]) == (9.0, True)


@pytest.mark.parametrize(
    "arguments, code",
    [
        ({"symbol": "nope"}, "INVALID_SYMBOL"),
        ({"symbol": None}, "INVALID_SYMBOL"),
        ({"symbol": "ETH/BTC"}, "INVALID_SYMBOL"),
        ({"side": "HOLD"}, "INVALID_SIDE"),
        ({"side": "buy"}, "INVALID_SIDE"),
        ({"side": None}, "INVALID_SIDE"),
        ({"size": 0}, "INVALID_SIZE"),
        ({"size": -1}, "INVALID_SIZE"),
        ({"size": "1"}, "INVALID_SIZE"),
        ({"size": True}, "INVALID_SIZE"),
        ({"size": None}, "INVALID_SIZE"),
        ({"size": float("nan")}, "INVALID_SIZE"),
        ({"size": float("inf")}, "INVALID_SIZE"),
        ({"price": 0}, "INVALID_PARAMETER"),
        ({"price": -5}, "INVALID_PARAMETER"),
        ({"price": "market"}, "INVALID_PARAMETER"),
        ({"leverage": 10}, "INVALID_PARAMETER"),
        ({"size": 1e300}, "INSUFFICIENT_BALANCE"),
    ],
    ids=str,
)
async def test_fails_with_a_declared_code(account, arguments, code):
    asked = {**BUY, "size": 1, **arguments}
    assert (await account.refused("validate_trade", **asked))[0] == code


async def test_several_bad_arguments_are_told_at_once(account):
    error = (await account("validate_trade", symbol="nope", side="HOLD", size=0))["error"]
    assert (error["code"], len(error["details"]["invalid_arguments"])) == ("INVALID_SYMBOL", 3)


async def test_nobodys_account_is_not_found(portfolio):
    code, message = await portfolio.refused("validate_trade", **BUY, size=1)
    assert (code, "'default' not found" in message) == ("NOT_FOUND", True)


async def test_each_call_sees_what_was_filled_meanwhile(account):
    assert (await verdict(account, **BUY, size=1))["max_size"] == 20.0
    await add_position(account.desk, "filled", size=15.0)
    assert (await verdict(account, **BUY, size=1))["max_size"] == 5.0


async def test_a_cost_beyond_all_numbers_is_told_as_such(account):
    error = (await account("validate_trade", **{**BUY, "price": 1e300}, size=1e300))["error"]
    assert (error["code"], error["details"]["required"]) == ("INSUFFICIENT_BALANCE", None)
    assert "it costs over 1.797e+308 USD, and 80,000 is available" in error["message"]
    assert "inf " not in error["message"]


async def test_a_day_without_a_loss_has_lost_nothing_and_not_minus_nothing(account):
    await add_limits(account.desk, max_daily_loss=0.0)
    assert "today's loss of 0 USD" in (await verdict(account, **BUY, size=1))["reason"].replace("Today", "today")
