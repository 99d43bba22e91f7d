"""No reading raises, and nothing is taken that an engine could not run."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from quantdeck.domain.spec_reader import read
from quantdeck.domain.strategy_specs import StrategySpec, UnfitParametersError
from tests.support.specs import CONDITION_TYPES, INDICATOR_TYPES, load, spec

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
PARTS = ("name", "description", "reasoning", "indicators", "entry_conditions", "exit_conditions", "parameters")
NAMES = st.sampled_from(["a", "b", "close", "volume", "c", "Close", "p", "q"])
NUMBERS = st.sampled_from(
    [0, 1, 2, 14, 26, -3, 0.5, 2.0, "7", "${p}", "${ q }", "${r}", 1e20, "x", None, True, 10**400]
)
KEYS = ("period", "shortPeriod", "longPeriod", "multiplier", "value", "threshold", "crosses", "other", "barCount",
        "percentage", "n", "direction", "fastPeriod", "sc", "fc", "kPeriod")  # fmt: skip
PARAMS = st.dictionaries(st.sampled_from(KEYS), NUMBERS | NAMES | st.sampled_from(["up", "DOWN"]), max_size=3)
INDICATORS = st.fixed_dictionaries(
    {"id": NAMES, "type": st.sampled_from([*INDICATOR_TYPES, "sma", "NONE"])},
    optional={"input": NAMES, "params": PARAMS, "period": NUMBERS},
)
CONDITIONS = st.fixed_dictionaries(
    {"type": st.sampled_from([*CONDITION_TYPES, "over", "AND"])},
    optional={"indicator": NAMES, "params": PARAMS, "value": NUMBERS},
)
BOUNDS = st.sampled_from([0, 1, 2, 5, 14, 30, 2.5, "9", -1, 2**31, None])
PARAMETERS = st.fixed_dictionaries(
    {"name": st.sampled_from(["p", "q", "r"]), "type": st.sampled_from(["INTEGER", "DOUBLE", "int", "BOOL"])},
    optional={"min": BOUNDS, "max": BOUNDS, "defaultValue": BOUNDS, "default": BOUNDS},
)
SPECS = st.fixed_dictionaries(
    {
        "name": st.just("A_SPEC"),
        "indicators": st.lists(INDICATORS, min_size=1, max_size=2),
        "entry_conditions": st.lists(CONDITIONS, min_size=1, max_size=2),
        "exit_conditions": st.lists(CONDITIONS, min_size=1, max_size=1),
        "parameters": st.lists(PARAMETERS, max_size=2),
    }
)


def judged(said: dict[str, Any]) -> StrategySpec | None:
    """Either problems, or a spec that runs and reads as itself."""
    reading = read(**said)
    assert (reading.spec is None) is bool(reading.problems)
    assert all(problem.path and problem.message for problem in reading.problems)
    json.dumps([[problem.path, problem.message] for problem in reading.problems])
    if reading.spec is not None:
        runs(reading.spec)
    return reading.spec


def runs(made: StrategySpec) -> None:
    stored = json.loads(json.dumps(made.stored(), allow_nan=False))
    load(stored)
    made.instantiate()
    again = read(name=made.name, description=made.description, reasoning=made.reasoning, **stored)
    assert (again.spec, again.problems) == (made, ())


@settings(max_examples=150, deadline=None)
@given(st.fixed_dictionaries(dict.fromkeys(PARTS, JSON)))
def test_arbitrary_json_is_read_without_raising(said):
    judged(said)


@settings(max_examples=250, deadline=None)
@given(SPECS)
def test_whatever_is_taken_can_be_run_by_another_engine(said):
    judged(said)


@st.composite
def right(draw: st.DrawFn) -> dict[str, Any]:
    """A spec that is right by what the other engine takes."""
    parameters: list[dict[str, Any]] = []

    def value(name: str) -> Any:
        if name in {"crosses", "other"}:
            return draw(st.sampled_from(ids))
        if name == "direction":
            return draw(st.sampled_from(["UP", "DOWN"]))
        whole = name not in {"multiplier", "value", "sc", "alpha", "threshold", "percentage"}
        if not draw(st.booleans()):
            return draw(st.integers(1, 60) if whole else st.floats(0.1, 1e6))
        low, default, high = sorted(draw(st.tuples(*[st.integers(1, 60) if whole else st.floats(0.1, 1e6)] * 3)))
        kind = "INTEGER" if whole else "DOUBLE"
        one = {"name": f"p{len(parameters)}", "type": kind, "min": low, "max": high, "defaultValue": default}
        parameters.append(one)
        return f"${{{one['name']}}}"

    def params(takes: str) -> dict[str, Any]:
        names = [draw(st.sampled_from(takes.split("|")))] if "|" in takes else takes.split()
        optional = {"direction", "barCount"}
        said = [
            name.split("=")[0] for name in names if ("=" not in name and name not in optional) or draw(st.booleans())
        ]
        return {name: value(name) for name in said}

    def condition(types: list[str]) -> dict[str, Any]:
        name = draw(st.sampled_from(types))
        about = {} if "STOP" in name else {"indicator": draw(st.sampled_from(ids))}
        return {"type": name, **about, "params": params(CONDITION_TYPES[name])}

    ids, indicators = ["close"], list[dict[str, Any]]()
    for number in range(draw(st.integers(1, 4))):
        name = draw(st.sampled_from(sorted(set(INDICATOR_TYPES) - {"MACD"})))
        source = draw(st.sampled_from([*ids, "open", "high", "low", "volume"]))
        indicators.append({"id": f"i{number}", "type": name, "input": source, "params": params(INDICATOR_TYPES[name])})
        ids.append(f"i{number}")
    watching = [name for name in CONDITION_TYPES if "STOP" not in name]
    return {
        "name": "A_SPEC",
        "indicators": indicators,
        "entry_conditions": [condition(watching) for _ in range(draw(st.integers(1, 3)))],
        "exit_conditions": [condition(list(CONDITION_TYPES)) for _ in range(draw(st.integers(1, 3)))],
        "parameters": parameters,
    }


@settings(max_examples=150, deadline=None)
@given(said=right(), data=st.data())
def test_what_is_right_is_taken_and_runs_with_any_numbers_within_its_ranges(said, data):
    made = judged(said)
    assert made is not None, read(**said).problems
    assert made.stored() == {key: value for key, value in said.items() if key != "name"} | directed(said)
    numbers: dict[str, float] = {}
    for one in made.parameters:
        low, high = one.min, one.max
        between = st.integers(int(low), int(high)) if one.type == "INTEGER" else st.floats(low, high)
        numbers[one.name] = data.draw(between)
    made.instantiate(numbers)
    load(made.stored(), numbers)


def directed(said: dict[str, Any]) -> dict[str, Any]:
    """Its conditions, with the direction that goes without saying."""
    up = {"direction": "UP"}
    return {
        part: [{**one, "params": {**(up if one["type"] == "CROSSOVER" else {}), **one["params"]}} for one in said[part]]
        for part in ("entry_conditions", "exit_conditions")
    }


@st.composite
def mutated(draw: st.DrawFn) -> dict[str, Any]:
    """A right spec in which something at any depth was taken out, put in or exchanged."""
    whole: dict[str, Any] = draw(right())
    for _ in range(draw(st.integers(1, 2))):
        holder, key = draw(st.sampled_from(list(places(whole))))
        if draw(st.booleans()):
            holder[key] = draw(JSON | NUMBERS | NAMES | st.sampled_from([*INDICATOR_TYPES, *CONDITION_TYPES]))
        elif holder is whole:
            holder[key] = None
        else:
            del holder[key]
    return whole


def places(value: Any) -> Any:
    for key, held in list(value.items() if isinstance(value, dict) else enumerate(value)):
        yield value, key
        if isinstance(held, (dict, list)):
            yield from places(held)


@settings(max_examples=250, deadline=None)
@given(mutated())
def test_a_right_spec_in_which_something_was_changed_is_still_right_or_refused(said):
    judged(said)


@settings(max_examples=150, deadline=None)
@given(given=st.dictionaries(st.sampled_from(["period", "oversold", "x"]), JSON, max_size=3))
def test_arbitrary_parameters_are_run_or_refused(given):
    made = read(**spec()).spec
    assert made is not None
    with suppress(UnfitParametersError):
        runnable = made.instantiate(given)
        assert all(isinstance(n, int) and n >= 1 for one in runnable.computations for n in one.numbers.values())


def test_a_deeply_nested_or_huge_value_is_no_trap():
    deep: Any = []
    for _ in range(5000):
        deep = [deep]
    for trap in (deep, 10**5000, {"a" * 10**6: deep}, [deep] * 60, "x" * 10**6):
        for part in PARTS:
            judged(spec(**{part: trap}))
        for part in PARTS[3:]:
            judged(spec(**{part: [trap]}))
            for key in ("id", "type", "input", "params", "indicator", "name", "min", "defaultValue", "default"):
                judged(spec(**{part: [{key: trap}]}))
                judged(spec(**{part: [{**spec()[part][0], key: trap, "output_name": trap, "params": {"value": trap}}]}))
