"""A spec with its numbers, which is what an engine runs."""

from __future__ import annotations

import pytest

from quantdeck.domain.spec_reader import read
from quantdeck.domain.strategy_specs import Computation, Rule, StrategySpec, UnfitParametersError, structure
from tests.support.specs import spec


def made(**said) -> StrategySpec:
    reading = read(**spec(**said))
    assert reading.spec is not None, reading.problems
    return reading.spec


def test_every_parameter_has_its_number_and_every_condition_its_meaning():
    runnable = made().instantiate({"period": 30})
    assert runnable.name == "SMA_RSI"
    assert runnable.computations == (
        Computation("sma", "SMA", "close", {"period": 30}),
        Computation("rsi", "RSI", "close", {"period": 14}),
    )
    assert runnable.entry == (Rule("above", "close", "sma"), Rule("below", "rsi", 30.0))
    assert runnable.exit == (Rule("above", "rsi", 70),)


def test_what_an_implementation_stores_is_taken_as_it_is_stored():
    for period in ("30", 30.0, 30):
        runnable = made().instantiate({"period": period, "oversold": "25"})
        number = runnable.computations[0].numbers["period"]
        assert (number, type(number), runnable.entry[1].against) == (30, int, 25)


def test_a_number_outside_the_range_can_be_run_all_the_same():
    assert made().instantiate({"period": 500}).computations[0].numbers == {"period": 500}


@pytest.mark.parametrize(
    "given, said",
    [
        ({"period": 0}, "period of 'sma' must be a whole number from 1"),
        ({"period": 2.5}, "'period' must be a whole number"),
        ({"period": True}, "'period' must be a whole number"),
        ({"period": None}, "'period' must be a whole number"),
        ({"period": [3]}, "'period' must be a whole number"),
        ({"oversold": float("nan")}, "'oversold' must be a finite number"),
        ({"oversold": "low"}, "'oversold' must be a finite number"),
        ({"perod": 30}, "'perod' is no parameter of SMA_RSI"),
    ],
    ids=str,
)
def test_numbers_that_nothing_can_be_computed_with_are_refused(given, said):
    with pytest.raises(UnfitParametersError, match=said):
        made().instantiate(given)


def test_all_that_is_unfit_is_told_at_once():
    with pytest.raises(UnfitParametersError, match=r"'x' is no parameter.*'period' must.*'oversold' must"):
        made().instantiate({"x": 1, "period": "?", "oversold": None})


def test_periods_in_the_wrong_order_are_refused_where_ranges_let_them_cross():
    macd = made(
        indicators=[{"id": "macd", "type": "MACD", "params": {"shortPeriod": "${s}", "longPeriod": "${l}"}}],
        entry_conditions=[{"type": "IS_RISING", "indicator": "macd"}],
        exit_conditions=[{"type": "IS_FALLING", "indicator": "macd"}],
        parameters=[
            {"name": "s", "type": "INTEGER", "min": 5, "max": 30, "defaultValue": 12},
            {"name": "l", "type": "INTEGER", "min": 20, "max": 40, "defaultValue": 26},
        ],
    )
    assert macd.instantiate({"s": 20, "l": 20}).computations[0].numbers == {"shortPeriod": 20, "longPeriod": 20}
    with pytest.raises(UnfitParametersError, match="shortPeriod of 'macd' is 25, above longPeriod 20"):
        macd.instantiate({"s": 25, "l": 20})


def test_specs_that_differ_in_names_and_numbers_are_of_one_structure():
    def types(**said):
        stored = made(**said).stored()
        return structure(stored["indicators"], stored["entry_conditions"], stored["exit_conditions"])

    other = [{"type": "OVER_CONSTANT", "indicator": "sma", "params": {"threshold": 1}}]
    assert types(name="ANOTHER", exit_conditions=other) == types()
    assert types(indicators=spec()["indicators"][::-1]) != types()
    assert types(exit_conditions=other * 2) != types()


@pytest.mark.parametrize("stored", [None, "x", [None, 7, {}, {"type": None}], {"type": "SMA"}])
def test_a_structure_can_be_made_of_whatever_others_stored(stored):
    assert structure(stored) == structure(stored)
