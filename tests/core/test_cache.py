"""An answer is given again without asking its source, for as long as its spec says, and to whom it belongs."""

from __future__ import annotations

import time
from typing import Annotated, Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pydantic import Field

from quantdeck.core.call import Caller
from quantdeck.core.clock import Clock
from quantdeck.core.contract import Contract, Policy
from quantdeck.core.errors import ErrorCode, Unreachable
from quantdeck.dialects.catalog import catalog
from quantdeck.dialects.declaring import read
from quantdeck.dialects.pyth import pyth
from quantdeck.dialects.tradestream import INVALID_SYMBOL, Symbol, tradestream
from tests.support.clock import INSTANT, Ticks
from tests.support.runtime import ALICE, BOB, Coordinated, Desk, Program, body, error_of

NOTHING = ErrorCode("NOTHING", "Nothing there", 404)


async def quote(
    desk: Desk,
    symbol: Symbol,
    limit: Annotated[int, Field(description="How many", ge=0)] = 5,
    facts: Annotated[dict[str, float] | None, Field(description="Facts")] = None,
) -> dict[str, Any]:
    """Quote."""
    return {"asked": await desk.ask(), "symbol": symbol, "limit": limit, "facts": facts}


CACHED = tradestream.tool(errors=(INVALID_SYMBOL, NOTHING), cache_s=30)(quote)
BTC = {"symbol": "BTC/USD"}


async def asked(program: Program, arguments: dict[str, Any], tool: Contract = CACHED, **facts: Any) -> int:
    data = body(await program.call(tool, arguments, **facts))
    number: int = data.get("data", data)["asked"]
    return number


async def test_an_answer_is_given_again_until_its_time_has_run_out():
    program = Program()
    assert await asked(program, BTC) == 1
    program.ticks.advance(29.9)
    assert await asked(program, BTC) == 1
    program.ticks.advance(0.1)
    assert await asked(program, BTC) == 2


async def test_a_hit_says_so_and_how_long_it_has_left_and_where_it_came_from():
    program = Program()
    fresh = body(await program.call(CACHED, BTC))
    program.ticks.advance(10)
    hit = body(await program.call(CACHED, BTC))
    assert fresh["_metadata"].items() >= {"cached": False, "cache_ttl_remaining": None, "source": "fake"}.items()
    assert hit["_metadata"].items() >= {"cached": True, "cache_ttl_remaining": 20.0, "source": "fake"}.items()
    assert hit["data"] == fresh["data"]
    assert [event["cached"] for event in program.events] == [False, True]


async def test_a_hit_reports_its_own_latency():
    program = Program()
    slow = body(await program.call(CACHED, BTC, started=time.perf_counter() - 3600))
    hit = body(await program.call(CACHED, BTC))
    assert slow["_metadata"]["latency_ms"] >= 3_600_000 > hit["_metadata"]["latency_ms"]


async def test_an_answer_of_a_source_that_has_changed_is_not_given_again():
    program = Program()
    revised = tradestream.tool(errors=(INVALID_SYMBOL, NOTHING), cache_s=30, revised=True)(quote)
    assert [await asked(program, BTC, revised), await asked(program, BTC, revised)] == [1, 1]
    program.desk.mark += 1
    assert [await asked(program, BTC, revised), await asked(program, BTC, revised)] == [2, 2]
    assert [await asked(program, BTC), await asked(program, BTC)] == [3, 3]
    program.desk.mark += 1
    assert await asked(program, BTC) == 3


async def test_the_spec_sets_the_time_to_live_and_a_setting_overrides_it():
    program = Program()
    program.runtime.cache_ttl_s = {"quote": 5}
    await asked(program, BTC)
    program.ticks.advance(5)
    assert await asked(program, BTC) == 2


async def test_0_turns_the_cache_off():
    program = Program()
    program.runtime.cache_ttl_s = {"quote": 0}
    assert [await asked(program, BTC) for _ in range(2)] == [1, 2]
    program.runtime.cache_ttl_s = {}
    assert await asked(program, BTC) == 3, "nothing was stored meanwhile"


async def test_a_tool_without_a_time_to_live_is_not_cached():
    plain = tradestream.tool(errors=(INVALID_SYMBOL,))(quote)
    program = Program()
    assert [await asked(program, BTC, plain) for _ in range(2)] == [1, 2]


async def test_an_effect_is_never_cached_whatever_it_declares():
    effect = read(quote, dialect=catalog, policy=Policy(cache_s=30, effect=True), errors=(INVALID_SYMBOL,))
    program = Program()
    assert [await asked(program, BTC, effect) for _ in range(2)] == [1, 2]


@pytest.mark.parametrize("failure", [NOTHING("nothing"), Unreachable("gone", source="fake"), ValueError("bug")])
async def test_errors_are_never_stored(failure):
    program = Program()
    program.desk.failure = failure
    assert (await program.call(CACHED, BTC)).is_error
    program.desk.failure = None
    assert await asked(program, BTC) == 2


async def test_a_failure_does_not_take_a_stored_answer_away():
    program = Program()
    await asked(program, BTC)
    program.desk.failure = Unreachable("gone", source="fake")
    assert (await program.call(CACHED, {**BTC, "force_refresh": True})).is_error
    assert await asked(program, BTC) == 1


async def test_what_is_stored_cannot_be_changed_by_whom_it_was_given_to():
    program = Program()
    answer = body(await program.call(CACHED, BTC))
    answer["data"]["symbol"] = "defaced"
    assert body(await program.call(CACHED, BTC))["data"]["symbol"] == "BTC/USD"


