"""The words of Pyth's vocabularies: those that were known, and those that are heard."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quantdeck.domain.pyth_feeds import Catalog, read_feed
from quantdeck.domain.pyth_numbers import pace_us
from quantdeck.domain.pyth_types import BUILT_IN, KeyTypes, of_catalog, of_document, snake
from tests.support.pyth_stub import FEEDS, feed

NEW = feed(9, "Crypto.NEW/USD", "NEW", asset_type="tokens", min_channel="fixed_rate@10ms",
           market_sessions={"regular": {"schedule": "x"}, "lunch": {"schedule": "y"}})  # fmt: skip


def test_a_list_of_feeds_adds_its_words_and_takes_none_away():
    known = BUILT_IN | of_catalog(Catalog(row for row in map(read_feed, [*FEEDS, NEW]) if row))
    assert set(BUILT_IN.asset_types) < set(known.asset_types)
    assert known.asset_types[-2:] == ("perpetual-swap", "tokens")
    assert known.channels == (
        "real_time", "fixed_rate@10ms", "fixed_rate@50ms", "fixed_rate@200ms", "fixed_rate@1000ms",
    )  # fmt: skip
    assert known.sessions == ("regular", "pre_market", "post_market", "over_night", "lunch")


@pytest.mark.parametrize("state", ["", "fast", "fixed_rate@0ms", "fixed_rate@5s", "fixed_rate@-5ms", "real_time2"])
def test_a_channel_whose_pace_nobody_can_tell_is_none(state):
    assert pace_us(state) is None
    row = read_feed({**NEW, "min_channel": state})
    assert row is not None
    assert of_catalog(Catalog([row])).channels == ()


ENUM = {"type": "string", "enum": ["price", "exponent", "twap"]}
ONE_OF = {"oneOf": [{"type": "string", "enum": ["price"]}, {"const": "exponent"}, {"enum": ["twap"]}]}


@pytest.mark.parametrize("properties", [ENUM, ONE_OF], ids=["enum", "oneOf"])
def test_a_document_adds_what_it_enumerates(properties):
    schemas = {"PriceFeedProperty": properties, "Channel": {"enum": ["real_time", "fixed_rate@10ms", "soon"]},
               "Other": {"enum": ["left", "right"]}}  # fmt: skip
    told = of_document({"openapi": "3.1.0", "components": {"schemas": schemas}})
    assert told == KeyTypes(channels=("fixed_rate@10ms", "real_time"), properties=("price", "exponent", "twap"))


@given(st.recursive(st.none() | st.text(max_size=5) | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(
    st.sampled_from(["enum", "oneOf", "const", "a"]), inner)))  # fmt: skip
def test_whatever_a_document_is_it_is_read(document: Any):
    assert set(BUILT_IN.properties) <= set((BUILT_IN | of_document(document)).properties)


def test_a_document_without_end_adds_no_end_of_words():
    deep: Any = {"enum": ["price", "exponent"]}
    for _ in range(1000):
        deep = {"items": [deep]}
    assert of_document(deep) == KeyTypes()
    many = {"enum": ["price", "exponent", *(f"word {n} {'x' * 500}" for n in range(5000))]}
    known = BUILT_IN | of_document(many)
    assert len(known.properties) <= 200
    assert all(len(word) <= 60 for word in known.properties)


def test_the_historys_spelling_has_underscores():
    assert [snake(name) for name in ("price", "bestBidPrice", "feedUpdateTimestamp")] == [
        "price", "best_bid_price", "feed_update_timestamp",
    ]  # fmt: skip
