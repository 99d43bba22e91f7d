"""What orders come to: the invariants of the spec's research, as properties."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from quantdeck.domain.candles import Bars
from quantdeck.domain.execution import (
    BPS,
    Fill,
    Liquidity,
    Market,
    NoLiquidity,
    Order,
    fitted,
    outcome,
    regime,
    widened,
)
from tests.support.bars import every

LIQUIDITY = Liquidity(impact=1.0, permanent=0.3, most=0.1)
CALM = Market(mid=100.0, spread_bps=2.0, daily_deviation=0.01, daily_volume=1e6)

markets = st.builds(
    Market,
    mid=st.floats(1e-3, 1e6),
    spread_bps=st.floats(0.01, 500),
    daily_deviation=st.floats(0, 0.5),
    daily_volume=st.floats(1, 1e12),
)
sides = st.sampled_from(["buy", "sell"])
shares = st.floats(1e-9, 0.1)
moves = st.floats(-0.3, 0.3)


def sign(side: str) -> int:
    return 1 if side == "buy" else -1


@settings(max_examples=200)
@given(markets, sides, shares)
def test_a_market_order_pays_the_spread_and_its_impact(market, side, share):
    found = outcome(Order(side, share * market.daily_volume), market, LIQUIDITY)
    assert market.bid < market.mid < market.ask
    assert (market.ask - market.bid) / market.mid * BPS == pytest.approx(market.spread_bps, rel=1e-6, abs=1e-6)
    assert found.slippage_bps >= 0
    assert found.price == pytest.approx(market.mid * (1 + sign(side) * found.slippage_bps / BPS), rel=1e-12)
    assert found.total_bps == found.permanent_bps + found.temporary_bps
    assert found.price >= market.ask if side == "buy" else found.price <= market.bid
    assert found.probability >= 0.9
    assert 0 <= found.partial_risk <= 1
    assert 0 <= found.liquidity_score <= 1
    assert found.fill_ms > 0


@settings(max_examples=100)
@given(markets, sides, st.lists(shares, min_size=2, max_size=6, unique=True))
def test_nothing_gets_better_for_being_larger(market, side, asked):
    found = [outcome(Order(side, share * market.daily_volume), market, LIQUIDITY) for share in sorted(asked)]
    for less, more in pairwise(found):
        assert more.slippage_bps >= less.slippage_bps
        assert more.total_bps >= less.total_bps
        assert sign(side) * (more.price - less.price) >= 0
        assert more.probability <= less.probability
        assert more.partial_risk >= less.partial_risk
        assert more.fill_ms >= less.fill_ms
        assert more.liquidity_score <= less.liquidity_score


@settings(max_examples=200)
@given(markets, sides, shares, moves)
def test_a_limit_order_is_never_filled_beyond_its_limit(market, side, share, move):
    limit = market.mid * (1 + move)
    found = outcome(Order(side, share * market.daily_volume, "limit", limit), market, LIQUIDITY)
    assert sign(side) * (found.price - limit) <= 1e-12 * limit
    assert found.slippage_bps >= 0
    assert 0 <= found.probability <= 1
    assert 0 <= found.partial_risk <= 1


@settings(max_examples=100)
@given(markets, sides, st.sampled_from(["limit", "stop"]), st.lists(st.floats(0, 0.3), min_size=2, max_size=5))
def test_the_farther_its_price_the_less_likely_is_an_order_filled(market, side, kind, away):
    towards = -sign(side) if kind == "limit" else sign(side)
    found = [
        outcome(Order(side, market.daily_volume / 1e4, kind, market.mid * (1 + towards * move)), market, LIQUIDITY)
        for move in sorted(away)
    ]
    for near, far in pairwise(found):
        assert far.probability <= near.probability


def test_a_stop_is_a_market_order_from_its_trigger_on():
    plain = outcome(Order("buy", 1000.0), CALM, LIQUIDITY)
    far = outcome(Order("buy", 1000.0, "stop", 103.0), CALM, LIQUIDITY)
    assert far.price == pytest.approx(103.0 * (1 + plain.slippage_bps / BPS))
    assert far.slippage_bps == pytest.approx((far.price / 100 - 1) * BPS)
    reached = outcome(Order("buy", 1000.0, "stop", 99.0), CALM, LIQUIDITY)
    assert reached == plain
    assert outcome(Order("sell", 1000.0, "stop", 97.0), CALM, LIQUIDITY).price < 97


def test_the_impact_is_that_of_the_square_root():
    one, four = (outcome(Order("buy", size), CALM, LIQUIDITY) for size in (10_000.0, 40_000.0))
    assert one.temporary_bps == pytest.approx(100 * 0.1)
    assert four.temporary_bps == pytest.approx(2 * one.temporary_bps)
    assert four.permanent_bps == pytest.approx(4 * one.permanent_bps)


@pytest.mark.parametrize("size", [100_000.001, 1e9, 1.7e308])
def test_beyond_its_share_of_a_day_there_is_no_liquidity(size):
    with pytest.raises(NoLiquidity) as refused:
        outcome(Order("sell", size), CALM, LIQUIDITY)
    assert refused.value.most == pytest.approx(100_000)
    assert outcome(Order("sell", 100_000.0), CALM, LIQUIDITY).price < CALM.bid


def test_without_volume_and_at_a_cost_of_all_there_is_none_either():
    for market in (replace(CALM, daily_volume=0.0), replace(CALM, daily_deviation=100.0)):
        with pytest.raises(NoLiquidity):
            outcome(Order("sell", 50_000.0), market, LIQUIDITY)


def closes(deviations: list[float]) -> Bars:
    random_ = random.Random(7)
    price, found = 100.0, []
    for deviation in deviations:
        price *= 1 + deviation * random_.choice((-1, 1))
        found.append(price)
    return Bars.of(every(3600, 0, len(found)), found, found, found, found, found)


@pytest.mark.parametrize(
    "last_day, expected", [(0.0001, "low"), (0.00101, "normal"), (0.0018, "high"), (0.05, "extreme")]
)
def test_a_regime_is_the_rank_of_the_newest_deviation(last_day, expected):
    before = [0.0005 + 0.00001 * (number % 150) for number in range(600)]
    assert regime(closes([*before, *[last_day] * 24])) == expected


def test_a_regime_of_too_few_bars_and_of_a_flat_market_is_normal():
    assert regime(closes([0.01] * 40)) == "normal"
    assert regime(closes([0.0] * 200)) == "normal"


def test_a_spread_is_wider_where_moves_are():
    assert [widened(2.0, name) for name in ("low", "normal", "high", "extreme")] == sorted([1.6, 2.0, 3.2, 6.0])


@settings(max_examples=50)
@given(st.floats(0, 5), sides, st.integers(20, 60))
def test_the_impact_that_fills_had_is_found_again(impact, side, many):
    sizes = [1000.0 * (number + 1) for number in range(many)]
    found = [outcome(Order(side, size), CALM, Liquidity(impact, 0.0, 0.1)) for size in sizes]
    fills = [Fill(side, size, one.price, CALM.mid) for size, one in zip(sizes, found, strict=True)]
    learnt = fitted(fills, CALM)
    assume(learnt is not None)
    assert learnt == pytest.approx(impact, abs=1e-6)


def test_too_few_fills_teach_nothing_and_wild_ones_not_everything():
    wild = Fill("buy", 1000.0, 1e9, 100.0)
    assert fitted([wild] * 19, CALM) is None
    assert fitted([wild] * 20, CALM) == 10.0
    assert fitted([replace(wild, price=1e-9)] * 20, CALM) == 0.0
