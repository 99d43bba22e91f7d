"""unsubscribe_alerts: be told no more."""

from __future__ import annotations

from dataclasses import dataclass

from quantdeck.core.call import Caller
from quantdeck.dialects.chart import chart
from quantdeck.servers.chart_signals.alerts import SubscriptionId, found
from quantdeck.sources.alerts import Alerts


@dataclass(frozen=True, slots=True)
class Unsubscribed:
    subscription_id: str
    unsubscribed: bool


@chart.tool(idempotent=True)
async def unsubscribe_alerts(alerts: Alerts, caller: Caller, subscription_id: SubscriptionId) -> Unsubscribed:
    """End a subscription to alerts"""
    there = found(alerts, caller.id, subscription_id)
    alerts.drop(there)
    return Unsubscribed(there.id, unsubscribed=True)
