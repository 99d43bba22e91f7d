"""Each condition and each stop on bars that can be followed by hand.

Unless a test says otherwise a bar opens where the one before it closed and nothing costs anything. A trade is told as
(bar of entry, bar of exit or None).
"""

from __future__ import annotations

from typing import Any

import pytest

from quantdeck.backtesting.engine import Costs, Terms, run
from quantdeck.backtesting.engine.figures import computed
from quantdeck.backtesting.engine.rules import holding
from quantdeck.domain.condition_types import CONDITIONS
from tests.backtesting.made import of_closes, runnable

FREE = Terms(costs=Costs(0.0, 0.0))
ONCE = {"type": "CROSSED_UP", "indicator": "close", "params": {"value": 10}}
NEVER = {"type": "UNDER_CONSTANT", "indicator": "close", "params": {"threshold": 0}}
ALWAYS = {"type": "OVER_CONSTANT", "indicator": "close", "params": {"threshold": 0}}
STEPS = [{"id": "before", "type": "PREVIOUS"}, {"id": "ten", "type": "CONSTANT", "params": {"value": 10}}]


def trades(closes: list[float], opens: list[float] | None = None, **said: Any) -> list[tuple[int, int | None]]:
    found = run(runnable(indicators=STEPS, **said), of_closes(closes, opens), FREE).trades
    ends = [*found.ends[: found.closed].tolist(), *([None] if found.open else [])]
    return list(zip(found.begins.tolist(), ends, strict=True))


CLOSES = [8.0, 9.0, 11.0, 12.0, 10.0, 9.0, 10.0, 11.0]
"""Up through ten at the third, down through it at the sixth (to stand at ten is neither), up again at the last."""

HAND = {
    ("CROSSED_UP", "value", 10): [2, 7],
    ("CROSSED_UP", "crosses", "ten"): [2, 7],
    ("CROSSOVER", "crosses", "ten"): [2, 7],
    ("CROSSES_ABOVE", "value", 10): [2, 7],
    ("CROSSED_UP_CONSTANT", "threshold", 10): [2, 7],
    ("CROSSED_DOWN", "value", 10): [5],
    ("CROSSED_DOWN", "crosses", "ten"): [5],
    ("CROSSES_BELOW", "value", 10): [5],
    ("CROSSED_DOWN_CONSTANT", "threshold", 10): [5],
    ("ABOVE", "value", 10): [2, 3, 7],
    ("ABOVE", "other", "ten"): [2, 3, 7],
    ("OVER", "value", 10): [2, 3, 7],
    ("OVER", "other", "ten"): [2, 3, 7],
    ("OVER_INDICATOR", "other", "ten"): [2, 3, 7],
    ("OVER_CONSTANT", "threshold", 10): [2, 3, 7],
    ("BELOW", "value", 10): [0, 1, 5],
    ("BELOW", "other", "ten"): [0, 1, 5],
    ("UNDER", "value", 10): [0, 1, 5],
    ("UNDER", "other", "before"): [4, 5],
    ("UNDER_INDICATOR", "other", "ten"): [0, 1, 5],
    ("UNDER_CONSTANT", "threshold", 10): [0, 1, 5],
    ("IS_RISING", "barCount", 1): [1, 2, 3, 6, 7],
    ("IS_RISING", "barCount", 2): [2, 3, 7],
    ("IS_FALLING", "barCount", 1): [4, 5],
    ("IS_FALLING", "barCount", 2): [5],
}


@pytest.mark.parametrize("kind, key, value", HAND)
def test_a_condition_holds_where_it_does_by_hand(kind, key, value):
    spec = runnable(indicators=STEPS, entry_conditions=[{"type": kind, "indicator": "close", "params": {key: value}}])
    mask = holding(spec.entry, computed(spec, of_closes(CLOSES)))
    assert mask is not None
    assert mask.nonzero()[0].tolist() == HAND[kind, key, value]


def test_a_crossover_may_be_said_to_go_down():
    down = {"type": "CROSSOVER", "indicator": "close", "params": {"crosses": "ten", "direction": "DOWN"}}
    spec = runnable(indicators=STEPS, entry_conditions=[down])
    mask = holding(spec.entry, computed(spec, of_closes(CLOSES)))
    assert mask is not None
    assert mask.nonzero()[0].tolist() == [5]


def test_the_hand_made_cases_are_of_all_conditions_but_the_stops():
    assert {kind for kind, _, _ in HAND} == {kind for kind, one in CONDITIONS.items() if not one.is_stop}


def stop(kind: str, percentage: float) -> dict[str, Any]:
    return {"type": kind, "params": {"percentage": percentage}}


def test_a_decision_at_a_close_is_done_at_the_next_open():
    # Decided at 11, bought at the next open (20), decided to leave at 9, sold at the next open (30).
    opens = [8.0, 9.0, 10.0, 20.0, 10.0, 30.0]
    found = run(
        runnable(entry_conditions=[ONCE], exit_conditions=[{**NEVER, "params": {"threshold": 10}}]),
        of_closes([9.0, 9.0, 11.0, 12.0, 9.0, 9.0], opens),
        FREE,
    )
    (trade,) = found.trades.rows()
    assert (trade["entry_price"], trade["exit_price"], trade["bars"]) == (20, 30, 2)
    assert trade["profit"] == pytest.approx(5_000)
    assert found.equity.tolist() == pytest.approx([10_000, 10_000, 10_000, 6_000, 4_500, 15_000])


