"""Runs a strategy spec over bars: pure, synchronous, on whole columns.

A spec decides at the close of a bar, by figures of that bar and those before it, and what it decides is done at the
open of the next. It buys with all its money, only ever one trade at a time, and is never short. The bars that are given
are closed ones; whoever asks as of an instant cuts them before (`domain/candles.closed_before`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from quantdeck.backtesting.engine.accounts import Costs, Trades, account
from quantdeck.backtesting.engine.figures import computed
from quantdeck.backtesting.engine.metrics import Metrics, Year, metrics
from quantdeck.backtesting.engine.score import score
from quantdeck.backtesting.engine.spacing import bars_per_year, spacing_s, years
from quantdeck.backtesting.engine.trading import Decision, stays
from quantdeck.domain.arrays import Floats, Places, np
from quantdeck.domain.calendars import CRYPTO, Market
from quantdeck.domain.candles import Bars
from quantdeck.domain.strategy_specs import RunnableSpec

__all__ = ["Backtest", "Costs", "Decision", "Metrics", "Terms", "Trades", "run", "score", "sound"]


@dataclass(frozen=True, slots=True)
class Terms:
    """What a backtest is run on. The market's hours say what a year is; `risk_free` is what money earns in one."""

    market: Market = CRYPTO
    cash: float = 10_000.0
    costs: Costs = field(default_factory=Costs)
    risk_free: float = 0.0

    def __post_init__(self) -> None:
        if not 0.0 < self.cash < math.inf:
            raise ValueError(f"cash is above zero, not {self.cash:g}")
        if not -1.0 < self.risk_free < math.inf:
            raise ValueError(f"risk_free is a fraction above -1, not {self.risk_free:g}")


@dataclass(frozen=True, slots=True, eq=False)
class Backtest:
    """`equity` is what the account is worth at the close of each bar that opens at `time`.

    `decision` is what the newest close decided and no bar has carried out. `left_out` counts bars that are none.
    """

    metrics: Metrics
    trades: Trades
    time: Places
    equity: Floats
    decision: Decision | None
    left_out: int


def run(
    spec: RunnableSpec, bars: Bars, terms: Terms | None = None, tell: Callable[[float], None] = lambda share: None
) -> Backtest:
    """The whole backtest. Bars that are not finite or have a price that is not above zero are as if they were not.

    `tell` hears after each indicator which share of the work is done.
    """
    terms = terms or Terms()
    whole = sound(bars)
    with np.errstate(all="ignore"):
        found = stays(spec, whole, computed(spec, whole, tell), terms.costs.slippage)
    made = account(whole, found, terms.cash, terms.costs)
    return Backtest(
        metrics=metrics(made, whole.close, terms.cash, _year(whole, terms)),
        trades=made.trades,
        time=whole.time,
        equity=made.equity,
        decision=found.decision,
        left_out=len(bars) - len(whole),
    )


def sound(bars: Bars) -> Bars:
    """Those of which everything is a number and every price above zero."""
    prices = (bars.open, bars.high, bars.low, bars.close)
    whole = np.logical_and.reduce([(one > 0.0) & (one < np.inf) for one in prices])
    whole &= np.isfinite(bars.volume)
    return bars if whole.all() else Bars(*(column[whole] for column in bars.columns()))


def _year(bars: Bars, terms: Terms) -> Year | None:
    step_s = spacing_s(bars)
    if step_s is None:
        return None
    market = terms.market
    return Year(bars_per_year(market, step_s, bars), years(market, step_s, bars), terms.risk_free)
