"""What a chain lacks of a pattern."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quantdeck.domain.event_chains import missing


@pytest.mark.parametrize(
    "pattern, root, rest, lacking",
    [
        ("", "a", "bc", ""),
        ("a", "a", "", ""),
        ("a", "b", "a", "a"),  # the first is the root, not any event
        ("abc", "a", "bc", ""),
        ("abc", "a", "cb", "c"),  # in order
        ("abb", "a", "b", "b"),  # each an event of its own
        ("abb", "a", "bxb", ""),
        ("abcd", "a", "bd", "c"),  # what comes after a gap still counts
        ("aa", "a", "", "a"),
        ("abc", "x", "bc", "a"),
    ],
)
def test_a_pattern_is_an_ordered_part_of_its_chain_from_the_root_on(pattern, root, rest, lacking):
    assert "".join(missing(pattern, root, rest)) == lacking


@given(st.lists(st.sampled_from("abc"), min_size=1), st.data())
def test_a_chain_lacks_nothing_of_a_part_of_itself(chain, data):
    places = data.draw(st.lists(st.integers(0, len(chain) - 1), unique=True).map(sorted))
    pattern = [chain[0], *(chain[place] for place in places if place)]
    assert missing(pattern, chain[0], chain[1:]) == []
    assert missing([*pattern, "z"], chain[0], chain[1:]) == ["z"]
