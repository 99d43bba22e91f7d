"""subscribe_alerts: be told when something crosses at a bar that closes from now on."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from quantdeck.core.call import Caller
from quantdeck.core.clock import Now
from quantdeck.core.errors import Busy
from quantdeck.dialects.chart import (
    INVALID_PARAMS,
    INVALID_SYMBOL,
    INVALID_TIMEFRAME,
    LENGTHS,
    UNAVAILABLE,
    ChartTimeframe,
    Manner,
    Symbol,
    chart,
)
from quantdeck.domain.alerts import begun
from quantdeck.domain.crossings import RULES
from quantdeck.servers.chart_signals.alerts import Condition, Subscribed, rules_of_all, shown
from quantdeck.servers.chart_signals.closed import closed_bars, is_collected, unstored
from quantdeck.sources.alerts import Alerts
from quantdeck.sources.candles import Candles

DAY_MS = 86_400_000


@chart.tool(errors=(INVALID_SYMBOL, INVALID_TIMEFRAME), idempotent=True)
async def subscribe_alerts(
    candles: Candles,
    alerts: Alerts,
    now: Now,
    caller: Caller,
    manner: Manner,
    symbol: Symbol,
    timeframe: ChartTimeframe,
    conditions: Annotated[list[Condition], Field(min_length=1, max_length=len(RULES), description="Any of these")],
    throttle_ms: Annotated[int, Field(ge=0, le=DAY_MS, description="Least time between two alerts")] = 0,
) -> Subscribed:
    """Watch for crossings at bars that close from now on; then ask list_alerts for what was raised"""
    rules = rules_of_all(conditions)
    bars, source = await closed_bars(candles, symbol, timeframe, now)
    manner.came_from(source)
    if not len(bars) and not is_collected(manner, symbol):
        raise unstored(symbol, source, UNAVAILABLE)
    # What has happened by now is no news; where there is nothing yet, a bar that closes just now is.
    seen_s = int(bars.time[-1]) if len(bars) else int(now.timestamp()) - LENGTHS[timeframe].seconds - 1
    try:
        made = alerts.add(
            caller.id,
            symbol,
            timeframe,
            notify=manner.call.notify,
            conditions=tuple(map(dict, conditions)),
            rules=rules,
            throttle_ms=throttle_ms,
            seen_s=seen_s,
            told=set(begun(bars.close)),
        )
    except Busy as error:
        raise INVALID_PARAMS(f"{error.message}; end one with unsubscribe_alerts", **error.details) from error
    return shown(alerts, made, source)
