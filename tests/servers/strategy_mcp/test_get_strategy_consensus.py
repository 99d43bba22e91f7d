"""get_strategy_consensus, through a client. The arithmetic itself: tests/domain/test_consensus.py."""

from __future__ import annotations

from datetime import timedelta

from tests.support.desk import NOON, add_implementation, add_signal, add_spec


async def voices(strategy, **actions):
    spec = await add_spec(strategy.desk)
    for name, action in actions.items():
        impl = await add_implementation(strategy.desk, name, spec)
        if action is not None:
            await add_signal(strategy.desk, name, impl, action, strength=0.5)
    return spec


async def test_counts_the_newest_word_of_every_active_strategy(strategy):
    await voices(strategy, a="BUY", b="CLOSE_SHORT", c="BUY", d="SELL", e=None)
    body = await strategy("get_strategy_consensus", symbol="BTC/USD")
    assert body["data"] == {
        "bullish_count": 3, "bearish_count": 1, "neutral_count": 1, "consensus": "BUY", "confidence": 0.3,
    }  # fmt: skip


async def test_as_many_bulls_as_bears_is_neutral(strategy):
    await voices(strategy, a="BUY", b="SELL")
    body = await strategy("get_strategy_consensus", symbol="BTC/USD")
    assert (body["data"]["consensus"], body["data"]["confidence"]) == ("NEUTRAL", 0.0)


async def test_a_stale_signal_counts_as_neutral(strategy):
    spec = await voices(strategy, a="BUY")
    late = await add_implementation(strategy.desk, "stale", spec)
    await add_signal(strategy.desk, "stale", late, "SELL", signal_timestamp=NOON - timedelta(hours=25))
    data = (await strategy("get_strategy_consensus", symbol="BTC/USD"))["data"]
    assert (data["bullish_count"], data["bearish_count"], data["neutral_count"]) == (1, 0, 1)


async def test_no_active_strategy_is_an_error_not_a_neutral(strategy):
    await add_spec(strategy.desk)
    code, message = await strategy.refused("get_strategy_consensus", symbol="BTC/USD")
    assert (code, "BTC/USD" in message) == ("NO_ACTIVE_STRATEGIES", True)
