"""save_decision, through a client."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quantdeck.settings import Decisions as DecisionSettings
from tests.servers.decisions_mcp.conftest import WHY, Diary
from tests.support.desk import NOON

KIB = 1024
NOTHING_ASKED: dict[str, Any] = {"calls": [], "tools_called": [], "total_latency_ms": 0.0}


async def test_a_decision_is_stored_as_it_was_said(diary):
    calls = [{"id": "1", "tool": "get_candles", "parameters": {"limit": 3}, "result": [1, 2], "latency_ms": 12}]
    saved = await diary.save(
        symbol="eth_usd", action="sell", confidence=0, opportunity_score=80, reasoning="  why\n", tool_calls=calls
    )
    (row,) = await diary.stored()
    assert row == {
        "seq": row["seq"], "decision_id": saved, "symbol": "ETH/USD", "action": "SELL", "confidence": 0.0,
        "opportunity_score": 80.0, "opportunity_tier": "HOT", "reasoning": "why", "created_at": NOON,
        "tool_calls": {"calls": calls, "tools_called": ["get_candles"], "total_latency_ms": 12},
        "caller": "stdio",
    }  # fmt: skip


@pytest.mark.parametrize("said", [{}, {"opportunity_score": None, "tool_calls": None}, {"tool_calls": []}], ids=str)
async def test_what_is_left_out_is_no_score_no_tier_and_nothing_asked(diary, said):
    await diary.save(**said)
    (row,) = await diary.stored()
    assert (row["opportunity_score"], row["opportunity_tier"], row["tool_calls"]) == (None, None, NOTHING_ASKED)


async def test_a_score_of_zero_is_a_score(diary):
    await diary.save(opportunity_score=0)
    (row,) = await diary.stored()
    assert (row["opportunity_score"], row["opportunity_tier"]) == (0.0, "LOW")


async def test_an_answer_is_never_cached_and_the_same_words_are_another_decision(diary):
    bodies = [await diary("save_decision", **WHY) for _ in range(2)]
    assert [body["_metadata"]["cached"] for body in bodies] == [False, False]
    assert len({body["data"]["decision_id"] for body in bodies}) == len(await diary.stored()) == 2


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"symbol": "nope"}, "INVALID_SYMBOL"),
    ({"symbol": ""}, "INVALID_SYMBOL"),
    ({"symbol": None}, "INVALID_SYMBOL"),
    ({"action": "WAIT"}, "INVALID_ACTION"),
    ({"action": "STRONG_BUY"}, "INVALID_ACTION"),
    ({"action": " BUY"}, "INVALID_ACTION"),
    ({"action": "\u017fell"}, "INVALID_ACTION"),
    ({"action": None}, "INVALID_ACTION"),
    ({"action": 1}, "INVALID_ACTION"),
    ({"confidence": -0.0001}, "INVALID_CONFIDENCE"),
    ({"confidence": 1.0001}, "INVALID_CONFIDENCE"),
    ({"confidence": 70}, "INVALID_CONFIDENCE"),
    ({"confidence": "0.5"}, "INVALID_CONFIDENCE"),
    ({"confidence": True}, "INVALID_CONFIDENCE"),
    ({"confidence": None}, "INVALID_CONFIDENCE"),
    ({"reasoning": None}, "INVALID_PARAMETER"),
    ({"reasoning": " \n\t "}, "INVALID_PARAMETER"),
    ({"reasoning": ["why"]}, "INVALID_PARAMETER"),
    ({"reasoning": "wh\0y"}, "INVALID_PARAMETER"),
    ({"opportunity_score": -1}, "INVALID_PARAMETER"),
    ({"opportunity_score": 100.5}, "INVALID_PARAMETER"),
    ({"opportunity_score": "80"}, "INVALID_PARAMETER"),
    ({"tool_calls": {"calls": []}}, "INVALID_PARAMETER"),
    ({"tool_calls": [{"result\0": 1}]}, "INVALID_PARAMETER"),
    ({"tier": "HOT"}, "INVALID_PARAMETER"),
]


async def test_fails_with_a_declared_code_and_stores_nothing(diary):
    told = [(said, (await diary.refused("save_decision", **{**WHY, **said}))["code"]) for said, _ in REFUSED]
    assert told == REFUSED
    for missing in WHY:
        said = {name: value for name, value in WHY.items() if name != missing}
        assert (await diary.refused("save_decision", **said))["code"] == MISSING[missing]
    assert await diary.stored() == []


MISSING = {
    "symbol": "INVALID_SYMBOL",
    "action": "INVALID_ACTION",
    "confidence": "INVALID_CONFIDENCE",
    "reasoning": "INVALID_PARAMETER",
}


async def test_reasoning_may_have_ten_thousand_characters_and_not_one_more(diary):
    await diary.save(reasoning="  " + "ü" * 10_000 + "\n")
    error = await diary.refused("save_decision", **{**WHY, "reasoning": "ü" * 10_001})
    assert (error["code"], error["details"]) == ("REASONING_TOO_LONG", {"length": 10_001, "max": 10_000})
    assert len(await diary.stored()) == 1


async def test_fifty_calls_are_kept_and_one_more_is_refused(diary):
    await diary.save(tool_calls=[{"tool": f"t{number}"} for number in range(50)])
    error = await diary.refused("save_decision", **WHY, tool_calls=[{}] * 51)
    assert (error["code"], error["details"]["count"], error["details"]["max_count"]) == ("INVALID_PARAMETER", 51, 50)


async def test_a_result_over_five_kib_becomes_a_mark(diary):
    fits, longer = ("x" * (5 * KIB - 2 + more) for more in (0, 1))
    await diary.save(tool_calls=[{"tool": "a", "result": fits}, {"tool": "b", "result": longer}])
    (row,) = await diary.stored()
    assert row["tool_calls"]["calls"] == [
        {"tool": "a", "result": fits},
        {"tool": "b", "result": {"truncated": True, "size_bytes": 5 * KIB + 1}},
    ]


async def test_calls_of_over_a_hundred_kib_together_are_refused(diary):
    await diary.save(tool_calls=["x" * (100 * KIB - 4)])
    error = await diary.refused("save_decision", **WHY, tool_calls=["x" * (100 * KIB - 3)])
    assert (error["code"], error["details"]["size_bytes"]) == ("INVALID_PARAMETER", 100 * KIB + 1)


async def test_all_of_these_limits_are_settings(serve, database):
    limits = DecisionSettings(reasoning_chars=5, calls=1, result_bytes=3, calls_bytes=60)
    diary = Diary(await serve("decisions-mcp", **database, decisions=limits))
    await diary.save(reasoning="whyso", tool_calls=[{"result": "ab"}])
    (row,) = await diary.stored()
    assert row["tool_calls"]["calls"] == [{"result": {"truncated": True, "size_bytes": 4}}]
    for said, code in (
        ({"reasoning": "why so"}, "REASONING_TOO_LONG"),
        ({"tool_calls": [1, 2]}, "INVALID_PARAMETER"),
        ({"tool_calls": ["x" * 60]}, "INVALID_PARAMETER"),
    ):
        assert (await diary.refused("save_decision", **{**WHY, "reasoning": "why", **said}))["code"] == code


TEXT = st.text(st.characters(exclude_categories=["Cs"], min_codepoint=1))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=15,
)


@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(reasoning=TEXT.map(str.strip).filter(bool), asked=st.lists(JSON, max_size=3))
async def test_any_text_and_any_json_come_back_as_they_went_in(diary, reasoning, asked):
    calls = [{"tool": "look", "parameters": one} for one in asked]
    saved = await diary.save(reasoning=reasoning, tool_calls=calls)
    (told,) = (await diary("get_recent_decisions", limit=1))["data"]["items"]
    assert (told["decision_id"], told["reasoning"]) == (saved, reasoning)
    assert (await diary.stored())[-1]["tool_calls"]["calls"] == calls


def nested(levels: int) -> Any:
    deep: Any = "the end"
    for level in range(levels):
        deep = {"a": deep} if level % 2 else [deep]
    return deep


async def test_deep_json_is_stored_as_it_is_or_refused_with_a_code(diary):
    await diary.save(tool_calls=[nested(180)])
    assert (await diary.stored())[0]["tool_calls"]["calls"] == [nested(180)]
    refused = await diary.refused("save_decision", **WHY, tool_calls=[nested(240)])
    assert (refused["code"], refused["message"]) == (
        "INVALID_PARAMETER",
        "Invalid arguments: arguments are nested too deep",
    )


# Once.


async def test_the_same_key_is_the_same_decision_to_the_byte(diary):
    first, again = [await diary.save_with_key("k", symbol=symbol) for symbol in ("BTC/USD", "btcusd")]
    assert first["data"] == again["data"]
    assert len(await diary.stored()) == 1
    other = await diary.save_with_key("another")
    assert other["data"] != first["data"]


async def test_the_same_key_for_another_decision_is_refused(diary):
    await diary.save_with_key("k")
    told = await diary.save_with_key("k", confidence=0.1)
    assert (told["error"]["code"], len(await diary.stored())) == ("INVALID_PARAMETER", 1)


async def test_a_refused_decision_leaves_its_key_free(diary):
    assert (await diary.save_with_key("k", reasoning=" "))["error"]["code"] == "INVALID_PARAMETER"
    assert (await diary.save_with_key("k"))["data"]["saved"]


async def test_many_at_once_under_one_key_are_one_decision(diary):
    bodies = await asyncio.gather(*(diary.save_with_key("k") for _ in range(12)))
    assert len({body["data"]["decision_id"] for body in bodies}) == len(await diary.stored()) == 1


@pytest.mark.parametrize("key", [None, "k"])
async def test_what_was_saved_with_or_without_a_key_ends_the_kept_list(diary, key):
    await diary.listed()
    saved = await diary.save() if key is None else (await diary.save_with_key(key))["data"]["decision_id"]
    assert await diary.listed() == [saved]


async def test_a_save_that_is_held_up_past_its_deadline_tells_what_may_have_become_of_it(serve, database):
    diary = Diary(await serve("decisions-mcp", **database, deadline_s={"save_decision": 0.2}))
    patient = Diary(await serve("decisions-mcp", **database))
    other = patient.database
    async with other.transaction():  # which holds up every writer of SQLite, and by this those of PostgreSQL:
        if other.source == "postgresql":
            await other.execute("LOCK TABLE agent_decisions IN EXCLUSIVE MODE")
        without = await diary.refused("save_decision", **WHY)
        told = (await diary.save_with_key("k"))["error"]
    assert (without["code"], without["details"]["outcome"]) == ("TIMEOUT", "unknown")
    # On SQLite a save with a key has not begun before its transaction has.
    outcome = {"sqlite": "not_started", "postgresql": "unknown"}[other.source]
    assert (told["code"], told["details"]["outcome"]) == ("TIMEOUT", outcome)
    once = [await patient.save_with_key("k") for _ in range(2)]
    assert once[0]["data"] == once[1]["data"]
    await diary.served.app.runtime.tasks.finish(20)
    assert len(await diary.stored()) == 2, "the one with the key, and the one without, which was let finish"
