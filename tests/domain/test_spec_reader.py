"""What is taken for a strategy spec, and what is said of what is not."""

from __future__ import annotations

import json

import pytest

from quantdeck.domain.condition_types import CONDITIONS
from quantdeck.domain.indicator_types import INDICATORS
from quantdeck.domain.spec_reader import MOST, MOST_TEXT, read
from quantdeck.domain.strategy_specs import StrategySpec
from tests.support.specs import CONDITION_TYPES, INDICATOR_TYPES, load, spec


def parts(**said):
    return {
        "name": None,
        "indicators": None,
        "entry_conditions": None,
        "exit_conditions": None,
        "parameters": None,
        **said,
    }


def accepted(**said) -> StrategySpec:
    reading = read(**spec(**said))
    assert reading.problems == ()
    assert reading.spec is not None
    return reading.spec


def refused(**said) -> list[tuple[str, str]]:
    """Where, and of which kind."""
    reading = read(**spec(**said))
    assert reading.spec is None
    return [(problem.path, problem.kind) for problem in reading.problems]


def said_of(path: str, **said) -> str:
    (message,) = [problem.message for problem in read(**spec(**said)).problems if problem.path == path]
    return message


def indicator(**said):
    return {"indicators": [*spec()["indicators"], {"id": "x", **said}]}


def leaving(*conditions):
    return {"exit_conditions": list(conditions)}


def parameter(**said):
    return {
        "parameters": [
            *spec()["parameters"],
            {"name": "p", "type": "DOUBLE", "min": 1, "max": 9, "defaultValue": 2, **said},
        ]
    }


# what is taken


def test_there_are_the_fifty_six_indicator_types_and_the_twenty_usable_conditions():
    assert (INDICATORS.keys(), len(INDICATORS)) == (INDICATOR_TYPES.keys(), 56)
    assert (CONDITIONS.keys(), len(CONDITIONS)) == (CONDITION_TYPES.keys(), 20)


@pytest.mark.parametrize("name", INDICATOR_TYPES)
def test_each_indicator_type_takes_its_params_and_has_their_defaults(name):
    takes = INDICATOR_TYPES[name].split()
    required = {param: 7 for param in takes if "=" not in param}
    made = accepted(**indicator(type=name.lower(), params=required))
    assert (made.indicators[-1].type, made.indicators[-1].params) == (name, required)
    numbers = made.instantiate().computations[-1].numbers
    assert numbers == required | {key: float(value) for key, value in (p.split("=") for p in takes if "=" in p)}
    for missing in required:
        assert refused(**indicator(type=name)) == [(f"indicators[2].params.{missing}", "indicators")]
    assert refused(**indicator(type=name, params={**required, "speed": 1})) == [
        ("indicators[2].params.speed", "indicators")
    ]


OPERANDS = {"crosses": "sma", "other": "sma", "value": 1.5, "threshold": -1.5, "barCount": 3, "percentage": 2.5}


@pytest.mark.parametrize("name", CONDITION_TYPES)
def test_each_condition_type_takes_its_params(name):
    about = {} if CONDITIONS[name].is_stop else {"indicator": "rsi"}
    for choice in CONDITION_TYPES[name].split("|"):
        params = {key: OPERANDS[key] for key in choice.split() if key != "direction"}
        made = accepted(**leaving({"type": name.lower(), **about, "params": params}))
        (kept,) = made.stored()["exit_conditions"]
        assert (kept["type"], kept["params"] | params) == (name, kept["params"])
        (rule,) = made.instantiate().exit
        assert (rule.indicator, rule.against) == (about.get("indicator"), next(iter(params.values())))


@pytest.mark.parametrize(
    "name, operation",
    [
        ("CROSSED_UP", "crossed_up"),
        ("CROSSED_DOWN", "crossed_down"),
        ("ABOVE", "above"),
        ("BELOW", "below"),
        ("OVER", "above"),
        ("UNDER", "below"),
        ("OVER_INDICATOR", "above"),
        ("UNDER_INDICATOR", "below"),
    ],
)
def test_types_of_one_meaning_come_to_one_operation(name, operation):
    params = {"crosses" if "CROSSED" in name else "other": "sma"}
    (rule,) = accepted(**leaving({"type": name, "indicator": "close", "params": params})).instantiate().exit
    assert (rule.operation, rule.indicator, rule.against) == (operation, "close", "sma")


