"""Subscriptions to alerts and what was raised for each. They belong to this process and end with it."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from quantdeck.core.contract import Source
from quantdeck.core.errors import Busy
from quantdeck.domain.alerts import begun
from quantdeck.domain.candles import Bars
from quantdeck.domain.crossings import BARS_NEEDED, BARS_USED
from quantdeck.ids import fresh_id
from quantdeck.settings import Alerts as Limits

__all__ = ["NEW_AT_ONCE", "Alerts", "Raised", "Subscription", "uri_of"]

NEW_AT_ONCE = 100
"""New bars that are looked through at most; who was away for longer hears of the newest."""

Notify = Callable[[str, Any], Awaitable[None]]


def uri_of(subscription_id: str) -> str:
    """The resource that a subscription is."""
    return f"chart-signals://alerts/{subscription_id}"


@dataclass(frozen=True, slots=True)
class Raised:
    """That rules began to hold at a bar: its place in the bars that were looked at, and which."""

    place: int
    rules: tuple[str, ...]


@dataclass(slots=True, eq=False)
class Subscription:
    """What a caller wants to hear of, and what it was told."""

    id: str
    owner: str
    symbol: str
    timeframe: str
    conditions: tuple[Mapping[str, str], ...]
    rules: tuple[str, ...]
    throttle_ms: int
    ring: deque[dict[str, Any]]
    expires_at: float
    seen_s: int  # the open of the newest bar that was looked at
    told: set[str]  # rules that were found to begin there
    notify: Notify | None = None
    suppressed: int = 0
    last_at: float | None = None

    def look(self, bars: Bars) -> list[Raised]:
        """What is new in these: each rule once at each bar, and at the newest also what a correction makes it."""
        found = []
        first = max(int(bars.time.searchsorted(self.seen_s)), len(bars) - NEW_AT_ONCE, BARS_NEEDED - 1)
        for place in range(first, len(bars)):
            if (opened := int(bars.time[place])) > self.seen_s:
                self.seen_s, self.told = opened, set()
            rules = begun(bars.close[max(place - BARS_USED, 0) : place + 1]) - self.told
            self.told |= rules
            if wanted := tuple(name for name in self.rules if name in rules):
                found.append(Raised(place, wanted))
        return found

    def throttled(self, found: list[Raised], now: float) -> list[Raised]:
        """What of it may be told now: of several the newest, and nothing too soon after the last."""
        if not self.throttle_ms or not found:
            return found
        too_soon = self.last_at is not None and (now - self.last_at) * 1000 < self.throttle_ms
        kept = [] if too_soon else found[-1:]
        self.suppressed += len(found) - len(kept)
        return kept


class Alerts(Source):
    """All subscriptions of a process. Each has an owner and a lease, which every look at it renews."""

    source = "memory"
    group = ""  # no tables
    takes = ("alerts",)

    def __init__(self, alerts: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        self.limits = alerts
        self.clock = clock
        self._held: dict[str, Subscription] = {}
        self._wanted = asyncio.Event()

    async def wanted(self) -> None:
        """Return when there is a subscription."""
        await self._wanted.wait()

    def add(self, owner: str, symbol: str, timeframe: str, *, notify: Notify | None, **terms: Any) -> Subscription:
        """A new one, or the one of the same terms that the owner has; its notifications go to who asked last."""
        for there in self.of(owner):
            same = (there.symbol, there.timeframe, there.rules, there.throttle_ms)
            if same == (symbol, timeframe, terms["rules"], terms["throttle_ms"]):
                there.notify = notify
                return there
        most = self.limits.per_caller if len(self.of(owner)) >= self.limits.per_caller else self.limits.in_all
        if len(self.of(owner)) >= self.limits.per_caller or len(self._live()) >= self.limits.in_all:
            raise Busy(f"There are {most} subscriptions already, and no more may be", source=self.source, most=most)
        made = Subscription(
            id=f"sub_{fresh_id(24)}",
            owner=owner,
            symbol=symbol,
            timeframe=timeframe,
            ring=deque(maxlen=self.limits.kept),
            expires_at=self.clock() + self.limits.lease_s,
            notify=notify,
            **terms,
        )
        self._held[made.id] = made
        self._wanted.set()
        return made

    def of(self, owner: str) -> list[Subscription]:
        """An owner's, the oldest first; their leases begin anew."""
        mine = [held for held in self._live() if held.owner == owner]
        for held in mine:
            held.expires_at = self.clock() + self.limits.lease_s
        return mine

    def find(self, owner: str, subscription_id: str) -> Subscription | None:
        """One of the owner's; another's is none."""
        return next((held for held in self.of(owner) if held.id == subscription_id), None)

    def drop(self, subscription: Subscription) -> None:
        self._held.pop(subscription.id, None)
        self._live()

    def by_series(self) -> dict[tuple[str, str], list[Subscription]]:
        """All of them, by the symbol and the timeframe that they are of."""
        found: dict[tuple[str, str], list[Subscription]] = {}
        for held in self._live():
            found.setdefault((held.symbol, held.timeframe), []).append(held)
        return found

    def _live(self) -> list[Subscription]:
        now = self.clock()
        for held in [held for held in self._held.values() if held.expires_at <= now]:
            del self._held[held.id]
        if not self._held:
            self._wanted.clear()
        return list(self._held.values())
