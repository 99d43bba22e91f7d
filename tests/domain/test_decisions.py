"""What is kept of a decision's grounds."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quantdeck.domain.decisions import Limits, TooMuchError, kept, spelt, storable, tier

LIMITS = Limits(reasoning_chars=10, calls=3, result_bytes=20, calls_bytes=200)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text("aé\0\\u0"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["tool", "name", "result", "latency_ms", "x"]), inner, max_size=3)
    ),
    max_leaves=12,
)


def test_calls_are_kept_with_their_tools_and_their_time_together():
    calls = [
        {"tool": "get_candles", "latency_ms": 12, "result": [1]},
        {"name": "get_volatility", "latency_ms": 0.5},
        {"tool": "get_candles", "latency_ms": 1},
    ]
    assert kept(calls, LIMITS) == {
        "calls": calls,
        "tools_called": ["get_candles", "get_volatility"],
        "total_latency_ms": 13.5,
    }


def test_no_calls_are_an_empty_list_in_the_same_shape():
    assert kept([], LIMITS) == {"calls": [], "tools_called": [], "total_latency_ms": 0.0}


@pytest.mark.parametrize("size", [20, 21])
def test_a_result_of_the_limit_stays_and_a_longer_one_becomes_a_mark(size):
    call = {"tool": "look", "result": "x" * (size - 2)}  # with its quotes
    (stored,) = kept([call], LIMITS)["calls"]
    assert stored == {"tool": "look", "result": call["result"] if size == 20 else {"truncated": True, "size_bytes": 21}}
    assert len(call["result"]) == size - 2, "what the caller holds is left alone"


def test_more_calls_than_are_kept_are_refused_and_counted():
    assert len(kept([{}] * 3, LIMITS)["calls"]) == 3
    with pytest.raises(TooMuchError) as refused:
        kept([{}] * 4, LIMITS)
    assert refused.value.details == {"count": 4, "max_count": 3}


@pytest.mark.parametrize("size", [200, 201])
def test_calls_of_the_limit_together_are_kept_and_longer_ones_refused(size):
    calls = ["x" * (size - 4)]
    if size == 200:
        assert kept(calls, LIMITS)["calls"] == calls
        return
    with pytest.raises(TooMuchError) as refused:
        kept(calls, LIMITS)
    assert refused.value.details == {"size_bytes": 201, "max_bytes": 200}


@pytest.mark.parametrize(
    "call", ["look", None, 7, ["tool"], {"tool": 7}, {"latency_ms": "3"}, {"latency_ms": True}, {"latency_ms": -5}]
)
def test_what_is_no_proper_call_is_kept_and_counts_for_nothing(call):
    assert kept([call], LIMITS) == {"calls": [call], "tools_called": [], "total_latency_ms": 0.0}


def test_times_beyond_all_numbers_are_no_total():
    assert kept([{"latency_ms": 1.7e308}] * 2, LIMITS)["total_latency_ms"] is None


@given(st.lists(JSON, max_size=4))
def test_whatever_json_it_is_it_is_kept_or_refused_within_the_limits(calls):
    try:
        stored = kept(calls, LIMITS)
    except TooMuchError:
        return
    assert len(orjson.dumps(stored["calls"])) <= LIMITS.calls_bytes
    assert len(stored["calls"]) == len(calls)
    assert all(isinstance(tool, str) for tool in stored["tools_called"])


def holds_nul(value) -> bool:
    if isinstance(value, dict):
        return any(map(holds_nul, [*value, *value.values()]))
    return any(map(holds_nul, value)) if isinstance(value, list) else value is not None and "\0" in str(value)


@given(JSON)
def test_only_a_nul_character_cannot_be_stored_however_backslashes_are_spelt(value):
    assert storable(value) is not holds_nul(value)


@pytest.mark.parametrize(
    "said, meant", [("buy", "BUY"), ("Hold", "HOLD"), ("SELL", "SELL"), ("\u017fell", "\u017fell"), (7, 7)]
)
def test_an_action_is_spelt_in_capitals(said, meant):
    assert spelt(said) == meant


@pytest.mark.parametrize("score, named", [(None, None), (0, "LOW"), (40, "NEUTRAL"), (60, "GOOD"), (80, "HOT")])
def test_a_tier_begins_at_its_score(score, named):
    assert tier(score) == named