@pytest.mark.parametrize("said, operation", [({}, "crossed_up"), ({"direction": "down"}, "crossed_down")])
def test_a_crossover_goes_up_unless_told_otherwise(said, operation):
    one = {"type": "CROSSOVER", "indicator": "close", "params": {"crosses": "sma", **said}}
    made = accepted(**leaving(one))
    assert made.instantiate().exit[0].operation == operation
    assert made.stored()["exit_conditions"][0]["params"]["direction"] == operation.removeprefix("crossed_").upper()


def test_bars_of_a_rise_are_one_unless_told():
    one = {"type": "IS_RISING", "indicator": "sma"}
    assert accepted(**leaving(one)).instantiate().exit[0].against == 1


def test_a_name_is_upper_cased():
    assert accepted(name=" ema_pullback ").name == "EMA_PULLBACK"


def test_the_words_of_other_tools_are_understood_and_ours_are_stored():
    made = accepted(
        indicators=[{"output_name": "sma", "type": "sma", "period": "${ period }"}],
        entry_conditions=[{"operator": "crossed_up", "indicator": "Close", "params": {"other": "sma"}}],
        exit_conditions=[{"type": "under_constant", "indicator": "sma", "value": "30"}],
        parameters=[
            {"name": "period", "type": "int", "min": "10", "max": 50.0, "default": 20},
            {"name": "more", "type": "decimal", "min": 1, "max": 2, "default_value": 1},
        ],
    )
    assert made.stored() == {
        "indicators": [{"id": "sma", "type": "SMA", "input": "close", "params": {"period": "${period}"}}],
        "entry_conditions": [{"type": "CROSSED_UP", "indicator": "close", "params": {"crosses": "sma"}}],
        "exit_conditions": [{"type": "UNDER_CONSTANT", "indicator": "sma", "params": {"threshold": 30}}],
        "parameters": [
            {"name": "period", "type": "INTEGER", "min": 10, "max": 50, "defaultValue": 20},
            {"name": "more", "type": "DOUBLE", "min": 1, "max": 2, "defaultValue": 1},
        ],
    }
    assert '"min": 10, "max": 50, ' in json.dumps(made.stored()), "an integer is written as one"
    load(made.stored())


def test_two_words_that_say_the_same_are_no_contradiction():
    assert accepted(**indicator(output_name="x", type="OBV")).indicators[-1].id == "x"
    assert refused(**indicator(output_name="y", type="OBV")) == [("indicators[2].id", "indicators")]


def test_null_is_absent():
    assert (
        accepted(**indicator(type="ROC", input=None, params={"period": 3, "speed": None})).indicators[-1].input
        == "close"
    )


@pytest.mark.parametrize(
    "said, canonical", [("HIGH", "high"), ("volume", "volume"), ("sma", "sma"), ("Close", "close")]
)
def test_an_input_is_a_price_in_any_case_or_an_earlier_id(said, canonical):
    assert accepted(**indicator(type="EMA", input=said, params={"period": 3})).indicators[-1].input == canonical


def test_what_is_stored_reads_as_the_same_again():
    made = accepted(description="what", reasoning="why")
    again = read(name=made.name, description="what", reasoning="why", **json.loads(json.dumps(made.stored())))
    assert (again.spec, again.problems) == (made, ())


# what is not


@pytest.mark.parametrize(
    "name", [None, "", "AB", "1ABC", "_ABC", "A B", "ÄBC", "A" * 51, "ABC\n\n!", 7, [], "\u017fMA", "A-B"]
)
def test_a_name_that_is_none_is_refused(name):
    assert refused(name=name) == [("name", "name")]


@pytest.mark.parametrize("part", ["indicators", "entry_conditions", "exit_conditions", "parameters"])
@pytest.mark.parametrize("given", [None, {}, "[]", 7, True])
def test_a_part_that_is_no_list_is_a_matter_of_shape_and_of_nothing_else(part, given):
    assert refused(**{part: given}) == [(part, "shape")]


