"""Which points are best, and how they are handed out."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from quantdeck.backtesting.engine import Metrics
from quantdeck.backtesting.sweeps import Outcome
from quantdeck.backtesting.sweeps.batches import LEAST_S, TRIES, USUAL_S, Batches
from quantdeck.backtesting.sweeps.ranking import OBJECTIVES, UnknownObjectiveError, objectives, ranked

NONE = Metrics(
    total_return=0.0, annualized_return=0.0, sharpe_ratio=None, sortino_ratio=None, max_drawdown=0.0, volatility=0.0,
    win_rate=None, profit_factor=None, trades=0, exposure=0.0, average_trade_duration_s=None, alpha=0.0, beta=0.0,
)  # fmt: skip


def metrics(**said) -> Metrics:
    whole = {**NONE.stored(), "trades": 9, "win_rate": 0.5, "profit_factor": 1.2, "exposure": 0.4, **said}
    return Metrics(**whole)


def order(found: Sequence[Metrics | None], by: str, least_trades: int = 1) -> list[int]:
    """Places of the points, the best first."""
    points = [(number,) for number in range(len(found))]
    outcomes = [Outcome(number, one) for number, one in enumerate(found)]
    Random(3).shuffle(outcomes)
    return [int(one.numbers[0]) for one in ranked(points, outcomes, objectives(by), least_trades)]


def test_more_is_better_or_less_is_as_the_figure_has_it():
    assert order([metrics(sharpe_ratio=x) for x in (1.0, -2.0, 3.0)], "sharpe") == [2, 0, 1]
    assert order([metrics(max_drawdown=x) for x in (0.3, 0.1, 0.2)], "drawdown") == [1, 2, 0]


@pytest.mark.parametrize("name", sorted(set(OBJECTIVES) - {"score", "trades", "profit_factor"}))
def test_what_has_no_figure_comes_after_the_worst_that_has_one(name):
    field, more = OBJECTIVES[name]
    worst = -1e9 if more else 1e9
    assert order([metrics(**{field: None}), metrics(**{field: worst})], name) == [1, 0]


def test_a_profit_factor_without_a_loss_is_the_best_and_without_a_trade_the_worst():
    found = [metrics(profit_factor=None, win_rate=1.0), metrics(profit_factor=50.0), NONE]
    assert order(found, "profit-factor", 0) == [0, 1, 2]


def test_a_strategy_that_never_trades_is_not_the_one_of_least_drawdown():
    assert order([NONE, metrics(max_drawdown=0.4)], "drawdown") == [1, 0]
    assert order([metrics(trades=2, max_drawdown=0.1), metrics(trades=5, max_drawdown=0.4)], "drawdown", 3) == [1, 0]


def test_equals_are_decided_by_the_next_objective_then_score_trades_and_their_numbers():
    found = [metrics(sharpe_ratio=1.0, total_return=x) for x in (0.1, 0.3, 0.2)]
    assert order(found, "sharpe,return") == [1, 2, 0]
    assert order([metrics(sharpe_ratio=1.0, trades=x) for x in (5, 7)], "sharpe") == [1, 0]
    assert order([metrics(sharpe_ratio=1.0)] * 4, "sharpe") == [0, 1, 2, 3]
    assert order([NONE] * 3, "sharpe") == [0, 1, 2]


def test_what_failed_is_in_no_ranking():
    assert order([None, metrics(), None], "score") == [1]


def test_an_objective_that_is_none_is_refused_with_those_there_are():
    assert objectives("win-rate, sharpe,win_rate") == ["win_rate", "sharpe", "score", "trades"]
    for said in ("profit", "", "sharpe,,return"):
        with pytest.raises(UnknownObjectiveError, match="there are sharpe, sortino"):
            objectives(said)


def everything(batches: Batches, point_s: float) -> list[int]:
    """Take all, at so many seconds a point; the sizes of the pieces."""
    sizes = []
    while batch := batches.take():
        batches.done(len(batch), len(batch) * point_s)
        sizes.append(len(batch))
    return sizes


def test_pieces_are_worth_sending_and_small_towards_the_end():
    sizes = everything(Batches([(n, (n,)) for n in range(2000)], runners=2), 0.001)
    assert sizes[0] == 1
    assert max(sizes) == USUAL_S / 0.001
    assert all(size >= LEAST_S / 0.001 for size in sizes[1:-1])
    assert sum(sizes) == 2000
    assert sizes[-2] < max(sizes)
    assert set(everything(Batches([(n, (n,)) for n in range(20)], runners=2), 3.0)) == {1}


def test_what_was_lost_is_handed_out_alone_and_given_up_in_the_end():
    batches = Batches([(n, (n,)) for n in range(100)])
    batches.done(len(batches.take()), 0.01)
    batch = batches.take()
    assert len(batch) > 2
    assert batches.lost(batch) == []
    assert [batches.take() for _ in batch] == [[point] for point in batch]
    left = len(batches)
    for tried in range(1, TRIES + 1):
        given_up = batches.lost([batch[0]])
        assert [one.number for one in given_up] == ([] if tried < TRIES else [batch[0][0]])
        assert len(batches) == left + (tried < TRIES)
        batches.take() if tried < TRIES else None
    assert given_up[0].lost
