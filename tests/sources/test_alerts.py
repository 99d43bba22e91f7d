"""Subscriptions: what each hears of, in which order and how often, and how long it lasts."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest

from quantdeck.core.errors import Busy
from quantdeck.domain.alerts import begun
from quantdeck.domain.candles import Bars
from quantdeck.domain.crossings import RULES
from quantdeck.settings import Alerts as Limits
from quantdeck.sources.alerts import NEW_AT_ONCE, Alerts, Subscription, uri_of
from tests.support.bars import every

DOWN = np.linspace(200, 190, 50).tolist()
UP, STILL_UP, DOWN_AGAIN = 201.0, 202.0, 180.0


def of(closes: list[float], first_s: int = 0) -> Bars:
    closes_ = np.array(closes)
    return Bars.of(every(60, first_s, len(closes)), closes_, closes_, closes_, closes_, closes_)


class World:
    """Alerts, and a clock that is turned by hand."""

    def __init__(self, **said: Any) -> None:
        self.now = 1000.0
        self.alerts = Alerts(Limits(**said), clock=lambda: self.now)

    def subscribed(
        self, closes: list[float] | None = None, owner: str = "me", rules: tuple[str, ...] = tuple(RULES), **said: Any
    ) -> Subscription:
        bars = of(DOWN if closes is None else closes)
        symbol, timeframe = said.pop("symbol", "AAPL"), said.pop("timeframe", "1min")
        terms: dict[str, Any] = {"throttle_ms": 0, "conditions": (), "rules": rules, **said}
        terms |= {"seen_s": int(bars.time[-1]) if len(bars) else -1, "told": set(begun(bars.close))}
        return self.alerts.add(owner, symbol, timeframe, notify=None, **terms)

    def raised(self, to: Subscription, closes: list[float]) -> list[tuple[str, ...]]:
        found = to.throttled(to.look(of(closes)), self.now)
        if found:
            to.last_at = self.now
        return [one.rules for one in found]


@pytest.fixture
def world() -> World:
    return World()


def test_what_held_at_the_time_of_asking_is_no_news(world):
    closes = [*DOWN, UP]
    assert "ema_reclaim" in begun(np.array(closes))
    subscription = world.subscribed(closes)
    assert world.raised(subscription, closes) == []


def test_a_crossing_is_raised_once_however_often_is_looked(world):
    subscription = world.subscribed(rules=("ema_reclaim", "ema_support_lost"))
    assert world.raised(subscription, [*DOWN, UP]) == [("ema_reclaim",)]
    assert world.raised(subscription, [*DOWN, UP]) == []
    assert world.raised(subscription, [*DOWN, UP, STILL_UP]) == []
    assert world.raised(subscription, [*DOWN, UP, STILL_UP, DOWN_AGAIN]) == [("ema_support_lost",)]


def test_a_level_is_raised_when_it_is_reached_and_not_while_it_lasts(world):
    up = [*DOWN, *np.linspace(191, 240, 40)]
    subscription = world.subscribed(rules=("rsi_overbought",))
    raised = [rules for many in range(51, len(up) + 1) for rules in world.raised(subscription, up[:many])]
    assert raised == [("rsi_overbought",)]


def test_only_what_was_asked_for_is_raised(world):
    everything, one = world.subscribed(), world.subscribed(rules=("ema_reclaim",))
    closes = [*DOWN, 260.0]
    assert world.raised(one, closes) == [("ema_reclaim",)]
    (rules,) = world.raised(everything, closes)
    assert {"ema_reclaim", "rsi_overbought", "bb_breakout_up", "macd_cross_up"} <= set(rules)
    assert list(rules) == [name for name in RULES if name in rules]


def test_several_new_bars_are_each_looked_at_in_their_order(world):
    subscription = world.subscribed(rules=("ema_reclaim", "ema_support_lost"))
    assert world.raised(subscription, [*DOWN, UP, STILL_UP, DOWN_AGAIN]) == [("ema_reclaim",), ("ema_support_lost",)]


def test_a_correction_of_the_newest_bar_raises_what_it_makes_true_and_nothing_twice(world):
    subscription = world.subscribed(rules=("ema_reclaim", "bb_breakout_up"))
    assert world.raised(subscription, [*DOWN, 189.0]) == []
    assert world.raised(subscription, [*DOWN, 193.0]) == [("ema_reclaim",)]
    assert world.raised(subscription, [*DOWN, 189.0]) == []
    assert world.raised(subscription, [*DOWN, 193.5]) == []
    assert world.raised(subscription, [*DOWN, 230.0]) == [("bb_breakout_up",)]


def test_bars_that_come_late_for_the_past_are_no_news(world):
    subscription = world.subscribed(rules=("ema_reclaim", "ema_support_lost"))
    late = of([*DOWN, UP, DOWN_AGAIN, *DOWN], first_s=-60 * 52)
    assert subscription.look(late) == []


def test_too_few_bars_raise_nothing_until_there_are_enough(world):
    subscription = world.subscribed([], rules=("bb_squeeze", "rsi_oversold"))
    falling = np.linspace(200, 199, 40).tolist()
    raised = [world.raised(subscription, falling[:many]) for many in range(1, 41)]
    assert raised[:34] == [[]] * 34


def test_who_was_away_for_long_hears_of_the_newest(world):
    swings = [UP, DOWN_AGAIN] * NEW_AT_ONCE
    subscription = world.subscribed(rules=("ema_reclaim", "ema_support_lost"))
    assert len(world.raised(subscription, [*DOWN, *swings])) == NEW_AT_ONCE


def test_a_throttle_keeps_back_what_comes_too_soon_and_counts_it(world):
    subscription = world.subscribed(rules=("ema_reclaim", "ema_support_lost"), throttle_ms=5000)
    closes = [*DOWN, UP]
    assert world.raised(subscription, closes) == [("ema_reclaim",)]
    world.now += 4.999
    assert world.raised(subscription, closes := [*closes, DOWN_AGAIN]) == []
    world.now += 0.001
    assert world.raised(subscription, closes) == [], "what was kept back is not told later"
    assert world.raised(subscription, closes := [*closes, 220.0]) == [("ema_reclaim",)]
    assert subscription.suppressed == 1


def test_of_several_bars_within_a_throttle_the_newest_is_told(world):
    subscription = world.subscribed(rules=("ema_reclaim", "ema_support_lost"), throttle_ms=1)
    assert world.raised(subscription, [*DOWN, UP, DOWN_AGAIN, 220.0]) == [("ema_reclaim",)]
    assert subscription.suppressed == 2


def test_the_same_again_is_the_subscription_there_is(world):
    first = world.subscribed()
    assert world.subscribed() is first
    others = [world.subscribed(**other) for other in (
        {"symbol": "TSLA"}, {"timeframe": "5min"}, {"throttle_ms": 1}, {"rules": ("ema_reclaim",)}, {"owner": "you"}
    )]  # fmt: skip
    assert len({one.id for one in (first, *others)}) == 6


def test_a_subscription_is_its_owners_alone(world):
    mine = world.subscribed()
    assert world.alerts.find("me", mine.id) is mine
    assert world.alerts.find("you", mine.id) is None
    assert world.alerts.of("you") == []


def test_a_lease_runs_out_unless_somebody_asks():
    world = World(lease_s=60)
    asked, forgotten = world.subscribed(), world.subscribed(owner="you")
    world.now += 59
    assert world.alerts.find("me", asked.id) is asked
    world.now += 1
    assert list(world.alerts.by_series().values()) == [[asked]]
    assert world.alerts.find("you", forgotten.id) is None


def test_there_is_a_cap_for_each_and_one_for_all():
    world = World(per_caller=2, in_all=3)
    for symbol in ("A", "B"):
        world.subscribed(symbol=symbol)
    with pytest.raises(Busy, match="There are 2 subscriptions already"):
        world.subscribed(symbol="C")
    assert world.subscribed(symbol="A").symbol == "A", "the same again is no other"
    world.subscribed(owner="you")
    with pytest.raises(Busy, match="There are 3 subscriptions already"):
        world.subscribed(owner="them")
    world.alerts.drop(world.alerts.of("me")[0])
    world.subscribed(owner="them")


def test_a_ring_keeps_the_newest():
    world = World(kept=3)
    subscription = world.subscribed()
    subscription.ring.extend({"timestamp": str(number)} for number in range(10))
    assert [alert["timestamp"] for alert in subscription.ring] == ["7", "8", "9"]


async def test_whoever_watches_waits_until_there_is_something_to_watch(world):
    waiting = asyncio.ensure_future(world.alerts.wanted())
    await asyncio.sleep(0)
    assert not waiting.done()
    subscription = world.subscribed()
    await waiting
    world.alerts.drop(subscription)
    waiting = asyncio.ensure_future(world.alerts.wanted())
    await asyncio.sleep(0)
    assert not waiting.done()
    waiting.cancel()


def test_a_subscription_cannot_be_guessed(world):
    first, second = world.subscribed(), world.subscribed(owner="you")
    assert len(first.id) == len(second.id) >= 20
    assert uri_of(first.id) == f"chart-signals://alerts/{first.id}"


def test_of_several_at_once_under_a_throttle_the_newest_is_told():
    world = World()
    mine = world.subscribed(rules=("ema_reclaim", "ema_support_lost"), throttle_ms=1000)
    assert world.raised(mine, [*DOWN, UP, DOWN_AGAIN]) == [("ema_support_lost",)]
    assert mine.suppressed == 1