@pytest.mark.parametrize("part", ["indicators", "entry_conditions", "exit_conditions"])
def test_a_part_may_not_be_empty(part):
    assert (part, "shape") in refused(**{part: []})


def test_a_spec_without_parameters_can_be_run_and_is_warned_of():
    plain = [{"type": "IS_RISING", "indicator": "close"}]
    reading = read(
        **spec(indicators=[{"id": "x", "type": "OBV"}], entry_conditions=plain, exit_conditions=plain, parameters=[])
    )
    assert reading.spec is not None
    assert any("nothing can be optimised" in warning for warning in reading.warnings)


@pytest.mark.parametrize("part", MOST)
def test_a_part_has_an_end_and_what_lies_behind_it_is_not_missed(part):
    key = {"indicators": "id", "parameters": "name"}.get(part, "indicator")
    more = [{**spec()[part][0], key: f"x{n}" if key != "indicator" else "close"} for n in range(MOST[part])]
    assert refused(**{part: more + spec()[part]}) == [(part, "shape")]


@pytest.mark.parametrize("path", ["description", "reasoning"])
@pytest.mark.parametrize(
    "given", [7, [], "x" * (MOST_TEXT + 1), "a\0b", "\ud800"], ids=["number", "list", "long", "nul", "half"]
)
def test_a_text_that_cannot_be_stored_is_a_matter_of_shape(path, given):
    assert refused(**{path: given}) == [(path, "shape")]


@pytest.mark.parametrize(
    "said, path",
    [
        ({"type": "HEIKEN_ASHI_CLOSE"}, "type"),
        ({}, "type"),
        ({"type": 7}, "type"),
        ({"type": ["SMA"]}, "type"),
        ({"type": "SMA", "params": {"period": 0}}, "params.period"),
        ({"type": "SMA", "params": {"period": 2.5}}, "params.period"),
        ({"type": "SMA", "params": {"period": 100_001}}, "params.period"),
        ({"type": "SMA", "params": {"period": True}}, "params.period"),
        ({"type": "SMA", "params": {"period": "long"}}, "params.period"),
        ({"type": "SMA", "params": []}, "params"),
        ({"type": "BOLLINGER_UPPER", "params": {"period": 9, "multiplier": 0}}, "params.multiplier"),
        ({"type": "OBV", "input": "x"}, "input"),
        ({"type": "OBV", "input": "later"}, "input"),
        ({"type": "OBV", "input": 7}, "input"),
        ({"type": "OBV", "id": "rsi"}, "id"),
        ({"type": "OBV", "id": "a b"}, "id"),
        ({"type": "OBV", "id": None}, "id"),
        ({"type": "OBV", "id": 7}, "id"),
        ({"type": "OBV", "id": "Volume"}, "id"),
        ({"type": "OBV", "colour": "red"}, "colour"),
        ({"type": "MACD", "params": {"shortPeriod": 30}}, "params.shortPeriod"),
        ({"type": "MACD", "params": {"shortPeriod": "${period}", "longPeriod": 10}}, "params.shortPeriod"),
    ],
    ids=str,
)
def test_a_wrong_indicator_is_told_where_it_is_wrong(said, path):
    assert refused(**indicator(**said)) == [(f"indicators[2].{path}", "indicators")]


def test_an_indicator_may_not_read_itself_or_a_later_one():
    chain = [
        {"id": "a", "type": "EMA", "input": "b", "params": {"period": 3}},
        {"id": "b", "type": "EMA", "input": "b", "params": {"period": 3}},
    ]
    assert refused(indicators=[*spec()["indicators"], *chain]) == [
        ("indicators[2].input", "indicators"),
        ("indicators[3].input", "indicators"),
    ]


@pytest.mark.parametrize("entry", [7, "SMA", None, ["SMA"]])
def test_an_entry_that_is_no_object_is_refused(entry):
    assert refused(indicators=[*spec()["indicators"], entry]) == [("indicators[2]", "shape")]
    assert refused(exit_conditions=[entry]) == [("exit_conditions[0]", "conditions")]
    assert refused(parameters=[*spec()["parameters"], entry]) == [("parameters[2]", "parameters")]