def test_a_stop_loss_leaves_at_the_first_close_that_is_as_low_as_it_says():
    # Bought at 100. 7 % below is 93: 93.01 stays, 93 leaves, at the open after.
    closes = [9.0, 100.0, 100.0, 93.01, 93.0, 93.0, 93.0]
    assert trades(closes, entry_conditions=[ONCE], exit_conditions=[stop("STOP_LOSS", 7)]) == [(2, 5)]


def test_a_stop_gain_leaves_at_the_first_close_that_is_as_high_as_it_says():
    closes = [9.0, 100.0, 100.0, 106.99, 107.0, 107.0, 107.0]
    assert trades(closes, entry_conditions=[ONCE], exit_conditions=[stop("STOP_GAIN", 7)]) == [(2, 5)]


def test_a_trailing_stop_leaves_below_the_highest_close_of_the_trade():
    # The close of 500 before the trade is none of its; 120 is its highest, of which 10 % below is 108.
    closes = [9.0, 500.0, 110.0, 120.0, 108.01, 108.0, 108.0]
    opens = [9.0, 9.0, 100.0, 110.0, 120.0, 108.0, 108.0]
    assert trades(closes, opens, entry_conditions=[ONCE], exit_conditions=[stop("TRAILING_STOP_LOSS", 10)]) == [(2, 6)]


def test_a_trailing_stop_remembers_its_peak_however_long_ago_that_was():
    closes = [9.0, 100.0, 200.0, *(199.0 - 0.1 * step for step in range(1000))]
    # 25 % below 200 is 150, first reached at 199 - 0.1 * 490.
    (trade,) = trades(closes, entry_conditions=[ONCE], exit_conditions=[stop("TRAILING_STOP_LOSS", 25)])
    assert trade == (2, 3 + 490 + 1)


@pytest.mark.parametrize("held", [1, 2, 63, 64, 65, 128, 129, 319, 320, 321, 1343, 1344, 1345])
def test_no_close_is_overlooked_however_long_a_trade_lasts(held):
    """They are looked at in pieces, each longer than the one before."""
    closes = [9.0, *[100.0] * held, 90.0, 100.0, 100.0]
    assert trades(closes, entry_conditions=[ONCE], exit_conditions=[stop("STOP_LOSS", 5)]) == [(2, held + 2)]


def test_stops_look_at_what_was_paid_slippage_included():
    found = run(
        runnable(entry_conditions=[ONCE], exit_conditions=[stop("STOP_LOSS", 5)]),
        of_closes([9.0, 100.0, 104.5, 104.0, 104.0]),
        Terms(costs=Costs(fee=0.0, slippage=0.1)),
    )
    (trade,) = found.trades.rows()
    assert trade["entry_price"] == pytest.approx(110)  # of which 5 % below is 104.5
    assert (int(found.trades.begins[0]), int(found.trades.ends[0])) == (2, 3)
    assert trade["exit_price"] == pytest.approx(104.5 * 0.9)


def test_all_conditions_of_an_exit_must_hold_at_one_close():
    closes = [9.0, 100.0, 120.0, 90.0, 115.0, 115.0]
    falling = {"type": "IS_FALLING", "indicator": "close"}
    both = [falling, stop("STOP_GAIN", 5)]
    assert trades(closes, entry_conditions=[ONCE], exit_conditions=both) == [(2, None)]
    assert trades([*closes, 110.0, 110.0], entry_conditions=[ONCE], exit_conditions=both) == [(2, 7)]


def test_gain_and_loss_at_once_are_never():
    both = [stop("STOP_GAIN", 5), stop("STOP_LOSS", 5)]
    assert trades([9.0, 100.0, 50.0, 200.0, 50.0], entry_conditions=[ONCE], exit_conditions=both) == [(2, None)]


def test_who_always_enters_and_always_leaves_rests_a_bar_in_between():
    # Filled at 1, left at 2; at the close of 2 entered again, filled at 3.
    assert trades([10.0] * 6, entry_conditions=[ALWAYS], exit_conditions=[ALWAYS]) == [(1, 2), (3, 4), (5, None)]


def test_what_the_newest_close_decides_is_told_and_not_done():
    enter = runnable(entry_conditions=[ONCE])
    assert run(enter, of_closes([9.0, 11.0]), FREE).decision == "enter"
    assert len(run(enter, of_closes([9.0, 11.0]), FREE).trades) == 0
    assert run(enter, of_closes([9.0, 11.0, 11.0]), FREE).decision is None
    leave = runnable(entry_conditions=[ONCE], exit_conditions=[stop("STOP_GAIN", 10)])
    assert run(leave, of_closes([9.0, 11.0, 13.0]), FREE).decision == "leave"
    assert run(leave, of_closes([9.0, 11.0, 13.0]), FREE).trades.open


def test_a_figure_that_is_not_there_yet_lets_no_condition_hold():
    late = [{"id": "late", "type": "SMA", "params": {"period": 4}}]
    under = [{"type": "UNDER", "indicator": "late", "params": {"value": 1000}}]
    found = run(runnable(indicators=late, entry_conditions=under), of_closes([10.0] * 6), FREE)
    assert found.trades.begins.tolist() == [4]
