"""Figures of a backtest by hand: money, time, nothing at all, and the score made of them."""

from __future__ import annotations

import dataclasses
import math
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from quantdeck.backtesting.engine import Costs, Terms, run, score
from quantdeck.backtesting.engine.spacing import bars_per_year, spacing_s, years
from quantdeck.domain.calendars import CRYPTO, FX, NYSE
from quantdeck.domain.candles import Bars
from tests.backtesting.made import bars_of, of_closes, runnable
from tests.support.bars import at, every, walk

FREE = Terms(costs=Costs(0.0, 0.0))
ABOVE_TEN = [{"type": "CROSSED_UP", "indicator": "close", "params": {"value": 10}}]
BELOW_TEN = [{"type": "CROSSED_DOWN", "indicator": "close", "params": {"value": 10}}]
CROSSING = runnable(entry_conditions=ABOVE_TEN, exit_conditions=BELOW_TEN)
CROSSING_MEAN = runnable(
    indicators=[{"id": "mean", "type": "SMA", "params": {"period": 5}}],
    entry_conditions=[{"type": "CROSSED_UP", "indicator": "close", "params": {"crosses": "mean"}}],
    exit_conditions=[{"type": "CROSSED_DOWN", "indicator": "close", "params": {"crosses": "mean"}}],
)


def test_two_trades_by_hand():
    # Bought at 20, sold at 30; bought at 40, sold at 20: 10,000 to 15,000 to 7,500.
    closes = [9.0, 11.0, 25.0, 9.0, 9.0, 11.0, 30.0, 9.0, 9.0, 9.0]
    opens = [9.0, 9.0, 20.0, 25.0, 30.0, 9.0, 40.0, 30.0, 20.0, 9.0]
    found = run(CROSSING, of_closes(closes, opens), FREE)
    told = found.metrics
    assert [row["profit"] for row in found.trades.rows()] == pytest.approx([5_000, -7_500])
    assert [row["return"] for row in found.trades.rows()] == pytest.approx([0.5, -0.5])
    assert told.total_return == pytest.approx(-0.25)
    assert (told.trades, told.win_rate) == (2, 0.5)
    assert told.profit_factor == pytest.approx(5_000 / 7_500)
    assert told.exposure == pytest.approx(4 / 10)
    assert told.average_trade_duration_s == 2 * 3600
    # The least it is worth is 15,000 / 40 * 9 at the eighth close, after a peak of 15,000.
    assert told.max_drawdown == pytest.approx(1 - 9 / 40)


def test_fees_and_slippage_are_paid_on_both_sides():
    closes, opens = [9.0, 11.0, 11.0, 9.0, 9.0], [9.0, 9.0, 20.0, 11.0, 30.0]
    found = run(CROSSING, of_closes(closes, opens), Terms(cash=1_000.0, costs=Costs(fee=0.01, slippage=0.05)))
    (trade,) = found.trades.rows()
    assert (trade["entry_price"], trade["exit_price"]) == (pytest.approx(21), pytest.approx(28.5))
    units = 1_000 / (21 * 1.01)
    assert trade["units"] == pytest.approx(units)
    assert found.equity[-1] == pytest.approx(units * 28.5 * 0.99)


@pytest.mark.parametrize("costs", [(-0.1, 0), (1, 0), (0, 1), (math.nan, 0), (0, -1e-9)])
def test_costs_that_are_none_are_refused(costs):
    with pytest.raises(ValueError, match="fractions from 0 to below 1"):
        Costs(*costs)


@pytest.mark.parametrize("terms", [{"cash": 0.0}, {"cash": math.nan}, {"cash": math.inf}, {"risk_free": -1.0}])
def test_money_that_is_none_is_refused(terms):
    with pytest.raises(ValueError, match=r"cash is above zero|risk_free is a fraction"):
        Terms(**terms)


def test_an_open_trade_is_worth_its_close_and_counts_as_none():
    found = run(CROSSING, of_closes([9.0, 11.0, 20.0, 40.0], [9.0, 9.0, 10.0, 20.0]), FREE)
    (trade,) = found.trades.rows()
    assert (trade["exit_time"], trade["exit_price"]) == (None, None)
    assert trade["profit"] == pytest.approx(30_000)
    assert (found.metrics.trades, found.metrics.win_rate, found.metrics.profit_factor) == (0, None, None)
    assert found.metrics.total_return == pytest.approx(3)


def test_what_cannot_be_computed_is_none_and_no_number():
    nothing = run(CROSSING, Bars.none()).metrics
    assert set(dataclasses.asdict(nothing).values()) == {None, 0}
    still = run(CROSSING, of_closes([9.0] * 30)).metrics
    assert (still.sharpe_ratio, still.sortino_ratio, still.win_rate, still.profit_factor) == (None, None, None, None)
    assert (still.total_return, still.max_drawdown, still.volatility, still.exposure) == (0, 0, 0, 0)
    won = run(CROSSING, of_closes([9.0, 11.0, 12.0, 9.0, 9.0], [9.0, 9.0, 10.0, 12.0, 20.0]), FREE).metrics
    assert (won.win_rate, won.profit_factor) == (1, None)
    for few in (1, 2):
        assert run(CROSSING, of_closes([9.0] * few)).metrics.sharpe_ratio is None