# The key


@pytest.mark.parametrize("spelling", ["btc/usd", "BTC-USD", "BTC_USD", "BTCUSD", " Btc-Usd "])
async def test_every_spelling_of_a_symbol_is_one_question(spelling):
    program = Program()
    assert await asked(program, BTC) == await asked(program, {"symbol": spelling})


@pytest.mark.parametrize(
    "same", [{"limit": 5}, {"limit": 5.0}, {"limit": None}, {"facts": None}, {"force_refresh": False}]
)
async def test_what_means_the_same_is_one_question(same):
    program = Program()
    assert await asked(program, BTC) == await asked(program, {**BTC, **same})


@pytest.mark.parametrize("other", [{"symbol": "ETH/USD"}, {"limit": 6}, {"limit": 0}, {"facts": {}}])
async def test_what_means_something_else_is_another_question(other):
    program = Program()
    assert await asked(program, BTC) != await asked(program, {**BTC, **other})


async def test_tools_do_not_answer_for_each_other():
    async def requote(desk: Desk, symbol: Symbol) -> dict[str, Any]:
        """Quote."""
        return {"asked": await desk.ask(), "symbol": symbol}

    other = tradestream.tool(errors=(INVALID_SYMBOL,), cache_s=30)(requote)
    program = Program()
    assert await asked(program, BTC) != await asked(program, BTC, other)


FACTS = st.dictionaries(st.text(max_size=5), st.floats(allow_nan=False, allow_infinity=False), max_size=4)


@given(facts=FACTS, limit=st.integers(0, 100), data=st.data())
async def test_the_order_of_arguments_is_no_part_of_the_question(facts, limit, data):
    arguments = {"symbol": "BTC/USD", "limit": limit, "facts": facts}
    shuffled = dict(data.draw(st.permutations(list(arguments.items()))))
    shuffled["facts"] = dict(data.draw(st.permutations(list(facts.items()))))
    program = Program()
    assert await asked(program, arguments) == await asked(program, shuffled)


@given(one=FACTS, two=FACTS, limits=st.tuples(st.integers(0, 9), st.integers(0, 9)))
async def test_different_arguments_are_different_questions(one, two, limits):
    assume((one, limits[0]) != (two, limits[1]))
    program = Program()
    first = await asked(program, {**BTC, "facts": one, "limit": limits[0]})
    assert first != await asked(program, {**BTC, "facts": two, "limit": limits[1]})


def varying(*names: str) -> Contract:
    policy = Policy(cache_s=30, vary=names)
    return read(quote, dialect=tradestream, policy=policy, errors=(INVALID_SYMBOL, NOTHING))


@pytest.mark.parametrize(
    "names, one, two, shared",
    [
        ((), {"caller": ALICE}, {"caller": BOB}, True),
        ((), {"upstream_token": "a"}, {"upstream_token": "b"}, True),
        (("caller",), {"caller": ALICE}, {"caller": BOB}, False),
        (("caller",), {"caller": ALICE}, {"caller": ALICE}, True),
        (("account",), {"caller": ALICE}, {"caller": BOB}, False),
        (("account",), {"caller": ALICE}, {"caller": Caller("carol", account="north")}, True),
        (("account",), {"caller": ALICE}, {"caller": Caller("dave")}, False),
        (("upstream",), {"upstream_token": "a"}, {"upstream_token": "b"}, False),
        (("upstream",), {"upstream_token": "a"}, {}, False),
        (("upstream",), {"upstream_token": "a"}, {"upstream_token": "a", "caller": BOB}, True),
        (("account", "upstream"), {"upstream_token": "a"}, {"upstream_token": "a", "caller": BOB}, False),
    ],
)
async def test_an_answer_is_shared_only_among_those_it_is_the_same_for(names, one, two, shared):
    program, tool = Program(), varying(*names)
    first = await asked(program, BTC, tool, **one)
    assert (await asked(program, BTC, tool, **two) == first) is shared


async def test_an_upstream_token_is_in_no_key():
    program = Program(coordination=Coordinated(Ticks(), shared=True))
    await asked(program, BTC, varying("upstream"), upstream_token="t0ken")
    assert b"t0ken" not in b"".join(program.runtime.flights._stored)
    assert "t0ken" not in "".join(program.coordination.stored)


def test_what_the_fifth_spec_answers_depends_on_the_upstream_token():
    async def feeds() -> dict[str, Any]:
        """Feeds."""
        return {}

    assert pyth.tool(cache_s=1)(feeds).policy.vary == ("upstream",)


async def test_a_fixed_clock_is_part_of_the_question_and_the_wall_clock_is_not():
    program = Program()
    assert await asked(program, BTC) == await asked(program, BTC)
    program.runtime.clock = Clock(INSTANT)
    first = await asked(program, BTC)
    assert first == await asked(program, BTC) == 2
    program.runtime.clock = Clock(INSTANT.replace(hour=10))
    assert await asked(program, BTC) == 3
    program.runtime.clock = Clock(INSTANT)
    assert await asked(program, BTC) == 2


async def test_a_bad_symbol_is_refused_and_not_remembered():
    program = Program()
    assert error_of(await program.call(CACHED, {"symbol": "???"}))[0] == "INVALID_SYMBOL"
    assert not program.runtime.flights._stored