@pytest.mark.parametrize(
    "said, path",
    [
        ({"type": "AND"}, "type"),
        ({"type": "or", "params": {"conditions": []}}, "type"),
        ({"type": "NEAR", "indicator": "rsi"}, "type"),
        ({"indicator": "rsi"}, "type"),
        ({"type": "OVER", "indicator": "rsi"}, "params"),
        ({"type": "OVER", "indicator": "rsi", "params": {"other": "sma", "value": 3}}, "params"),
        ({"type": "OVER", "indicator": "rsi", "params": 7}, "params"),
        ({"type": "OVER", "indicator": "rsi", "params": {"other": "ema"}}, "params.other"),
        ({"type": "OVER", "indicator": "rsi", "params": {"other": 30}}, "params.other"),
        ({"type": "OVER", "indicator": "rsi", "params": {"value": "sma"}}, "params.value"),
        ({"type": "OVER", "indicator": "rsi", "params": {"value": []}}, "params.value"),
        ({"type": "OVER", "indicator": "volume", "params": {"value": 3}}, "indicator"),
        ({"type": "OVER", "indicator": "ema", "params": {"value": 3}}, "indicator"),
        ({"type": "OVER", "params": {"value": 3}}, "indicator"),
        ({"type": "OVER_CONSTANT", "indicator": "rsi"}, "params.threshold"),
        ({"type": "OVER_CONSTANT", "indicator": "rsi", "params": {"threshold": 3, "other": "sma"}}, "params.other"),
        ({"type": "CROSSOVER", "indicator": "rsi", "params": {"crosses": "sma", "direction": 1}}, "params.direction"),
        ({"type": "IS_RISING", "indicator": "rsi", "params": {"barCount": 0}}, "params.barCount"),
        ({"type": "STOP_LOSS", "params": {"percentage": 0}}, "params.percentage"),
        ({"type": "STOP_LOSS"}, "params.percentage"),
        ({"type": "STOP_LOSS", "indicator": "rsi", "params": {"percentage": 2}}, "indicator"),
        ({"type": "OVER", "indicator": "rsi", "params": {"value": 3}, "note": "x"}, "note"),
    ],
    ids=str,
)
def test_a_wrong_condition_is_told_where_it_is_wrong(said, path):
    assert refused(**leaving(said)) == [(f"exit_conditions[0].{path}", "conditions")]


@pytest.mark.parametrize("name", ["STOP_GAIN", "STOP_LOSS", "TRAILING_STOP_LOSS"])
def test_a_stop_has_nothing_to_watch_before_the_entry(name):
    stop = {"type": name, "params": {"percentage": 2}}
    assert refused(entry_conditions=[stop]) == [("entry_conditions[0].type", "conditions")]


@pytest.mark.parametrize(
    "said, path",
    [
        ({"name": "period"}, "name"),
        ({"name": "a b"}, "name"),
        ({"name": None}, "name"),
        ({"type": "BOOLEAN"}, "type"),
        ({"type": None}, "type"),
        ({"min": 10}, "min"),
        ({"defaultValue": 10}, "defaultValue"),
        ({"defaultValue": None}, "defaultValue"),
        ({"max": None}, "max"),
        ({"max": "much"}, "max"),
        ({"max": 1e400}, "max"),
        ({"max": 10**30}, "max"),
        ({"max": False}, "max"),
        ({"type": "INTEGER", "min": 1.5}, "min"),
        ({"type": "INTEGER", "max": 2**31}, "max"),
        ({"step": 1}, "step"),
    ],
    ids=str,
)
def test_a_wrong_parameter_is_told_where_it_is_wrong(said, path):
    assert refused(**parameter(**said)) == [(f"parameters[2].{path}", "parameters")]


@pytest.mark.parametrize(
    "value", ["${missing}", "$period", "${period} + 1", "${}", "{period}$", "${${period}}", "${oversold}"]
)
def test_a_placeholder_names_one_parameter_that_fits(value):
    where = ("indicators[2].params.period", "parameters")
    assert refused(**indicator(type="SMA", params={"period": value})) == [where]