def test_bars_without_a_sound_price_are_as_if_they_were_not():
    whole = [(one, one, one, one, 1.0) for one in (9.0, 11.0, 12.0, 13.0, 9.0, 9.0)]
    bad = [(1.0, 1.0, 1.0, math.nan, 1.0), (1.0, 1.0, 0.0, 1.0, 1.0), (-5.0, 1.0, 1.0, 1.0, 1.0),
           (1.0, math.inf, 1.0, 1.0, 1.0), (1.0, 1.0, 1.0, 1.0, math.nan)]  # fmt: skip
    holed = [*whole[:2], *bad[:2], whole[2], *bad[2:], *whole[3:]]
    found, wanted = run(CROSSING, bars_of(holed), FREE), run(CROSSING, bars_of(whole), FREE)
    assert found.left_out == 5
    assert found.equity.tolist() == wanted.equity.tolist()


def year(bars: Bars, market: object) -> float:
    step_s = spacing_s(bars)
    assert step_s is not None
    return bars_per_year(market, step_s, bars)  # type: ignore[arg-type]


def test_a_year_has_as_many_bars_as_its_market_is_open_for():
    hours, days, minutes = (walk(every(step, at("2025-01-06T00:00"), 100)) for step in (3600, 86_400, 60))
    assert year(minutes, CRYPTO) == pytest.approx(365 * 1440)
    assert year(hours, CRYPTO) == pytest.approx(8760)
    assert year(days, CRYPTO) == pytest.approx(365)
    assert year(days, NYSE) == 250  # of 2025: 261 weekdays less ten holidays and a day of mourning
    assert year(hours, NYSE) == 247 * 7 + 3 * 4  # three of them end at one o'clock
    assert 310 < year(days, FX) < 314


def test_spacing_is_that_of_most_bars_whatever_is_missing():
    times = [time for index, time in enumerate(every(300, at("2025-01-06T00:00"), 400)) if index % 7 and index % 11]
    assert spacing_s(walk(times)) == 300
    assert spacing_s(walk(times[:1])) is None
    assert years(CRYPTO, 86_400, walk(every(86_400, at("2025-01-01T00:00"), 73))) == pytest.approx(0.2)


@pytest.mark.parametrize(
    "step_s, per_year", [(60, 525_600), (3600, 8760), (86_400, 365)], ids=["minutes", "hours", "days"]
)
def test_annual_figures_are_by_the_true_spacing(step_s, per_year):
    bars = walk(every(step_s, at("2025-03-03T00:00"), 400))
    always = runnable()
    found = run(always, bars, FREE)
    moves = np.diff(found.equity) / found.equity[:-1]
    told = found.metrics
    assert told.volatility == pytest.approx(moves.std(ddof=1) * per_year**0.5)
    assert told.sharpe_ratio == pytest.approx(moves.mean() / moves.std(ddof=1) * per_year**0.5)
    assert told.total_return is not None
    assert told.annualized_return == pytest.approx((1 + told.total_return) ** (per_year / 400) - 1)
    free = run(always, bars, Terms(costs=Costs(0, 0), risk_free=0.02)).metrics
    assert free.sharpe_ratio == pytest.approx((moves.mean() - 0.02 / per_year) / moves.std(ddof=1) * per_year**0.5)


def test_who_always_holds_is_the_market():
    found = run(runnable(), walk(every(3600, at("2025-03-03T00:00"), 3000)), FREE).metrics
    assert found.beta == pytest.approx(1, abs=0.02)
    assert found.alpha == pytest.approx(0, abs=0.1)


def test_what_money_earns_without_risk_is_taken_off_of_every_ratio():
    """By the textbook: the root mean square of what falls short of it, and what is left of a line through returns."""
    bars, free = walk(every(86_400, at("2025-03-03T00:00"), 400)), 0.05 / 365
    found = run(CROSSING_MEAN, bars, Terms(costs=Costs(0, 0), risk_free=0.05))
    moves, market = (np.diff(values) / values[:-1] for values in (found.equity, bars.close))
    short = np.sqrt(np.mean(np.minimum(moves - free, 0.0) ** 2))
    assert found.metrics.sortino_ratio == pytest.approx((moves.mean() - free) / short * 365**0.5)
    beta, alpha = np.polyfit(market - free, moves - free, 1)
    assert 0.1 < beta < 0.9
    assert found.metrics.beta == pytest.approx(beta)
    assert found.metrics.alpha == pytest.approx(alpha * 365)


def test_the_score_is_the_weighted_sum_that_searches_go_by():
    some = run(CROSSING, of_closes([9.0] * 5)).metrics
    known = dataclasses.replace(
        some, sharpe_ratio=1.0, max_drawdown=0.25, win_rate=0.5, annualized_return=0.2, profit_factor=1.25
    )
    assert score(known) == pytest.approx(0.25 * 2 / 3 + 0.2 * 0.75 + 0.2 * 0.5 + 0.2 * 0.4 + 0.15 * 0.75)
    assert score(some) == pytest.approx((0.25 + 0.2 + 0.15) / 3 + 0.2)
    endless = dataclasses.replace(known, profit_factor=None, annualized_return=None, total_return=1.0)
    assert score(endless) == pytest.approx(0.25 * 2 / 3 + 0.2 * 0.75 + 0.2 * 0.5 + 0.2 + 0.15)


def test_a_market_that_was_closed_all_the_while_has_no_annual_return():
    saturday = datetime(2025, 3, 1, tzinfo=UTC)
    bars = walk(every(3600, int(saturday.timestamp()), 24))
    found = run(runnable(), bars, Terms(market=NYSE)).metrics
    assert found.annualized_return is None
    assert found.total_return is not None
    assert not NYSE.open_seconds(saturday, saturday + timedelta(1))
