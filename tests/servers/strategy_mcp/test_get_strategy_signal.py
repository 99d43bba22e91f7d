"""get_strategy_signal, through a client."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.support.desk import LATER, NOON, add_implementation, add_signal, add_spec, uid

DAY = timedelta(hours=24)


@pytest.fixture
async def impl(strategy):
    spec = await add_spec(strategy.desk)
    return await add_implementation(strategy.desk, "one", spec, parameters={"period": 14})


async def test_answers_the_newest_signal_with_the_strategys_parameters(strategy, impl):
    await add_signal(strategy.desk, "old", impl, "SELL", signal_timestamp=NOON - timedelta(hours=3))
    await add_signal(strategy.desk, "new", impl, "CLOSE_SHORT", strength=0.75)
    body = await strategy("get_strategy_signal", strategy_id=impl, symbol="BTC_USD")
    assert body["data"] == {
        "signal": "BUY",
        "confidence": 0.75,
        "triggered_at": "2026-01-15T11:00:00Z",
        "parameters": {"period": 14},
    }


async def test_a_signal_is_current_for_a_day_and_not_a_second_longer(strategy, impl):
    await add_signal(strategy.desk, "just", impl, signal_timestamp=NOON - DAY)
    assert (await strategy("get_strategy_signal", strategy_id=impl, symbol="BTC/USD"))["data"]["signal"] == "BUY"
    other = await add_implementation(strategy.desk, "two", uid("SMA_RSI"))
    await add_signal(strategy.desk, "past", other, signal_timestamp=NOON - DAY - timedelta(seconds=1))
    body = await strategy("get_strategy_signal", strategy_id=other, symbol="BTC/USD")
    assert body["error"]["code"] == "NO_SIGNAL"
    assert body["error"]["details"]["last_triggered_at"] == "2026-01-14T11:59:59Z"


async def test_a_strategy_that_never_spoke_has_no_signal(strategy, impl):
    body = await strategy("get_strategy_signal", strategy_id=impl, symbol="BTC/USD")
    assert body["error"]["code"] == "NO_SIGNAL"
    assert body["error"]["details"]["last_triggered_at"] is None


async def test_a_signal_saved_after_the_clock_is_invisible(strategy, impl):
    await add_signal(strategy.desk, "late", impl, created_at=LATER)
    assert (await strategy.refused("get_strategy_signal", strategy_id=impl, symbol="BTC/USD"))[0] == "NO_SIGNAL"


@pytest.mark.parametrize("nobody", ["42", "", "8c1f0f4e-3f0e-4f0a-9d0a-0a1b2c3d4e5f", "' OR 1=1 --"])
async def test_an_unknown_strategy_is_not_found_whatever_its_id_looks_like(strategy, impl, nobody):
    code, message = await strategy.refused("get_strategy_signal", strategy_id=nobody, symbol="BTC/USD")
    assert code == "STRATEGY_NOT_FOUND"
    assert "not found" in message


async def test_a_bad_symbol_is_named_with_what_was_made_of_it(strategy, impl):
    body = await strategy("get_strategy_signal", strategy_id=impl, symbol="bitcoin")
    assert body["error"]["code"] == "INVALID_SYMBOL"
    assert body["error"]["details"]["normalized"] == "BITCOIN"


async def test_no_strength_is_no_confidence_and_not_a_missing_one(strategy, impl):
    await add_signal(strategy.desk, "weak", impl, strength=None)
    body = await strategy("get_strategy_signal", strategy_id=impl, symbol="BTC/USD")
    assert body["data"]["confidence"] == 0.0
