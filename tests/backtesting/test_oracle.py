"""Whole backtests against a bar-by-bar loop, over random specs and series; and that no trade looks ahead."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from quantdeck.backtesting.engine import Costs, Terms, run
from quantdeck.backtesting.engine.figures import computed
from quantdeck.domain.arrays import listed
from tests.backtesting.made import bars_of, cases, series
from tests.backtesting.plain_backtest import Loop, figures_of
from tests.backtesting.plain_figures import plain

HOURS = 365 * 24
COSTS = st.sampled_from([Costs(0.0, 0.0), Costs(), Costs(0.002, 0.0005), Costs(0.3, 0.1)])


@given(case=cases(), costs=COSTS)
@settings(max_examples=400, deadline=None)
def test_a_backtest_is_that_of_the_plain_loop(case, costs):
    spec, rows = case
    bars = bars_of(rows)
    figures = {name: listed(one) for name, one in computed(spec, bars).items()}
    for one in spec.computations:  # each from the other's input, so that a last digit does not decide a comparison
        source = figures[one.input] if one.input in figures else getattr(bars, one.input).tolist()
        for mine, theirs in zip(figures[one.id], plain(one.type, rows, source, one.numbers), strict=True):
            assert (mine is None) is (theirs is None)
    loop = Loop(spec, rows, figures, 10_000.0, costs.fee, costs.slippage).run()
    found = run(spec, bars, Terms(costs=costs))
    assert [int(at) for at in found.trades.begins] == [trade.entry for trade in loop.trades]
    assert found.trades.ends.tolist() == [len(rows) if one.exit is None else one.exit for one in loop.trades]
    assert found.decision == loop.decision
    assert_close(found.equity.tolist(), loop.equity)
    assert_close(found.trades.entry_price.tolist(), [trade.paid for trade in loop.trades])
    assert_close(listed(found.trades.exit_price), [trade.got for trade in loop.trades])
    closed = slice(found.trades.closed)
    assert_close(found.trades.profit[closed].tolist(), [one.profit for one in loop.trades if one.profit is not None])
    wanted = figures_of(loop, 10_000.0, HOURS)
    told = asdict(found.metrics)
    assert_close([told[name] for name in wanted], list(wanted.values()))


def assert_close(found: list[Any], wanted: list[Any]) -> None:
    assert [one is None for one in found] == [one is None for one in wanted]
    for mine, theirs in zip(found, wanted, strict=True):
        if mine is not None:
            assert math.isclose(mine, theirs, rel_tol=1e-9, abs_tol=1e-9), (mine, theirs)


@given(case=cases(), data=st.data())
@settings(max_examples=250, deadline=None)
def test_what_is_still_to_come_changes_no_past_trade(case, data):
    spec, rows = case
    cut = data.draw(st.integers(0, len(rows)))
    more = data.draw(series(most=20))
    early, whole = run(spec, bars_of(rows[:cut])), run(spec, bars_of([*rows[:cut], *more, *rows[cut:]]))
    assert whole.equity[:cut].tolist() == early.equity.tolist()
    assert whole.trades.rows()[: early.trades.closed] == early.trades.rows()[: early.trades.closed]
    assert whole.trades.begins[: len(early.trades)].tolist() == early.trades.begins.tolist()
    if early.decision == "enter":
        assert cut == len(whole.equity) or cut in whole.trades.begins
    elif early.decision == "leave":
        assert cut == len(whole.equity) or cut in whole.trades.ends


@given(case=cases(), bad=st.lists(st.tuples(st.integers(0, 90), st.integers(0, 4)), max_size=6))
@settings(max_examples=100, deadline=None)
def test_nothing_that_is_no_number_ever_leaves(case, bad):
    spec, rows = case
    rows = [list(row) for row in rows]
    for place, column in bad:
        if place < len(rows):
            rows[place][column] = [math.nan, math.inf, -5.0, 0.0, 1e300][place % 5]
    found = run(spec, bars_of(rows))
    told = [asdict(found.metrics), found.trades.rows(), listed(found.equity), found.left_out]
    json.dumps(told, allow_nan=False)
