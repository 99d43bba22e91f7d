"""Windows, and what a strategy is told of what it does in them."""

from __future__ import annotations

import numpy as np
import pytest

from quantdeck.backtesting.engine import Costs, Terms, run
from quantdeck.backtesting.engine.walk_forward import Limits, Windows, walk_forward
from quantdeck.domain.candles import Bars, joined
from tests.backtesting.made import of_closes, runnable
from tests.support.bars import at, every, walk

FREE = Terms(costs=Costs(0.0, 0.0))
FEW = Windows(train=60, test=30, step=30, least=3)
NEVER = runnable(
    entry_conditions=[{"type": "UNDER_CONSTANT", "indicator": "close", "params": {"threshold": 0}}],
)


def rising(bars: int, seed: int = 1, drift: float = 0.01) -> list[float]:
    moves = np.random.default_rng(seed).normal(drift, 0.01, bars)
    return list(100 * np.exp(moves.cumsum()))


def test_the_defaults_are_those_of_the_contract():
    assert Windows() == Windows(6480, 2160, 2160, 4)
    assert Limits() == Limits(-0.5, 0.5, 1.5)


def test_windows_follow_one_another_as_long_as_they_are_whole():
    assert [(one.begin, one.turn, one.end) for one in FEW.splits(150)] == [(0, 60, 90), (30, 90, 120), (60, 120, 150)]
    assert len(list(FEW.splits(149))) == 2
    assert not list(FEW.splits(89))
    with pytest.raises(ValueError, match="1 or more"):
        Windows(step=0)


def test_too_few_windows_are_no_verdict():
    found = walk_forward(runnable(), of_closes(rising(149)), FREE, FEW)
    assert (found.status, found.windows, found.out_of_sample_sharpe) == ("INSUFFICIENT_DATA", (), None)
    assert "149 bars make 2 windows; 3 of them take 150 bars" in found.reason


def test_each_window_is_a_backtest_of_its_own_and_the_figures_are_their_means():
    bars = of_closes(rising(150))
    heard: list[float] = []
    found = walk_forward(runnable(), bars, FREE, FEW, Limits(most_spread=1e9), heard.append)
    assert heard == pytest.approx([1 / 3, 2 / 3, 1])
    sharpes = [run(runnable(), bars[60 + 30 * n : 90 + 30 * n], FREE).metrics.sharpe_ratio or 0 for n in range(3)]
    before = [run(runnable(), bars[30 * n : 60 + 30 * n], FREE).metrics.sharpe_ratio or 0 for n in range(3)]
    assert found.status == "APPROVED"
    assert found.reason == ""
    assert found.out_of_sample_sharpe == pytest.approx(np.mean(sharpes))
    assert found.in_sample_sharpe == pytest.approx(np.mean(before))
    assert found.oos_sharpe_std_dev == pytest.approx(np.std(sharpes))
    assert found.sharpe_degradation == pytest.approx(1 - np.mean(sharpes) / np.mean(before))


def test_a_strategy_that_falls_apart_is_told_why():
    up, down = rising(90), rising(60, drift=-0.02)
    found = walk_forward(runnable(), of_closes([*up, *(value * up[-1] / 100 for value in down)]), FREE, FEW)
    assert found.status == "REJECTED"
    assert found.sharpe_degradation is not None
    assert found.sharpe_degradation > 0.5
    for said in ("its mean Sharpe out of sample is", "below -0.5", "of its Sharpe out of sample, more than 0.5"):
        assert said in found.reason


def test_inconsistency_alone_is_a_reason():
    found = walk_forward(runnable(), of_closes(rising(150)), FREE, FEW, Limits(most_spread=0.001))
    assert found.status == "REJECTED"
    assert found.reason.startswith("its Sharpe out of sample deviates by")


def test_a_strategy_that_improves_on_a_loss_has_lost_nothing():
    down, up = rising(90, drift=-0.004), rising(60, drift=0.02)
    closes = [*down, *(value * down[-1] / 100 for value in up)]
    found = walk_forward(runnable(), of_closes(closes), FREE, Windows(60, 30, 60, 1), Limits(most_spread=1e9))
    assert found.in_sample_sharpe is not None
    assert found.in_sample_sharpe < 0
    assert (found.sharpe_degradation or 0) < 0.5


def test_who_never_trades_is_not_approved():
    found = walk_forward(NEVER, of_closes(rising(150)), FREE, FEW)
    assert (found.status, found.reason) == ("REJECTED", "it makes no trade out of sample")
    assert (found.sharpe_degradation, found.return_degradation) == (None, None)


def test_what_comes_after_a_window_does_not_change_it():
    bars = walk(every(3600, at("2025-03-03T00:00"), 150))
    more: Bars = joined([bars, walk(every(3600, at("2025-03-03T00:00") + 150 * 3600, 60), seed=9)])
    early, late = (walk_forward(runnable(), part, FREE, FEW) for part in (bars, more))
    for one, other in zip(early.windows, late.windows, strict=False):
        assert one.after.equity.tolist() == other.after.equity.tolist()
