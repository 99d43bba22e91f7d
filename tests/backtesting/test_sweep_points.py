"""Which points a sweep has."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quantdeck.backtesting.sweeps.points import MOST_POINTS, GridProblem, drawn, grid, read_values
from quantdeck.domain.spec_reader import read
from quantdeck.domain.strategy_specs import StrategySpec
from tests.support.specs import spec


def made(**said) -> StrategySpec:
    reading = read(**spec(**said))
    assert reading.spec is not None, reading.problems
    return reading.spec


def values(*said: str):
    return read_values(made(), said)


@pytest.mark.parametrize(
    "said, found",
    [
        ("period=12", [12]),
        ("period=10,40,20", [10, 40, 20]),
        ("period=10:14", [10, 11, 12, 13, 14]),
        ("period=10:50:20", [10, 30, 50]),
        ("period=10:49:20", [10, 30]),
        ("period=10,10.0,10:12", [10, 11, 12]),
        ("period = 1e1 , 20 ", [10, 20]),
        ("oversold=0.1:0.3:0.1", [0.1, 0.2, 0.3]),
        ("oversold=20:21:0.25,5", [20.0, 20.25, 20.5, 20.75, 21.0, 5.0]),
        ("oversold=-1.5", [-1.5]),
    ],
)
def test_numbers_are_read_as_they_are_written(said, found):
    ((name, numbers),) = values(said).items()
    assert (name, numbers) == (said.partition("=")[0].strip(), found)
    assert {type(number) for number in numbers} == {int if name == "period" else float}


@pytest.mark.parametrize(
    "said, problem",
    [
        (["period"], "not NAME=VALUES"),
        (["period="], "not NAME=VALUES"),
        (["=3"], "no parameter ''"),
        (["length=3"], "no parameter 'length'; there are period .INTEGER, 10 to 50., oversold"),
        (["period=3", "period=4"], "said twice"),
        (["period=3,,4"], "'' of 'period' is no number"),
        (["period=ten"], "'ten' of 'period' is no number"),
        (["period=nan"], "no number"),
        (["period=inf"], "no number"),
        (["period=1e400"], "no number"),
        (["period=" + "9" * 50], "no number"),
        (["period=٣"], "no number"),
        (["period=2.5"], "2.5 is no whole number"),
        (["period=1:2:0.5"], "1.5 is no whole number"),
        (["oversold=1:2"], "needs its step"),
        (["period=1:2:3:4"], "no FROM:TO:STEP"),
        (["period=1:2:0"], "goes nowhere"),
        (["period=1:2:-1"], "goes nowhere"),
        (["period=3:1"], "goes nowhere"),
        (["period=1:999999999999"], "999,999,999,999 points; at most 100,000"),
        (["oversold=0:1:1e-30"], "points; at most"),
        (["period=1:60000,60001:120000"], "at most"),
        (["period=1:1000", "oversold=1:1000:1"], "the grid has 1,000,000 points"),
        ([], "wants at least one parameter's values; there are period"),
    ],
    ids=str,
)
def test_what_cannot_be_understood_is_said_in_a_sentence(said, problem):
    with pytest.raises(GridProblem, match=problem):
        grid(made(), values(*said))


def test_a_grid_is_every_combination_and_defaults_for_the_rest():
    assert grid(made(), values("oversold=20,25", "period=10,11")) == [(10, 20.0), (10, 25.0), (11, 20.0), (11, 25.0)]
    assert grid(made(), values("period=10,11")) == [(10, 30.0), (11, 30.0)]


def test_a_spec_without_parameters_has_nothing_to_sweep():
    bare = made(
        parameters=[],
        indicators=[{"id": "sma", "type": "SMA", "params": {"period": 5}}],
        entry_conditions=[{"type": "OVER", "indicator": "close", "params": {"other": "sma"}}],
        exit_conditions=[{"type": "UNDER", "indicator": "close", "params": {"other": "sma"}}],
    )
    with pytest.raises(GridProblem, match="it has none, so there is nothing to sweep"):
        grid(bare, read_values(bare, []))
    with pytest.raises(GridProblem, match="nothing to draw"):
        drawn(bare, {}, 5, 7)


@settings(max_examples=40)
@given(st.integers(1, 500), st.integers(0, 2**63 - 1))
def test_what_is_drawn_is_different_in_range_and_the_same_for_its_seed(many, seed):
    points = drawn(made(), {}, many, seed)
    assert len(set(points)) == len(points) == many
    assert all(10 <= period <= 50 and 15.0 <= oversold <= 30.0 for period, oversold in points)
    assert {(type(period), type(oversold)) for period, oversold in points} == {(int, float)}
    assert points == drawn(made(), {}, many, seed)
    assert many < 3 or points != drawn(made(), {}, many, seed + 1)


def test_of_a_named_parameter_only_its_numbers_are_drawn():
    points = drawn(made(), values("period=10,20", "oversold=20,25,30"), 4, 7)
    assert len(points) == 4
    assert set(points) < set(grid(made(), values("period=10,20", "oversold=20,25,30")))


def test_where_there_are_no_more_points_than_are_to_be_drawn_they_are_all():
    assert drawn(made(), values("period=10,20", "oversold=30"), 50, 7) == [(10, 30.0), (20, 30.0)]


def test_a_space_beyond_all_machine_numbers_is_drawn_from():
    many = [{"name": f"p{n}", "type": "DOUBLE", "min": 0.0, "max": 1.0, "defaultValue": 0.5} for n in range(40)]
    wide = made(parameters=[*spec()["parameters"], *many])
    assert len(set(drawn(wide, {}, 100, 7))) == 100


@pytest.mark.parametrize("many", [0, MOST_POINTS + 1])
def test_none_and_too_many_are_refused(many):
    with pytest.raises(GridProblem, match="random"):
        drawn(made(), {}, many, 7)
