"""A backtest cut into stretches: nothing is lost at an edge and nothing counted twice."""

from __future__ import annotations

from itertools import pairwise
from statistics import mean, stdev

import pytest

from quantdeck.backtesting.engine import Backtest, run
from quantdeck.backtesting.engine.stretches import cut
from quantdeck.domain.candles import Bars
from tests.backtesting.made import HOUR, runnable
from tests.support.bars import at, every, walk

BEGINS = at("2025-03-03T00:00")
DAY = 24 * HOUR
CROSSING = {
    "indicators": [{"id": "sma", "type": "SMA", "params": {"period": 6}}],
    "entry_conditions": [{"type": "CROSSED_UP", "indicator": "close", "params": {"crosses": "sma"}}],
    "exit_conditions": [{"type": "CROSSED_DOWN", "indicator": "close", "params": {"crosses": "sma"}}],
}


def made(bars: Bars | None = None) -> Backtest:
    return run(runnable(**CROSSING), walk(every(HOUR, BEGINS, 20 * 24)) if bars is None else bars)


def test_every_closed_trade_is_in_the_stretch_in_which_it_was_closed():
    whole = made()
    found = cut(whole, range(BEGINS, BEGINS + 21 * DAY, DAY), HOUR, 8760)
    assert len(found) == 20
    for one in found:
        rows = [row for row in whole.trades.rows() if row["exit_time"] and one.start_s <= row["exit_time"] < one.end_s]
        assert (one.trades, one.winning) == (len(rows), sum(row["return"] > 0 for row in rows))
        assert one.earned == pytest.approx(sum(row["return"] for row in rows))
    assert sum(one.trades for one in found) == whole.metrics.trades > 20


def test_a_sharpe_ratio_is_of_the_closes_within_and_the_one_before():
    whole = made()
    day = cut(whole, [BEGINS + 5 * DAY, BEGINS + 6 * DAY], HOUR, 8760)[0]
    equity = whole.equity[5 * 24 - 1 : 6 * 24].tolist()
    moves = [later / before - 1 for before, later in pairwise(equity)]
    assert len(moves) == 24
    assert day.sharpe == pytest.approx(mean(moves) / stdev(moves) * 8760**0.5)


def test_a_stretch_without_a_bar_is_left_out_and_one_without_a_move_has_no_ratio():
    whole = made()
    assert cut(whole, [BEGINS - DAY, BEGINS, BEGINS + 2 * HOUR], HOUR, 8760)[0].sharpe is None
    assert len(cut(whole, [BEGINS - DAY, BEGINS, BEGINS + 2 * HOUR], HOUR, 8760)) == 1
    assert cut(made(Bars.none()), [BEGINS, BEGINS + DAY], HOUR, 8760) == []


def test_what_comes_later_changes_no_stretch_that_is_over():
    bars, edges = walk(every(HOUR, BEGINS, 20 * 24)), range(BEGINS, BEGINS + 11 * DAY, DAY)
    assert cut(made(bars[: 10 * 24 + 1]), edges, HOUR, 8760)[:10] == cut(made(bars), edges, HOUR, 8760)
