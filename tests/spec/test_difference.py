"""The comparison itself, on trees made up for it."""

from __future__ import annotations

import pytest

from tests.spec.accounts import Departure, NotBuilt, Proved, to_write
from tests.spec.difference import ANY, Difference, differences, tidy


def compared(promised, actual):
    return [(one.kind, one.path) for one in differences(promised, actual, spec="pyth", tool="get_symbols")]


def test_equal_trees_do_not_differ():
    tree = {"type": "object", "properties": {"limit": {"type": "integer", "default": 5}}, "cache_ttl_s": 30}
    assert compared(tree, {**tree, "cache_ttl_s": 30.0}) == []


def test_a_difference_is_named_by_its_path():
    promised = {"input": {"properties": {"limit": {"maximum": 100}, "offset": {}}}}
    actual = {"input": {"properties": {"limit": {"maximum": 99, "minimum": 1}}}}
    assert compared(promised, actual) == [
        ("differs", "input.properties.limit.maximum"),
        ("added", "input.properties.limit.minimum"),
        ("missing", "input.properties.offset"),
    ]


def test_true_is_not_one():
    assert compared({"retry": True}, {"retry": 1}) == [("differs", "retry")]


def test_the_order_of_an_enum_counts_and_that_of_required_does_not():
    promised = tidy({"enum": ["a", "b"], "required": ["x", "y"]})
    assert compared(promised, tidy({"enum": ["b", "a"], "required": ["y", "x"]})) == [("differs", "enum")]


def test_each_required_member_is_a_point_of_its_own():
    assert compared(tidy({"required": ["x"]}), tidy({"required": ["y"]})) == [
        ("missing", "required.x"),
        ("added", "required.y"),
    ]


def test_a_property_may_be_called_like_a_keyword():
    held = {"type": "object", "properties": {"required": {"type": "array"}, "items": {"type": "string"}}}
    assert tidy(held) == held


def test_what_is_only_promised_to_be_there_may_hold_anything():
    assert compared({"fields": {"price": ANY, "bid": ANY}}, {"fields": {"price": 7}}) == [("missing", "fields.bid")]


ADDED = Difference("pyth", "get_symbols", "input.properties.limit.minimum", "added", actual=1)


@pytest.mark.parametrize(
    "places, said",
    [
        ({"spec": "pyth", "tool": "get_symbols", "field": "input.properties.limit.minimum"}, {}),
        ({"spec": "*", "tool": "get_*", "field": "input.*.minimum"}, {}),
        ({"spec": "pyth", "tool": "*", "field": "input.properties.limit.minimum"}, {"actual": 1}),
    ],
)
def test_a_departure_explains_what_its_globs_match(places, said):
    assert Departure(**places, kind="added", what="…", why="…", **said).explains(ADDED)


@pytest.mark.parametrize(
    "other",
    [{"kind": "differs"}, {"tool": "get_candles"}, {"field": "output.*"}, {"spec": "catalog"}, {"actual": 2}],
)
def test_a_departure_explains_nothing_else(other):
    entry = {"spec": "pyth", "tool": "*", "field": "input.*", "kind": "added", "what": "…", "why": "…"}
    assert not Departure(**{**entry, **other}).explains(ADDED)


def test_only_what_is_missing_can_be_unbuilt_or_proved_elsewhere():
    gone = Difference("pyth", "", "watermark", "missing", promised="…")
    changed = Difference("pyth", "", "watermark", "differs", promised="…", actual="—")
    for account in (NotBuilt(spec="pyth", field="watermark", issue=9), Proved(spec="pyth", field="*", test="a::b")):
        assert account.explains(gone)
        assert not account.explains(changed)


def test_the_message_says_exactly_what_to_write():
    message = to_write(ADDED)
    assert "nothing is promised, it is 1" in message
    assert 'tool = "get_symbols"\n    field = "input.properties.limit.minimum"\n    kind = "added"' in message
    assert "not_built.toml" not in message
    assert 'tools = ["get_candles"]' in to_write(Difference("tradestream", "get_candles", "tool", "missing"))
