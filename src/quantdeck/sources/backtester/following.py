"""What a strategy did that is followed forward, as a backtest: to be written into a log as one."""

from __future__ import annotations

from collections.abc import Sequence

from quantdeck.backtesting.engine import Backtest, sound
from quantdeck.backtesting.engine.accounts import account
from quantdeck.backtesting.engine.forward import Standing, Turn
from quantdeck.backtesting.engine.metrics import Year, metrics
from quantdeck.backtesting.engine.spacing import bars_per_year, years
from quantdeck.backtesting.engine.trading import Decision, Stays
from quantdeck.domain.arrays import np
from quantdeck.sources.backtester import Job

__all__ = ["as_backtest"]


def as_backtest(job: Job, before: Standing, turns: Sequence[Turn]) -> Backtest:
    """Over the bars of the job: out of the market up to where it stood, but for the trade that was open then."""
    bars = sound(job.bars)
    decided = [turn.opened_s for turn in turns if turn.decision != "hold"]
    if before.trade is not None:
        waiting = [before.seen_s] if before.leaving else []
        decided = [max(before.trade.decided_s, int(bars.time[0])), *waiting, *decided]
    places = bars.time.searchsorted(decided)
    last = len(bars) - 1
    pending = len(places) > 0 and int(places[-1]) == last
    decision: Decision | None = None
    if pending:
        decision = "leave" if len(places) % 2 == 0 else "enter"
        places = places[:-1]
    fills = (places + 1).astype(np.int64)
    stays = Stays(fills[::2], fills[1::2], decision)
    made = account(bars, stays, job.terms.cash, job.terms.costs)
    step_s, market = job.timeframe.seconds, job.terms.market
    year = Year(bars_per_year(market, step_s, bars), years(market, step_s, bars), job.terms.risk_free)
    figures = metrics(made, bars.close, job.terms.cash, year)
    return Backtest(figures, made.trades, bars.time, made.equity, decision, len(job.bars) - len(bars))
