"""Arguments: what is accepted, what is refused, with which code and in which words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import AfterValidator, Field
from typing_extensions import TypedDict

from quantdeck.core.contract import Contract
from quantdeck.core.errors import ErrorCode, RejectedValue, Rejects
from quantdeck.core.wire import Answer, RpcFailure
from quantdeck.dialects.backtest_events import backtest_events
from quantdeck.dialects.catalog import catalog
from quantdeck.dialects.chart import INVALID_SYMBOL as CHART_INVALID_SYMBOL
from quantdeck.dialects.chart import chart
from quantdeck.dialects.pyth import pyth
from quantdeck.dialects.tradestream import INVALID_SYMBOL, Clamp, Symbol, tradestream
from tests.support.runtime import Program, body, error_of

INVALID_SIDE = ErrorCode("INVALID_SIDE", "No such side", 400)


@dataclass(frozen=True, slots=True)
class Ask:
    """Arguments may hold dataclasses and times as well."""

    what: str
    at: datetime
    count: int = 1


class Leg(TypedDict):
    symbol: str
    size: Annotated[float, Field(gt=0)]


def _even(value: int) -> int:
    if value % 2:
        raise RejectedValue("must be even", nearest=value + 1)
    return value


async def place(
    name: Annotated[str, Field(description="A name", min_length=1, max_length=20)],
    count: Annotated[int, Field(description="A count", ge=0)] = 1,
    ratio: Annotated[float, Field(description="A ratio", ge=0, le=1)] = 0.5,
    flag: Annotated[bool, Field(description="A flag")] = False,
    side: Annotated[Literal["buy", "sell"], Rejects(INVALID_SIDE), Field(description="A side")] = "buy",
    top: Annotated[int, Clamp(1, 10), Field(description="A cap")] = 5,
    even: Annotated[int, AfterValidator(_even), Field(description="An even number")] = 2,
    legs: Annotated[list[Leg] | None, Field(description="Legs")] = None,
    ids: Annotated[list[int] | None, Field(description="Numbers")] = None,
    weights: Annotated[dict[str, float] | None, Field(description="Weights")] = None,
    either: Annotated[int | list[int] | None, Field(description="One or many")] = None,
    asks: Annotated[list[Ask] | None, Field(description="What is asked")] = None,
    anything: Annotated[Any, Field(description="Any JSON")] = None,
) -> dict[str, Any]:
    """Answer what was understood."""
    return {
        "name": name, "count": count, "ratio": ratio, "flag": flag, "side": side, "top": top, "even": even,
        "legs": legs, "ids": ids, "weights": weights, "either": either, "asks": asks, "anything": anything,
    }  # fmt: skip


TOOLS: dict[str, Contract] = {
    "tradestream": tradestream.tool(errors=(INVALID_SIDE,), cache_s=30)(place),
    "chart": chart.tool(errors=(INVALID_SIDE,))(place),
    "backtest_events": backtest_events.tool(errors=(INVALID_SIDE,))(place),
    "catalog": catalog.tool(
        "place.it", deadline_ms=5000, p95_ms=1, per_minute=10**6, cache_s=1, errors=(INVALID_SIDE,)
    )(place),
    "pyth": pyth.tool(errors=(INVALID_SIDE,))(place),
}
INVALID = {
    "tradestream": "INVALID_PARAMETER",
    "chart": "-32602",
    "backtest_events": "INVALID_PARAMETER",
    "catalog": "MCP-001",
    "pyth": "-32602",
}
PLAIN = TOOLS["backtest_events"]

REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"count": "seven"}, "count", "must be an integer"),
    ({"count": True}, "count", "must be an integer"),
    ({"count": 1.5}, "count", "must be an integer"),
    ({"count": [1]}, "count", "must be an integer"),
    ({"count": -1}, "count", "must be at least 0"),
    ({"count": 2**63}, "count", "is beyond 64 bits"),
    ({"count": 1e30}, "count", "is beyond 64 bits"),
    ({"count": math.nan}, "count", "must be an integer"),
    ({"count": math.inf}, "count", "must be an integer"),
    ({"ratio": "0.5x"}, "ratio", "must be a number"),
    ({"ratio": True}, "ratio", "must be a number"),
    ({"ratio": math.nan}, "ratio", "must be a number"),
    ({"ratio": math.inf}, "ratio", ""),
    ({"ratio": 2}, "ratio", "must be at most 1"),
    ({"flag": 1}, "flag", "must be true or false"),
    ({"flag": "true"}, "flag", "must be true or false"),
    ({"name": 5}, "name", "must be a string"),
    ({"name": None}, "name", "must be a string"),
    ({"name": ""}, "name", "must have at least 1 character"),
    ({"name": "x" * 1_000_000}, "name", "must have at most 20 characters"),
    ({"top": 0}, "top", "must be at least 1"),
    ({"even": 3}, "even", "must be even"),
    ({"legs": {}}, "legs", "must be a list"),
    ({"legs": [{"symbol": "A"}]}, "legs.0.size", "is required"),
    ({"legs": [{"symbol": "A", "size": 1}, {"symbol": "A", "size": 0}]}, "legs.1.size", "must be greater than 0"),
    ({"legs": [{"symbol": "A", "size": 1, "more": 1}]}, "legs.0.more", "is not known here"),
    ({"ids": [1, "x"]}, "ids.1", "must be an integer"),
    ({"weights": {"a": math.nan}}, "weights.a", "must be a number"),
    ({"weights": []}, "weights", "must be an object"),
    ({"either": ["x"]}, "either", "must be an integer"),
    ({"asks": [{"what": "a", "at": "noon"}]}, "asks.0.at", "must be a time with its offset"),
    ({"asks": [{"what": "a"}]}, "asks.0.at", "is required"),
    ({"asks": [{"what": "a", "at": "2026-01-01T00:00:00Z", "who": 1}]}, "asks.0.who", "is not known here"),
    ({"bogus": 1}, "bogus", "is not an argument of this tool; it takes name, count, "),
    ({"bogus": None}, "bogus", "is not an argument of this tool"),
    ({"name_": "x"}, "name_", "is not an argument of this tool"),
    ({"": "x"}, '""', "is not an argument of this tool"),
]  # fmt: skip


@pytest.mark.parametrize("spec", TOOLS)
@pytest.mark.parametrize("wrong, where, words", REFUSED, ids=lambda value: str(value)[:40])
async def test_what_the_schema_does_not_allow_is_the_specs_own_invalid_code(spec, wrong, where, words):
    code, sentence, details = error_of(await Program().call(TOOLS[spec], {"name": "a", **wrong}))
    assert code == INVALID[spec]
    assert sentence.removeprefix("Invalid params: ").startswith("Invalid arguments: ")
    told = details["invalid_arguments"][0]
    assert told["argument"] == where
    assert words in told["problem"]
    assert f"{where} {words}" in sentence


@pytest.mark.parametrize("spec", TOOLS)
async def test_a_missing_argument_is_named(spec):
    code, sentence, details = error_of(await Program().call(TOOLS[spec]))
    assert code == INVALID[spec]
    assert details["invalid_arguments"] == [{"argument": "name", "rule": "required", "problem": "is required"}]
    assert "name is required" in sentence


@pytest.mark.parametrize("spec", TOOLS)
async def test_a_parameter_with_a_code_of_its_own_is_refused_with_that(spec):
    # chart numbers its codes, so a worded one would be no int there
    if spec == "chart":
        tool = chart.tool(errors=(CHART_INVALID_SYMBOL,))(_with_symbol)
        assert error_of(await Program().call(tool, {"symbol": "???"}))[0] == "-32002"
        return
    code, sentence, _ = error_of(await Program().call(TOOLS[spec], {"name": "a", "side": "hold"}))
    assert code == "INVALID_SIDE"
    assert "side must be one of 'buy' or 'sell'" in sentence


async def _with_symbol(
    symbol: Annotated[str, Field(pattern="^[A-Z]+$", description="A symbol"), Rejects(CHART_INVALID_SYMBOL)],
) -> dict[str, Any]:
    """Echo."""
    return {"symbol": symbol}


@pytest.mark.parametrize("spec", TOOLS)
async def test_a_dataclass_and_a_time_are_read_from_what_json_has_for_them(spec):
    asks = [{"what": "a", "at": "2026-01-01T00:00:00Z", "count": 2}, {"what": "b", "at": "2026-01-01T01:00:00+01:00"}]
    answer = body(await Program().call(TOOLS[spec], {"name": "a", "asks": asks}))
    assert answer.get("data", answer)["asks"] == [
        {"what": "a", "at": "2026-01-01T00:00:00Z", "count": 2},
        {"what": "b", "at": "2026-01-01T01:00:00+01:00", "count": 1},
    ]


@pytest.mark.parametrize("name", [n for n, p in PLAIN.by_wire.items() if not p.required])
async def test_null_for_an_optional_argument_is_the_same_as_leaving_it_out(name):
    left_out = body(await Program().call(PLAIN, {"name": "a"}))
    assert body(await Program().call(PLAIN, {"name": "a", name: None})) == left_out


async def test_null_is_a_value_where_anything_is_required():
    @catalog.tool("keep.it", deadline_ms=5000, p95_ms=1, per_minute=100)
    async def keep(value: Annotated[Any, Field(description="Any JSON")]) -> dict[str, Any]:
        """Keep."""
        return {"kept": value}

    assert body(await Program().call(keep, {"value": None})) == {"kept": None}
    assert error_of(await Program().call(keep))[0] == "MCP-001"


@pytest.mark.parametrize(
    "arguments, name, understood",
    [
        ({"count": 5.0}, "count", 5),
        ({"count": 2**63 - 1}, "count", 2**63 - 1),
        ({"ids": [1.0, 2]}, "ids", [1, 2]),
        ({"ratio": 1}, "ratio", 1.0),
        ({"ratio": 0}, "ratio", 0.0),
        ({"count": 0}, "count", 0),
        ({"flag": False}, "flag", False),
        ({"top": 11.0}, "top", 10),
        ({"weights": {"a": 1}}, "weights", {"a": 1.0}),
        ({"anything": {"deep": [1, None, {"x": "7"}]}}, "anything", {"deep": [1, None, {"x": "7"}]}),
    ],
)
async def test_one_kind_of_number_and_nothing_else_is_bent(arguments, name, understood):
    got = body(await Program().call(PLAIN, {"name": "a", **arguments}))[name]
    assert (got, type(got)) == (understood, type(understood))


@pytest.mark.parametrize("spec", TOOLS)
async def test_numerals_in_strings_are_numbers_for_one_spec_only(spec):
    answer = await Program().call(TOOLS[spec], {"name": "a", "count": "7", "ratio": "0.25", "ids": ["1", 2]})
    if spec == "pyth":
        assert {k: body(answer)[k] for k in ("count", "ratio", "ids")} == {"count": 7, "ratio": 0.25, "ids": [1, 2]}
    else:
        assert error_of(answer)[0] == INVALID[spec]


@pytest.mark.parametrize("text", ["", " 7", "7 ", "1_000", "0x10", "seven", "7.5", "nan", "inf", "9" * 5000, "9" * 30])
async def test_a_string_that_is_no_plain_numeral_is_refused_even_there(text):
    assert error_of(await Program().call(TOOLS["pyth"], {"name": "a", "count": text}))[0] == "-32602"


@pytest.mark.parametrize("text", ["nan", "inf", "-Infinity", "1e999"])
async def test_a_numeral_is_finite(text):
    assert error_of(await Program().call(TOOLS["pyth"], {"name": "a", "ratio": text}))[0] == "-32602"


@pytest.mark.parametrize("spec", TOOLS)
@pytest.mark.parametrize(
    "wrong", [{"name": "\ud800"}, {"anything": 2**64}, {"count": 10**30}, {"anything": {"a": "\udfff"}}, {"\ud800": 1}]
)
async def test_what_is_no_json_is_an_invalid_argument_and_no_failure_of_ours(spec, wrong):
    assert error_of(await Program().call(TOOLS[spec], {"name": "a", **wrong}))[0] == INVALID[spec]


async def test_nesting_beyond_measure_is_refused():
    deep: Any = []
    for _ in range(2000):
        deep = [deep]
    assert error_of(await Program().call(PLAIN, {"name": "a", "anything": deep}))[0] == "INVALID_PARAMETER"


async def test_a_refusal_stays_short_however_much_is_wrong():
    _, sentence, details = error_of(await Program().call(PLAIN, {"name": "a", "ids": ["x"] * 10_000}))
    assert len(sentence) < 1000
    assert len(details["invalid_arguments"]) <= 20


async def test_a_refusal_does_not_repeat_a_long_name():
    answer = await Program().call(PLAIN, {"name": "a", "x" * 100_000: 1})
    assert len(answer.encoded) < 2000


async def test_every_problem_is_told_at_once():
    _, sentence, details = error_of(await Program().call(PLAIN, {"count": -1, "ratio": 7, "bogus": 1}))
    assert [entry["argument"] for entry in details["invalid_arguments"]] == ["name", "count", "ratio", "bogus"]
    assert all(name in sentence for name in ("name", "count", "ratio", "bogus"))


async def test_a_parameters_own_check_adds_its_facts():
    _, sentence, details = error_of(await Program().call(PLAIN, {"name": "a", "even": 3}))
    assert "even must be even" in sentence
    assert details["nearest"] == 4


async def test_a_symbol_arrives_in_its_canonical_spelling():
    @tradestream.tool(errors=(INVALID_SYMBOL,))
    async def echo(symbol: Symbol) -> dict[str, Any]:
        """Echo."""
        return {"symbol": symbol}

    assert body(await Program().call(echo, {"symbol": "btc-usd"}))["data"] == {"symbol": "BTC/USD"}
    code, _, details = error_of(await Program().call(echo, {"symbol": "USDTUSDUSDC?"}))
    assert (code, details["symbol"]) == ("INVALID_SYMBOL", "USDTUSDUSDC?")


def test_a_validator_is_built_on_first_use():
    fresh = backtest_events.tool(errors=(INVALID_SIDE,))(place)
    assert "model" not in vars(fresh)
    assert fresh.input_schema
    assert "model" in vars(fresh)


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.text(alphabet="\ud800a", max_size=3),
    lambda held: st.lists(held, max_size=4) | st.dictionaries(st.text(max_size=8), held, max_size=4),
    max_leaves=12,
)
ARGUMENTS = st.dictionaries(st.sampled_from(list(PLAIN.by_wire)) | st.text(max_size=8), JSON, max_size=12)


@given(arguments=ARGUMENTS, spec=st.sampled_from(list(TOOLS)))
async def test_no_json_whatever_gets_anything_but_a_declared_answer(arguments, spec):
    outcome = await Program().call(TOOLS[spec], arguments)
    if isinstance(outcome, RpcFailure):
        assert outcome.code in TOOLS[spec].may_answer
        return
    assert isinstance(outcome, Answer)
    assert body(outcome) is not None
    if outcome.is_error:
        assert outcome.code in TOOLS[spec].may_answer
        assert outcome.status == 400, "arguments alone are never the server's fault"