def test_every_value_of_a_parameter_must_fit_where_it_stands():
    said = parameter(name="n", type="INTEGER", min=0, max=9, defaultValue=5)
    assert "'n' may be 0" in said_of(
        "indicators[2].params.period", **said, **indicator(type="SMA", params={"period": "${n}"})
    )


def test_all_problems_are_told_at_once():
    wrong = refused(
        name="x",
        description=7,
        indicators=[{"id": "a", "type": "SMAA", "params": {"period": "${none}"}}, {"id": "a", "type": "RSI"}],
        entry_conditions=[{"type": "OR"}, {"type": "OVER", "indicator": "b", "params": {"value": "much"}}],
        exit_conditions=[],
        parameters=[{"name": "p", "type": "INTEGER", "min": 5, "max": 1, "defaultValue": 3}],
    )
    assert sorted(wrong) == sorted(
        [
            ("name", "name"),
            ("description", "shape"),
            ("indicators[0].type", "indicators"),
            ("indicators[0].params.period", "parameters"),
            ("indicators[1].id", "indicators"),
            ("indicators[1].params.period", "indicators"),
            ("entry_conditions[0].type", "conditions"),
            ("entry_conditions[1].indicator", "conditions"),
            ("entry_conditions[1].params.value", "conditions"),
            ("exit_conditions", "shape"),
            ("parameters[0].min", "parameters"),
        ]
    )


def test_an_answer_has_an_end_and_says_so():
    one = {"type": "OVER", "indicator": 7, **dict.fromkeys(map(str, range(40)), 1)}
    reading = read(**spec(entry_conditions=[one] * 50, exit_conditions=[one] * 50))
    assert len(reading.problems) == 1000
    assert reading.warnings == ("200 further problems are not listed",)


# what is said of it


def test_a_misspelt_type_is_told_what_it_may_have_been():
    assert "did you mean" in said_of("indicators[2].type", **indicator(type="BOLLINGER"))
    assert "BOLLINGER_UPPER" in said_of("indicators[2].type", **indicator(type="BOLLINGER"))
    everything = said_of("indicators[2].type", **indicator(type="QQQ"))
    assert all(name in everything for name in INDICATORS)


@pytest.mark.parametrize(
    "condition, path, hint",
    [
        ({"type": "OR"}, "type", "submit a spec for each alternative"),
        ({"type": "AND"}, "type", "write them one beside the other"),
        ({"type": "OVER", "indicator": "volume", "params": {"value": 1}}, "indicator", "{id: volume, type: VOLUME}"),
        ({"type": "OVER", "indicator": "rsi", "params": {"other": 30}}, "params.other", "For a number say value"),
        ({"type": "OVER", "indicator": "rsi", "params": {"value": "sma"}}, "params.value", "say other"),
    ],
)
def test_a_sentence_says_how_to_mend_it(condition, path, hint):
    assert hint in said_of(f"exit_conditions[0].{path}", **leaving(condition))


@pytest.mark.parametrize(
    "said, warning",
    [
        ({"description": "x" * 501}, "the description has 501 characters"),
        (indicator(type="OBV"), "'x' is used by no condition"),
        (indicator(type="ADX", input="high", params={"period": 3}), "its input 'high' is not used"),
        (parameter(), "'p' is used nowhere"),
        (parameter(name="wide", min=1, max=200), "the range of 'wide' is unusual"),
        (leaving({"type": "STOP_LOSS", "percentage": 2}, *spec()["exit_conditions"]), "every list is an AND"),
        ({"indicators": [{"id": f"i{n}", "type": "OBV"} for n in range(4)] + spec()["indicators"]}, "6 indicators are"),
        (
            indicator(type="MACD", params={"shortPeriod": 12, "longPeriod": "${period}"}),
            "the ranges of shortPeriod and longPeriod overlap",
        ),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_what_is_unwise_is_a_warning_and_no_problem(said, warning):
    reading = read(**spec(**said))
    assert reading.problems == ()
    assert any(warning in one for one in reading.warnings), reading.warnings


def test_a_good_spec_is_not_warned_of():
    assert read(**spec()).warnings == ()


def test_nothing_at_all_is_refused_part_by_part():
    assert {problem.path for problem in read(**parts()).problems} == parts().keys()
