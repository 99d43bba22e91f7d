"""When an alert is raised: of a whole bar, and not sooner after the last than was asked."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from tests.servers.chart_signals.conftest import NOON_S, of_closes
from tests.servers.chart_signals.test_alert_tools import EMA_UP, FALLING, PATIENCE_S, alerts_when, subscribe, watched

__all__ = ["watched"]


def _at_least(number: int, found: list[Any]) -> bool:
    return len(found) >= number


async def test_a_longer_bar_is_told_of_when_its_last_minute_is_stored(watched):
    """By the clock it is over; a collector writes its last minute a little later, and that may turn it."""
    chart = await watched()
    await chart.fill("MSFT", of_closes(FALLING, NOON_S - 46 * 300, 300))
    waiting = await subscribe(chart, EMA_UP, symbol="MSFT", timeframe="5min")
    await subscribe(chart, {"type": "ema_cross"})
    await chart.fill("MSFT", of_closes([201.0], NOON_S - 300))
    for number, close in enumerate((201.0, 180.0), 1):  # what is stored after it is told of, in one look and the next
        await chart.fill("AAPL", of_closes([close], NOON_S - (4 - number) * 60))
        await alerts_when(chart, partial(_at_least, number))
    only = {"subscription_id": waiting["subscription_id"]}
    assert (await chart("list_alerts", **only))["alerts"] == []
    await chart.fill("MSFT", of_closes([202.0], NOON_S - 60))
    (alert,) = await alerts_when(chart, lambda found: len(found) == 1, **only)
    assert alert["snapshot"]["price"] == 202.0


async def test_what_comes_sooner_than_the_throttle_is_counted_and_not_told(watched):
    chart = await watched()
    await subscribe(chart, {"type": "ema_cross"}, throttle_ms=86_400_000)
    await chart.fill("AAPL", of_closes([201.0], NOON_S - 3 * 60))
    await alerts_when(chart, lambda found: len(found) == 1)
    await chart.fill("AAPL", of_closes([180.0], NOON_S - 2 * 60))
    async with asyncio.timeout(PATIENCE_S):
        while not (found := await chart("list_alerts"))["subscriptions"][0]["suppressed"] and len(found["alerts"]) < 2:
            pass
    assert [alert["triggered"] for alert in found["alerts"]] == [["ema_reclaim"]]
