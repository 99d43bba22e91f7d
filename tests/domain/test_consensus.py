"""What several strategies say together."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quantdeck.domain.consensus import SILENT, Vote, consensus

VOTES = st.lists(
    st.builds(Vote, st.sampled_from(["BUY", "SELL", "HOLD"]), st.floats(0, 1, allow_nan=False)), min_size=1, max_size=30
)


def votes(buy: int, sell: int, hold: int, strength: float = 1.0) -> list[Vote]:
    return [Vote("BUY", strength)] * buy + [Vote("SELL", strength)] * sell + [Vote("HOLD", strength)] * hold


@pytest.mark.parametrize(
    "buy, sell, hold, verdict",
    [
        (10, 0, 0, "STRONG_BUY"),
        (7, 3, 0, "STRONG_BUY"),
        (7, 0, 3, "STRONG_BUY"),
        (69, 31, 0, "BUY"),
        (5, 4, 1, "BUY"),
        (1, 0, 1, "BUY"),
        (49, 0, 51, "NEUTRAL"),
        (5, 5, 0, "NEUTRAL"),
        (0, 0, 4, "NEUTRAL"),
        (1, 1, 0, "NEUTRAL"),
        (4, 3, 3, "NEUTRAL"),
        (4, 5, 1, "SELL"),
        (0, 1, 1, "SELL"),
        (3, 7, 0, "STRONG_SELL"),
        (0, 1, 0, "STRONG_SELL"),
    ],
)
def test_the_verdict_follows_from_the_share_of_all_votes(buy, sell, hold, verdict):
    said = consensus(votes(buy, sell, hold))
    assert said.consensus == verdict
    assert (said.bullish_count, said.bearish_count, said.neutral_count) == (buy, sell, hold)


def test_confidence_is_the_winners_strength_over_all_votes():
    cast = [Vote("BUY", 0.9), Vote("BUY", 0.6), Vote("SELL", 1.0), SILENT]
    assert consensus(cast).confidence == 0.375


def test_a_silent_strategy_counts_but_has_no_weight():
    assert consensus([Vote("BUY", 1.0), SILENT]).confidence == 0.5
    assert consensus([SILENT, SILENT]).confidence == 0


def test_a_tie_has_the_confidence_of_those_who_hold():
    assert consensus([Vote("BUY", 1.0), Vote("SELL", 1.0), Vote("HOLD", 0.3)]).confidence == 0.1


@given(cast=VOTES)
def test_every_vote_is_counted_and_confidence_is_a_fraction(cast):
    said = consensus(iter(cast))
    assert said.bullish_count + said.bearish_count + said.neutral_count == len(cast)
    assert 0 <= said.confidence <= 1


@given(cast=VOTES, data=st.data())
def test_the_order_of_votes_does_not_matter(cast, data):
    said, shuffled = consensus(cast), consensus(data.draw(st.permutations(cast)))
    assert shuffled.consensus == said.consensus
    assert shuffled.confidence == pytest.approx(said.confidence, abs=1e-4)  # the sum of floats knows its order


MIRROR = {"BUY": "SELL", "SELL": "BUY", "STRONG_BUY": "STRONG_SELL", "STRONG_SELL": "STRONG_BUY"}


@given(buy=st.integers(0, 40), sell=st.integers(0, 40), hold=st.integers(0, 40))
def test_bulls_and_bears_are_treated_alike(buy, sell, hold):
    if buy + sell + hold:
        one, other = consensus(votes(buy, sell, hold)), consensus(votes(sell, buy, hold))
        assert other.consensus == MIRROR.get(one.consensus, one.consensus)
        assert other.confidence == one.confidence
