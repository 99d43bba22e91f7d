"""What leaves: compact JSON in which nothing is but what JSON has."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quantdeck.core.wire import Answer, canonical, encode
from quantdeck.dialects.schemas import violation
from tests.support.clock import INSTANT


@dataclass(frozen=True, slots=True)
class Row:
    name: str
    price: float | None


@pytest.mark.parametrize(
    "value, encoded",
    [
        ({"a": 1, "b": [True, None]}, b'{"a":1,"b":[true,null]}'),
        (Row("é", math.nan), '{"name":"é","price":null}'.encode()),
        ([math.inf, -math.inf, 0.0, -0.0], b"[null,null,0.0,-0.0]"),
        (INSTANT, b'"2026-01-15T09:30:00Z"'),
        ({1: "x"}, b'{"1":"x"}'),
        (orjson.Fragment(b'{"x":1}'), b'{"x":1}'),
    ],
)
def test_json_is_compact_and_without_what_json_has_not(value, encoded):
    assert encode(value) == encoded


@pytest.mark.parametrize("value", [object(), {1, 2}, 2**64, "\ud800", b"bytes"])
def test_what_has_no_json_is_an_error(value):
    with pytest.raises(TypeError):
        encode(value)


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda held: st.lists(held, max_size=3) | st.dictionaries(st.text(max_size=5), held, max_size=4),
    max_leaves=10,
)  # fmt: skip


def _reversed(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _reversed(held) for key, held in reversed(value.items())}
    return [_reversed(held) for held in value] if isinstance(value, list) else value


@given(value=JSON)
def test_the_canonical_form_does_not_know_the_order_of_keys(value):
    assert canonical(value) == canonical(_reversed(value))


@given(one=JSON, two=JSON)
def test_the_canonical_form_tells_different_values_apart(one, two):
    same = json.dumps(one, sort_keys=True) == json.dumps(two, sort_keys=True)
    assert (canonical(one) == canonical(two)) is same


def test_an_answer_is_encoded_once():
    answer = Answer({"a": 1})
    assert answer.encoded is answer.encoded


def test_a_violation_says_where_and_what():
    schema = {"type": "object", "properties": {"n": {"type": "array", "items": {"type": "integer"}},
              "at": {"type": "string", "format": "date-time"}}, "required": ["n"]}  # fmt: skip
    check = violation(schema)
    assert check(b'{"n":[1,2]}') is None
    assert (check(b'{"n":[1,"x"]}') or "").startswith("n/1: ")
    assert "required" in (check(b"{}") or "")
    assert check(b'{"n":[],"at":"yesterday"}') is not None, "formats are held against their word"


LOADS = """
import sys
from datetime import UTC, datetime
from quantdeck.core.clock import Now
from quantdeck.core.wire import canonical, encode
now = Now.of(datetime(2026, 1, 15, 12, tzinfo=UTC), fixed=True)
print(encode([now]).decode(), canonical([now]).decode(), "numpy" in sys.modules)
import numpy
print(encode([numpy.float64(0.5), numpy.arange(2), now]).decode())
"""


def test_numpys_values_are_written_and_no_other_value_loads_numpy():
    told = subprocess.run([sys.executable, "-c", LOADS], check=True, capture_output=True, text=True).stdout
    at = '"2026-01-15T12:00:00Z"'
    assert told.splitlines() == [f"[{at}] [{at}] False", f"[0.5,[0,1],{at}]"]
