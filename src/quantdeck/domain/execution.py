"""What an order would come to: a spread, the impact of its size, and how likely and how soon it is filled.

Nothing in here is random, and nothing gets better for being larger. The formulas, and why these: docs/execution.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import erfc, isfinite, log, sqrt
from typing import Literal

from quantdeck.domain.arrays import last, np
from quantdeck.domain.candles import Bars
from quantdeck.domain.volatility import realised

__all__ = [
    "Fill",
    "Liquidity",
    "Market",
    "NoLiquidity",
    "Order",
    "Outcome",
    "Regime",
    "fitted",
    "outcome",
    "regime",
    "widened",
]

Regime = Literal["low", "normal", "high", "extreme"]
Side = Literal["buy", "sell"]
Kind = Literal["market", "limit", "stop"]

BPS = 1e4
WIDENED: dict[Regime, float] = {"low": 0.8, "normal": 1.0, "high": 1.6, "extreme": 3.0}
"""What a spread is multiplied by."""

REGIME_RETURNS = 24
_FEWEST_WINDOWS = 24
_REGIMES: tuple[tuple[float, Regime], ...] = ((0.25, "low"), (0.75, "normal"), (0.95, "high"))

HORIZON_DAYS = 1 / 24
"""How long an order that waits for its price is given: an hour of a day's moves."""
LATENCY_MS = 150.0
WORKED_AT = 0.1
"""The share of the volume that is traded meanwhile which a market order takes."""
DAY_MS = 86_400_000.0
_RISK_OF_A_FULL_CAP = 0.05
_MOST_COST_BPS = 9_000.0

_FEWEST_FILLS = 20
_MOST_IMPACT = 10.0


@dataclass(frozen=True, slots=True)
class Market:
    """How it is just now. Volume is what is traded in a day, in units; the deviation is that of a day's return."""

    mid: float
    spread_bps: float
    daily_deviation: float
    daily_volume: float
    regime: Regime = "normal"

    @property
    def bid(self) -> float:
        return self.mid * (1 - self.spread_bps / 2 / BPS)

    @property
    def ask(self) -> float:
        return self.mid * (1 + self.spread_bps / 2 / BPS)


@dataclass(frozen=True, slots=True)
class Liquidity:
    """How much size costs, and how much there is at all as a share of a day's volume."""

    impact: float
    permanent: float
    most: float


@dataclass(frozen=True, slots=True)
class Order:
    """`price` is a limit order's limit and a stop order's trigger."""

    side: Side
    size: float
    kind: Kind = "market"
    price: float | None = None


@dataclass(frozen=True, slots=True)
class Fill:
    """What an order came to, and the middle of the market when it was given."""

    side: Side
    size: float
    price: float
    mid: float


@dataclass(frozen=True, slots=True)
class Outcome:
    price: float
    slippage_bps: float
    permanent_bps: float
    temporary_bps: float
    probability: float
    fill_ms: float
    partial_risk: float
    liquidity_score: float

    @property
    def total_bps(self) -> float:
        return self.permanent_bps + self.temporary_bps


class NoLiquidity(Exception):
    """The order is more than the market is taken to give; `most` is what it is taken to."""

    def __init__(self, participation: float, most: float) -> None:
        super().__init__(participation)
        self.participation, self.most = participation, most


def outcome(order: Order, market: Market, liquidity: Liquidity) -> Outcome:
    """What is expected of an order; raises NoLiquidity."""
    part = order.size / market.daily_volume if market.daily_volume > 0 else float("inf")
    most = liquidity.most * market.daily_volume
    if order.size > most or not isfinite(part):
        raise NoLiquidity(part, most)
    deviation_bps = market.daily_deviation * BPS
    temporary = liquidity.impact * deviation_bps * sqrt(part)
    permanent = liquidity.permanent * deviation_bps * part
    taken = market.spread_bps / 2 + permanent + temporary
    if taken > _MOST_COST_BPS:
        raise NoLiquidity(part, most)
    used = part / liquidity.most
    filled = 1 - _RISK_OF_A_FULL_CAP * used
    score = (1 - used) / (1 + market.spread_bps / 50)
    work_ms = LATENCY_MS + part / WORKED_AT * DAY_MS
    reached = _reached(order, market)
    if order.kind == "limit" and order.price is not None and not _takes(order, market):
        wait_ms = LATENCY_MS + (1 - reached / 2) * HORIZON_DAYS * DAY_MS
        return Outcome(order.price, 0.0, 0.0, 0.0, filled * reached, wait_ms, 1 - (1 - used) * reached, score)
    sign = 1 if order.side == "buy" else -1
    begin = market.mid if reached == 1 or order.price is None else order.price
    price = begin * (1 + sign * taken / BPS)
    if order.kind == "limit" and order.price is not None and sign * (price - order.price) > 0:
        price = order.price  # what is beyond the limit waits, and makes a part of it likelier
        used = max(used, 0.5)
    wait_ms = work_ms if reached == 1 else work_ms + (1 - reached / 2) * HORIZON_DAYS * DAY_MS
    slippage = taken if price == market.mid * (1 + sign * taken / BPS) else sign * (price / market.mid - 1) * BPS
    slippage = max(slippage, 0.0)
    return Outcome(price, slippage, permanent, temporary, filled * reached, wait_ms, 1 - (1 - used) * reached, score)


def _takes(order: Order, market: Market) -> bool:
    """Whether a limit order meets the other side at once."""
    assert order.price is not None
    return order.price >= market.ask if order.side == "buy" else order.price <= market.bid


def _reached(order: Order, market: Market) -> float:
    """How likely the market comes to the order's price within the horizon: by the reflection of a random walk."""
    if order.kind == "market" or order.price is None:
        return 1.0
    touch = market.ask if order.side == "buy" else market.bid
    ahead = log(order.price / touch) if order.side == "buy" else log(touch / order.price)
    away = -ahead if order.kind == "limit" else ahead
    if away <= 0:
        return 1.0
    spread = market.daily_deviation * sqrt(2 * HORIZON_DAYS)
    return erfc(away / spread) if spread > 0 else 0.0


def regime(bars: Bars) -> Regime:
    """Where the newest deviation of returns stands among those of all windows before it; normal where these are few."""
    series = realised(bars.close, REGIME_RETURNS)
    known = series[np.isfinite(series)]
    newest = last(series)
    if newest is None or len(known) < _FEWEST_WINDOWS:
        return "normal"
    rank = float(((known < newest).sum() + (known == newest).sum() / 2) / len(known))
    return next((name for most, name in _REGIMES if rank <= most), "extreme")


def widened(spread_bps: float, now: Regime) -> float:
    """The spread of a normal market as it is in this one."""
    return spread_bps * WIDENED[now]


def fitted(fills: Iterable[Fill], market: Market) -> float | None:
    """The impact by which these fills would have cost what they did, in the least squares; None for too few."""
    pairs = []
    for fill in fills:
        sign = 1 if fill.side == "buy" else -1
        cost_bps = sign * (fill.price / fill.mid - 1) * BPS - market.spread_bps / 2
        scale = market.daily_deviation * BPS * sqrt(fill.size / market.daily_volume)
        if isfinite(cost_bps) and isfinite(scale) and scale > 0:
            pairs.append((scale, min(max(cost_bps, -1000.0), 1000.0)))
    if len(pairs) < _FEWEST_FILLS:
        return None
    return min(max(sum(x * y for x, y in pairs) / sum(x * x for x, _ in pairs), 0.0), _MOST_IMPACT)
