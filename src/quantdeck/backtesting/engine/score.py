"""One figure for how good a backtest is, from 0 to 1: what searches for parameters go by."""

from __future__ import annotations

import math

from quantdeck.backtesting.engine.metrics import Metrics
from quantdeck.domain import performance

__all__ = ["score"]


def score(found: Metrics) -> float:
    """A quarter for Sharpe, a fifth each for small drawdown, win rate and annual return, the rest for profit factor.

    What could not be computed counts as 0, but for a profit factor or an annual return that is beyond all numbers.
    """
    won = found.win_rate is not None and found.win_rate > 0.0
    boundless = won and found.profit_factor is None
    soaring = found.annualized_return is None and (found.total_return or 0.0) > 0.0
    return (
        0.25 * _placed(found.sharpe_ratio)
        + 0.20 * (1.0 - min(max(found.max_drawdown or 0.0, 0.0), 1.0))
        + 0.20 * (found.win_rate or 0.0)
        + 0.20 * _placed(math.inf if soaring else found.annualized_return)
        + 0.15 * _placed(math.inf if boundless else found.profit_factor)
    )


def _placed(figure: float | None) -> float:
    return performance.score("sharpe", figure or 0.0) or 0.0
