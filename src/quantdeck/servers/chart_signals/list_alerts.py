"""list_alerts: the subscriptions of who asks, and what was raised for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from quantdeck.core.call import Caller
from quantdeck.core.clock import Now
from quantdeck.dialects.chart import Manner, chart
from quantdeck.servers.chart_signals.alerts import Alert, Subscribed, found, shown
from quantdeck.servers.chart_signals.get_signals import Time
from quantdeck.sources.alerts import Alerts
from quantdeck.sources.candles import Candles


@dataclass(frozen=True, slots=True)
class AlertList:
    subscriptions: list[Subscribed]
    alerts: Annotated[list[Alert], Field(description="Newest first")]
    timestamp: Time
    source: str


@chart.tool()
async def list_alerts(
    candles: Candles,
    alerts: Alerts,
    now: Now,
    caller: Caller,
    manner: Manner,
    subscription_id: Annotated[str | None, Field(description="Only this one's")] = None,
    limit: Annotated[int, Field(ge=1, le=500, description="Alerts at most")] = 50,
) -> AlertList:
    """Your subscriptions and what they raised. Ask this to learn of alerts: clients often hide notifications"""
    mine = alerts.of(caller.id) if subscription_id is None else [found(alerts, caller.id, subscription_id)]
    told = sorted((alert for one in mine for alert in one.ring), key=lambda alert: alert["timestamp"], reverse=True)
    return AlertList(
        subscriptions=[shown(alerts, one, candles.source) for one in mine],
        alerts=told[:limit],  # type: ignore[arg-type]  # dicts of that shape
        timestamp=now.isoformat(),
        source=manner.came_from(candles.source),
    )
