"""The resource that a subscription is: its alerts, as long as they are kept."""

from __future__ import annotations

from typing import Any

from quantdeck.core.call import Caller
from quantdeck.dialects.chart import chart
from quantdeck.servers.chart_signals.alerts import SubscriptionId, found
from quantdeck.sources.alerts import Alerts


@chart.readable()
async def alert_ring(alerts: Alerts, caller: Caller, subscription_id: SubscriptionId) -> dict[str, Any]:
    """The alerts of a subscription, newest first"""
    there = found(alerts, caller.id, subscription_id)
    return {"subscription_id": there.id, "suppressed": there.suppressed, "alerts": list(there.ring)[::-1]}
