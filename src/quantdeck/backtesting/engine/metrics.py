"""The figures of a backtest. Returns and drawdowns are fractions; None is what cannot be computed."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

from quantdeck.backtesting.engine.accounts import Account
from quantdeck.domain.arrays import Floats, np

__all__ = ["Metrics", "Year", "metrics"]

_STILL = 1e-12
"""Returns that spread less are those of a price that stands still, and rounding."""


@dataclass(frozen=True, slots=True)
class Year:
    """What makes a figure annual: bars in a year, years in the series, and what money earns in one without risk."""

    bars: float
    years: float
    risk_free: float = 0.0


@dataclass(frozen=True, slots=True)
class Metrics:
    """`volatility`, Sharpe, Sortino and `alpha` are annual. `alpha` and `beta` are against buying and holding.

    `win_rate` and `profit_factor` are of closed trades, a trade of no profit being a lost one; a factor without any
    loss is None. `exposure` is the share of bars in which there was a trade.
    """

    total_return: float | None
    annualized_return: float | None
    sharpe_ratio: float | None
    sortino_ratio: float | None
    max_drawdown: float | None
    volatility: float | None
    win_rate: float | None
    profit_factor: float | None
    trades: int
    exposure: float | None
    average_trade_duration_s: float | None
    alpha: float | None
    beta: float | None

    def stored(self) -> dict[str, float | int | None]:
        return asdict(self)


def metrics(made: Account, close: Floats, cash: float, year: Year | None) -> Metrics:
    """All of them; without a year, which takes two bars, none of the annual ones."""
    equity, closed = made.equity, slice(made.trades.closed)
    with np.errstate(all="ignore"):
        profit = made.trades.profit[closed]
        lasted = made.trades.exit_time[closed] - made.trades.entry_time[closed]
        total = _finite(equity[-1] / cash - 1.0) if len(equity) else None
        peak = np.maximum.accumulate(equity)
        sunk = 1.0 - float(np.divide(equity, peak, out=peak).min(initial=1.0))
        lost = float(-profit[profit <= 0.0].sum())
        return Metrics(
            total_return=total,
            annualized_return=None if year is None else _annual(total, year.years),
            **_risk(_changes(equity), _changes(close), year),
            max_drawdown=_finite(sunk) if len(equity) else None,
            win_rate=_finite(float((profit > 0.0).mean())) if len(profit) else None,
            profit_factor=_finite(float(profit[profit > 0.0].sum()) / lost) if lost > 0.0 else None,
            trades=made.trades.closed,
            exposure=made.held / len(equity) if len(equity) else None,
            average_trade_duration_s=float(lasted.mean()) if len(lasted) else None,
        )


def _changes(values: Floats) -> Floats:
    found = values[1:] / values[:-1]
    found -= 1.0
    return found


def _risk(changes: Floats, market: Floats, year: Year | None) -> dict[str, float | None]:
    names = ("volatility", "sharpe_ratio", "sortino_ratio", "alpha", "beta")
    if year is None or len(changes) < 2 or not year.bars > 0.0:
        return dict.fromkeys(names)
    root, free = math.sqrt(year.bars), year.risk_free / year.bars
    usual, market_usual = float(changes.mean()), float(market.mean())
    below = np.minimum(changes - free, 0.0)
    downside = math.sqrt(_products(below, below) / len(below))
    changes -= usual
    market -= market_usual
    mean, spread = usual - free, math.sqrt(_products(changes, changes) / (len(changes) - 1))
    variance = _products(market, market)
    beta = _products(market, changes) / variance if variance > 0.0 else math.nan
    alpha = (mean - beta * (market_usual - free)) * year.bars
    found = (
        spread * root,
        mean / spread * root if spread > _STILL else math.nan,
        mean / downside * root if downside > _STILL else math.nan,
        alpha,
        beta,
    )
    return dict(zip(names, map(_finite, found), strict=True))


def _products(left: Floats, right: Floats) -> float:
    return float(np.einsum("i,i", left, right))


def _annual(total: float | None, years: float) -> float | None:
    if total is None or not years > 0.0:
        return None
    try:
        return _finite((1.0 + total) ** (1.0 / years) - 1.0)
    except OverflowError:
        return None


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
