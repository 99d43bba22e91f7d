"""A strategy that is followed decides and earns what a backtest does, in whatever portions its bars come."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quantdeck.backtesting.engine import Costs, Terms, run
from quantdeck.backtesting.engine.forward import MONDAY_S, WEEK_S, Standing, Turn, Week, advance, window
from quantdeck.domain.spec_reader import read
from tests.support.bars import every, walk
from tests.support.specs import spec

HOUR, DAY = 3600, 86_400
BEGAN = MONDAY_S + 2000 * WEEK_S
TERMS = Terms(costs=Costs(0.001, 0.0005))
SMA = [{"id": "a", "type": "SMA", "input": "close", "params": {"period": 5}}]
UP = [{"type": "CROSSED_UP", "indicator": "close", "params": {"crosses": "a"}}]
DOWN = [{"type": "CROSSED_DOWN", "indicator": "close", "params": {"crosses": "a"}}]
STOP = [{"type": "TRAILING_STOP_LOSS", "params": {"percentage": 0.3}}]
BOTH = [*DOWN, {"type": "STOP_LOSS", "params": {"percentage": 0.1}}]
GAIN = [{"type": "STOP_GAIN", "params": {"percentage": 0.2}}]


def runnable(leave):
    found = read(**spec(name="MADE", indicators=SMA, entry_conditions=UP, exit_conditions=leave, parameters=[]))
    assert found.spec is not None
    return found.spec.instantiate({})


def followed(made, bars, ends):
    """Through portions that end there; each is given all bars up to its end."""
    standing, sharpe = Standing(BEGAN - HOUR, BEGAN), None
    turns: list[Turn] = []
    weeks: list[Week] = []
    for end in ends:
        told = advance(made, bars[:end], Standing.read(json.loads(json.dumps(standing.stored()))), TERMS, HOUR)
        turns, weeks, standing = turns + told.turns, weeks + told.weeks, told.standing
        sharpe = told.sharpe if told.sharpe is not None else sharpe
    return turns, weeks, standing, sharpe


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    leave=st.sampled_from([DOWN, STOP, BOTH, GAIN]),
    cuts=st.lists(st.integers(0, 700), max_size=8),
)
def test_it_is_the_same_as_one_backtest_however_the_bars_come(seed, leave, cuts):
    bars, made = walk(every(HOUR, BEGAN, 700), seed), runnable(leave)
    whole = run(made, bars, TERMS)
    turns, weeks, standing, sharpe = followed(made, bars, [*sorted(cuts), 700])
    trades, places = whole.trades, {int(at): place for place, at in enumerate(bars.time)}
    expected = sorted(
        [(int(place) - 1, "enter") for place in trades.begins]
        + [(int(place) - 1, "leave") for place in trades.ends[: trades.closed]]
        + ([(699, whole.decision)] if whole.decision else [])
    )
    held = [turn for turn in turns if turn.decision == "hold"]
    assert [(places[turn.opened_s], turn.decision) for turn in turns if turn not in held] == expected
    spoken = [turn.opened_s for turn in turns]
    assert spoken[0] == BEGAN
    assert max(later - one for one, later in pairwise([*spoken, BEGAN + 700 * HOUR])) <= DAY
    assert all(turn.opened_s == BEGAN or turn.opened_s - DAY in spoken for turn in held)
    assert all(turn.price == bars.close[places[turn.opened_s]] for turn in turns)
    metrics = whole.metrics
    assert standing.total.trades == metrics.trades
    assert standing.worth - 1.0 == pytest.approx(metrics.total_return, abs=1e-12)
    assert standing.drawdown == pytest.approx(metrics.max_drawdown, abs=1e-12)
    assert sum(week.tally.trades for week in weeks) + standing.week.trades == standing.total.trades
    assert standing.total.earned == pytest.approx(float(trades.returns[: trades.closed].sum()), abs=1e-12)
    # The backtest counts changes from its first close on, and this one from the cash that it begins with.
    if metrics.sharpe_ratio is not None and metrics.trades:
        assert sharpe == pytest.approx(metrics.sharpe_ratio, rel=2e-3)


def test_a_week_is_told_once_the_next_one_has_a_bar_and_sums_up_what_happened_in_it():
    bars, made = walk(every(HOUR, BEGAN + 30 * HOUR, 400)), runnable(DOWN)
    began = Standing(BEGAN + 29 * HOUR, BEGAN + 30 * HOUR)
    at_end = 168 - 30
    over = advance(made, bars[:at_end], began, TERMS, HOUR)
    assert over.weeks == []
    (week,) = advance(made, bars[: at_end + 1], over.standing, TERMS, HOUR).weeks
    assert (week.start_s, week.end_s) == (BEGAN + 30 * HOUR, BEGAN + WEEK_S)
    assert week.tally == over.standing.week
    assert week.tally.trades > 0


def test_strength_is_how_often_it_won_as_was_known_then():
    bars, made = walk(every(HOUR, BEGAN, 700), 3), runnable(DOWN)
    turns = [turn for turn in followed(made, bars, [700])[0] if turn.decision != "hold"]
    returns = run(made, bars, TERMS).trades.returns
    assert turns[0].strength == turns[1].strength == 0.5
    for number, turn in enumerate(turns):
        closed = returns[: number // 2]
        assert turn.strength == pytest.approx((int((closed > 0).sum()) + 1) / (len(closed) + 2), abs=1e-4)


def test_a_bar_that_is_corrected_later_changes_no_decision_that_was_made():
    bars, made = walk(every(HOUR, BEGAN, 700), 5), runnable(DOWN)
    first = advance(made, bars[:400], Standing(BEGAN - HOUR, BEGAN), TERMS, HOUR)
    corrected = walk(every(HOUR, BEGAN, 700), 6)
    again = advance(made, corrected, first.standing, TERMS, HOUR)
    assert all(turn.opened_s >= bars.time[400] for turn in again.turns)
    decisions = [turn.decision for turn in (*first.turns, *again.turns) if turn.decision != "hold"]
    assert decisions == ["enter", "leave"] * (len(decisions) // 2) + ["enter"] * (len(decisions) % 2)


def test_a_window_holds_for_all_of_its_instants_and_has_room_for_the_periods():
    made = runnable(DOWN)
    begin, until = window(made, HOUR, BEGAN + 5 * HOUR)
    assert window(made, HOUR, until - HOUR) == (begin, until)
    assert window(made, HOUR, until)[0] > begin
    assert until - begin >= 4000 * HOUR
    assert (begin - MONDAY_S) % WEEK_S == 0
    slow = read(**spec(indicators=[{**SMA[0], "params": {"period": 900}}], entry_conditions=UP, exit_conditions=DOWN,
                       parameters=[])).spec  # fmt: skip
    assert slow is not None
    begin, until = window(slow.instantiate({}), HOUR, BEGAN)
    assert until - begin >= 2 * 8 * 900 * HOUR


def test_nothing_new_changes_nothing():
    bars, made = walk(every(HOUR, BEGAN, 300)), runnable(DOWN)
    once = advance(made, bars, Standing(BEGAN - HOUR, BEGAN), TERMS, HOUR)
    again = advance(made, bars, once.standing, TERMS, HOUR)
    assert (again.turns, again.weeks, again.standing) == ([], [], once.standing)
    assert np.isfinite(once.standing.worth)
