"""The task of a serving process that raises alerts: it looks at each watched series, whoever stores its bars."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from quantdeck.core.clock import Now
from quantdeck.core.errors import SourceError, ToolError
from quantdeck.dialects.chart import LENGTHS
from quantdeck.domain.candles import Bars
from quantdeck.domain.crossings import BARS_USED
from quantdeck.servers.chart_signals.alerts import raised
from quantdeck.servers.chart_signals.closed import closed_bars
from quantdeck.sources.alerts import NEW_AT_ONCE, Alerts, Subscription, uri_of
from quantdeck.sources.candles import Candles

__all__ = ["watch"]

log = logging.getLogger(__name__)

AT_ONCE = 8
"""Series that are looked at at a time."""
LOOK_S = 5.0
"""How long one look may take."""
SETTLED_S = 90
"""After so long a bar is as it will be, also where its last minute had no trade. A collector writes every 60 s."""


async def watch(app: Any) -> None:
    """Look, tell and wait, for as long as there is somebody to tell."""
    alerts: Alerts = app.runtime.source(Alerts)
    turns = asyncio.Semaphore(AT_ONCE)

    async def looked(symbol: str, timeframe: str, subscriptions: list[Subscription]) -> None:
        async with turns:
            try:
                async with asyncio.timeout(LOOK_S):
                    bars, source = await _bars(app, symbol, timeframe)
            except (SourceError, ToolError, TimeoutError) as error:  # the next look is another chance
                log.debug("not_looked", extra={"fields": {"symbol": symbol, "timeframe": timeframe, "why": error}})
                return
        for subscription in subscriptions:
            await _tell(app, alerts, subscription, bars, source)

    while True:
        await alerts.wanted()
        async with asyncio.TaskGroup() as group:
            for (symbol, timeframe), subscriptions in alerts.by_series().items():
                group.create_task(looked(symbol, timeframe, subscriptions))
        await asyncio.sleep(alerts.limits.look_every_s)


async def _bars(app: Any, symbol: str, timeframe: str) -> tuple[Bars, str]:
    candles: Candles = app.runtime.source(Candles)
    now: Now = app.runtime.clock.now()
    bars, source = await closed_bars(candles, symbol, timeframe, now, BARS_USED + NEW_AT_ONCE)
    return (bars if await _is_whole(candles, symbol, timeframe, bars, now) else bars[:-1]), source


async def _is_whole(candles: Candles, symbol: str, timeframe: str, bars: Bars, now: Now) -> bool:
    """Whether the newest bar has all of its minutes: its time is over a little before the last of them is stored."""
    if not len(bars):
        return True
    ends_s = int(bars.time[-1]) + LENGTHS[timeframe].seconds
    if now.timestamp() >= ends_s + SETTLED_S:
        return True
    series = await candles.series(symbol, as_of=now)
    return series is None or series.last_s + series.base.seconds >= ends_s


async def _tell(app: Any, alerts: Alerts, to: Subscription, bars: Bars, source: str) -> None:
    now = alerts.clock()
    found = to.throttled(to.look(bars), now)
    if not found:
        return
    to.last_at = now
    told = [raised(to, bars, one, source) for one in found]
    to.ring.extend(told)
    await app.runtime.changed(uri_of(to.id))
    if to.notify is not None:
        for alert in told:
            await to.notify("signals.alert", alert)
