"""A backtest cut into stretches of time, as if each had been measured when it was over."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from quantdeck.backtesting.engine import Backtest
from quantdeck.domain.arrays import Floats, np

__all__ = ["Cut", "cut"]

_STILL = 1e-12


@dataclass(frozen=True, slots=True)
class Cut:
    """A stretch, in seconds since 1970; its end is not part of it. A trade belongs to where it was closed.

    `earned` is what its trades earned, as fractions added up. `sharpe` is annual, of the equity at its closes.
    """

    start_s: int
    end_s: int
    trades: int
    winning: int
    earned: float
    sharpe: float | None


def cut(made: Backtest, edges_s: Sequence[int], step_s: int, bars_per_year: float) -> list[Cut]:
    """The stretches between one edge and the next, but for those in which no bar closed."""
    closes = made.time + step_s
    closed = slice(made.trades.closed)
    exits, returns = made.trades.exit_time[closed], made.trades.returns[closed]
    found = []
    for start_s, end_s in itertools.pairwise(edges_s):
        first, last = closes.searchsorted((start_s, end_s), side="right")
        if first == last:
            continue
        here = returns[slice(*exits.searchsorted((start_s, end_s)))]
        equity = made.equity[max(int(first) - 1, 0) : int(last)]
        winning = int((here > 0.0).sum())
        found.append(Cut(start_s, end_s, len(here), winning, float(here.sum()), _sharpe(equity, bars_per_year)))
    return found


def _sharpe(equity: Floats, bars_per_year: float) -> float | None:
    changes = np.diff(equity) / equity[:-1]
    if len(changes) < 2:
        return None
    spread = float(changes.std(ddof=1))
    found = float(changes.mean()) / spread * math.sqrt(bars_per_year) if spread > _STILL else math.nan
    return found if math.isfinite(found) else None
