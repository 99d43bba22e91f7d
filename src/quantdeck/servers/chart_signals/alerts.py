"""What the tools of alerts share: conditions as they are asked for, and subscriptions and alerts as they are told."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, NotRequired

from pydantic import ConfigDict, Field
from typing_extensions import TypedDict

from quantdeck.dialects.chart import INVALID_PARAMS, LENGTHS
from quantdeck.domain.alerts import rules_of
from quantdeck.domain.candles import Bars
from quantdeck.domain.crossings import BARS_USED, RULES, reading
from quantdeck.servers.chart_signals.get_signals import Time
from quantdeck.sources.alerts import Alerts, Raised, Subscription, uri_of

__all__ = ["Alert", "Condition", "Subscribed", "SubscriptionId", "found", "raised", "rules_of_all", "shown"]

SubscriptionId = Annotated[str, Field(description="From subscribe_alerts")]


class Condition(TypedDict):
    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]

    type: Literal["macd_cross", "ema_cross", "rsi_overbought", "rsi_oversold", "bb_squeeze", "bb_breakout"]
    direction: NotRequired[Literal["up", "down"]]


class AlertSnapshot(TypedDict):
    price: float | None
    macd: float | None
    signal: float | None
    rsi: float | None


class Alert(TypedDict):
    subscription_id: str
    symbol: str
    timeframe: str
    triggered: list[str]
    snapshot: AlertSnapshot
    timestamp: Annotated[Time, Field(description="When the bar closed")]
    source: str


@dataclass(frozen=True, slots=True)
class Subscribed:
    subscription_id: str
    symbol: str
    timeframe: str
    conditions: list[dict[str, str]]
    throttle_ms: int
    suppressed: Annotated[int, Field(description="Alerts that the throttle kept back")]
    resource: Annotated[str, Field(description="To subscribe to or read")]
    expires_in_s: Annotated[int, Field(description="Reading alerts begins it anew")]
    source: str


def rules_of_all(conditions: list[Condition]) -> tuple[str, ...]:
    """The rules that conditions stand for, in the spec's order."""
    wanted: set[str] = set()
    for condition in conditions:
        try:
            wanted |= rules_of(condition["type"], condition.get("direction"))
        except ValueError as error:
            raise INVALID_PARAMS(f"Invalid arguments: {error}", condition=dict(condition)) from None
    return tuple(name for name in RULES if name in wanted)


def found(alerts: Alerts, owner: str, subscription_id: str) -> Subscription:
    """One of the owner's subscriptions, or the refusal."""
    there = alerts.find(owner, subscription_id)
    if there is None:
        raise INVALID_PARAMS(
            "That subscription is not found among yours: it ended, or its server was restarted. list_alerts names "
            "those that there are, subscribe_alerts makes one",
            subscription_id=subscription_id[:80],
        )
    return there


def shown(alerts: Alerts, of: Subscription, source: str) -> Subscribed:
    return Subscribed(
        subscription_id=of.id,
        symbol=of.symbol,
        timeframe=of.timeframe,
        conditions=[dict(condition) for condition in of.conditions],
        throttle_ms=of.throttle_ms,
        suppressed=of.suppressed,
        resource=uri_of(of.id),
        expires_in_s=round(of.expires_at - alerts.clock()),
        source=source,
    )


def raised(of: Subscription, bars: Bars, found: Raised, source: str) -> dict[str, Any]:
    """An alert as the spec writes it, and its source."""
    at = reading(bars.close[max(found.place + 1 - BARS_USED, 0) : found.place + 1])
    closed_s = int(bars.time[found.place]) + LENGTHS[of.timeframe].seconds
    return {
        "subscription_id": of.id,
        "symbol": of.symbol,
        "timeframe": of.timeframe,
        "triggered": list(found.rules),
        "snapshot": {"price": at.price, "macd": at.last.macd, "signal": at.last.signal, "rsi": at.last.rsi},
        "timestamp": datetime.fromtimestamp(closed_s, UTC).isoformat(),
        "source": source,
    }
