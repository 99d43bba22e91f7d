"""The figures of a backtest as a message, and back: as we write them, and as tradestream's services do."""

from __future__ import annotations

import math
from dataclasses import replace

from quantdeck import __version__
from quantdeck.backtesting.engine import Backtest, Decision, Metrics, Terms, score
from quantdeck.backtesting.engine.accounts import account
from quantdeck.backtesting.engine.spacing import bars_per_year, spacing_s, years
from quantdeck.backtesting.engine.trading import Stays
from quantdeck.backtesting.engine.walk_forward import Split, Verdict
from quantdeck.backtesting.protocol import backtesting_pb2, quantdeck_pb2
from quantdeck.domain.arrays import np
from quantdeck.domain.candles import Bars
from quantdeck.domain.timeframes import TIMEFRAMES

__all__ = ["as_result", "as_verdict", "as_whole", "is_ours", "of_ours", "of_theirs", "whole_of_ours"]

_SAME = {
    "total_return": "cumulative_return",
    **{name: name for name in ("annualized_return", "sharpe_ratio", "sortino_ratio", "max_drawdown", "volatility")},
    **{name: name for name in ("win_rate", "profit_factor", "alpha", "beta")},
}
"""Of our figures those that the contract has, and what they are called there."""

_MEANS = (
    "in_sample_sharpe", "out_of_sample_sharpe", "sharpe_degradation", "oos_sharpe_std_dev", "in_sample_return",
    "out_of_sample_return", "return_degradation",
)  # fmt: skip

_DECISIONS: dict[str, Decision] = {"enter": "enter", "leave": "leave"}

THEIR_YEAR = 252 * 1440
"""Bars that a year has in tradestream's service, however far apart they are."""

_NAMES = {timeframe.seconds: timeframe.name for timeframe in TIMEFRAMES.values()}


def as_whole(made: Backtest, step_s: int | None) -> backtesting_pb2.BacktestResult:
    """What a backtest came to, and when it was in the market."""
    result, trades = as_result(made.metrics, step_s), made.trades
    result.figures.stays.begins = trades.begins.astype("<i8").tobytes()
    result.figures.stays.ends = trades.ends[: trades.closed].astype("<i8").tobytes()
    if made.decision is not None:
        result.figures.stays.decision = made.decision
    return result


def as_result(found: Metrics, step_s: int | None) -> backtesting_pb2.BacktestResult:
    """What a backtest came to. `step_s` is how far apart its bars are."""
    told = {name: getattr(found, ours) for ours, name in _SAME.items()}
    if found.profit_factor is None and found.win_rate:
        told["profit_factor"] = math.inf
    lasted = found.average_trade_duration_s
    figures = {"exposure": found.exposure, "average_trade_duration_s": lasted}
    return backtesting_pb2.BacktestResult(
        timeframe=_NAMES.get(step_s or 0),
        number_of_trades=found.trades,
        average_trade_duration=None if lasted is None or not step_s else lasted / step_s,
        strategy_score=score(found),
        figures=quantdeck_pb2.Figures(engine=f"quantdeck {__version__}", **figures),
        **told,
    )


def as_verdict(
    verdict: Verdict, pairs: list[tuple[Split, Metrics, Metrics]], step_s: int | None
) -> backtesting_pb2.WalkForwardResult:
    """What a walk-forward validation came to."""
    return backtesting_pb2.WalkForwardResult(
        status=verdict.status,
        rejection_reason=verdict.reason,
        windows_count=len(pairs),
        window_results=[
            backtesting_pb2.WindowResult(
                window_index=place,
                in_sample_result=as_result(before, step_s),
                out_of_sample_result=as_result(after, step_s),
                train_start_bar=split.begin,
                train_end_bar=split.turn,
                test_start_bar=split.turn,
                test_end_bar=split.end,
            )
            for place, (split, before, after) in enumerate(pairs)
        ],
        **{name: getattr(verdict, name) for name in _MEANS},
    )


def is_ours(result: backtesting_pb2.BacktestResult) -> bool:
    """Whether a service of ours wrote it."""
    return bool(result.figures.engine)


def of_ours(result: backtesting_pb2.BacktestResult) -> Metrics:
    """What `as_result` was given."""
    figures = result.figures
    found = {ours: _told(result, name) for ours, name in _SAME.items()}
    return Metrics(
        trades=result.number_of_trades,
        exposure=_told(figures, "exposure"),
        average_trade_duration_s=_told(figures, "average_trade_duration_s"),
        **found,
    )


def whole_of_ours(result: backtesting_pb2.BacktestResult, bars: Bars, terms: Terms) -> Backtest | None:
    """What `as_whole` was given, of the bars that were sent; None where the service told figures only.

    What it says is not believed where it cannot be.
    """
    said = result.figures.stays
    if not result.figures.HasField("stays") or len(said.begins) % 8 or len(said.ends) % 8:
        return None
    begins, ends = (np.frombuffer(data, dtype="<i8").astype(np.int64) for data in (said.begins, said.ends))
    if not 0 <= len(begins) - len(ends) <= 1:
        return None
    turns = np.empty(len(begins) + len(ends), dtype=np.int64)
    turns[::2], turns[1::2] = begins, ends
    if len(turns) and not (turns[0] > 0 and turns[-1] < len(bars) and (np.diff(turns) > 0).all()):
        return None
    decision = _DECISIONS.get(said.decision)
    made = account(bars, Stays(begins, ends, decision), terms.cash, terms.costs)
    return Backtest(of_ours(result), made.trades, bars.time, made.equity, decision, 0)


def of_theirs(result: backtesting_pb2.BacktestResult, bars: Bars, terms: Terms, *, corrected: bool) -> Metrics:
    """What a service of tradestream means.

    It writes 0 where there is nothing to compute, knows no alpha and no beta, and counts a trade's length in bars. It
    takes every bar for a minute of 252 days: `corrected` makes the annual figures those of the bars as they are.
    """
    step_s = spacing_s(bars)
    trades = result.number_of_trades
    found = replace(of_ours(result), alpha=None, beta=None, exposure=None)
    if not trades:
        return replace(
            found,
            sharpe_ratio=None,
            sortino_ratio=None,
            win_rate=None,
            profit_factor=None,
            average_trade_duration_s=None,
        )
    lasted = _told(result, "average_trade_duration")
    found = replace(found, average_trade_duration_s=None if lasted is None or not step_s else lasted * step_s)
    return _corrected(found, bars, terms, step_s) if corrected and step_s else found


def _corrected(found: Metrics, bars: Bars, terms: Terms, step_s: int) -> Metrics:
    per_year = bars_per_year(terms.market, step_s, bars)
    factor = math.sqrt(per_year / THEIR_YEAR)
    lasted = years(terms.market, step_s, bars)
    annual = None
    if found.total_return is not None and found.total_return >= -1.0 and lasted > 0.0:
        annual = _power(1.0 + found.total_return, 1.0 / lasted)
    return replace(
        found,
        annualized_return=annual,
        sharpe_ratio=_times(found.sharpe_ratio, factor),
        sortino_ratio=_times(found.sortino_ratio, factor),
        volatility=_times(found.volatility, math.sqrt(per_year)),  # theirs is that of one bar
    )


def _power(base: float, exponent: float) -> float | None:
    try:
        return float(base**exponent - 1.0)
    except OverflowError:
        return None


def _times(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor


def _told(message: backtesting_pb2.BacktestResult | quantdeck_pb2.Figures, name: str) -> float | None:
    """A figure that is there and is one."""
    value = getattr(message, name) if message.HasField(name) else math.nan
    return float(value) if math.isfinite(value) else None
