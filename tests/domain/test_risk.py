"""What a trade is held against, and the largest that passes."""

from __future__ import annotations

from math import fsum, inf, nextafter

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from quantdeck.domain.holdings import Holding
from quantdeck.domain.risk import Account, Limits, Trade, assess, opens

PLENTY = 1e9


def account(*holdings: Holding, equity: float = 100_000.0, available: float = PLENTY, **said: float) -> Account:
    about = {"peak": equity, "lost_today": 0.0, **said}
    return Account("USD", equity, available, holdings=holdings, **about)


def long(symbol: str = "BTC/USD", size: float = 2.0, price: float = 500.0) -> Holding:
    return Holding(symbol, "LONG", size, price, price)


def short(symbol: str = "BTC/USD", size: float = 2.0, price: float = 500.0) -> Holding:
    return Holding(symbol, "SHORT", size, price, price)


def buy(size: float, unit: float = 500.0, symbol: str = "BTC/USD") -> Trade:
    return Trade(symbol, "BUY", size, unit)


def sell(size: float, unit: float = 500.0, symbol: str = "BTC/USD") -> Trade:
    return Trade(symbol, "SELL", size, unit)


def broken(trade: Trade, of: Account, limits: Limits) -> list[str]:
    return [check.rule for check in assess(trade, of, limits).breaches]


@pytest.mark.parametrize(
    "limits, of, largest",
    [
        (Limits(max_position_size=5000), account(), 10.0),
        (Limits(max_position_size=5000), account(long()), 8.0),
        (Limits(max_position_size=5000), account(long("ETH/USD")), 10.0),
        (Limits(max_position_size=0), account(), 0.0),
        (Limits(max_position_pct=0.1), account(), 20.0),
        (Limits(max_position_pct=0.1), account(equity=-5.0), 0.0),
        (Limits(max_exposure_pct=0.5), account(), 100.0),
        (Limits(max_exposure_pct=0.5), account(long(), long("ETH/USD", 20.0)), 78.0),
        (Limits(max_exposure_pct=0.5), account(short("ETH/USD", 20.0)), 80.0),
        (Limits(max_exposure_pct=0.5), account(long("ETH/USD", 900.0)), 0.0),
        (Limits(), account(available=250.0), 0.5),
        (Limits(), account(available=-1.0), 0.0),
        (Limits(max_position_size=5000, max_position_pct=0.02, max_exposure_pct=0.01), account(), 2.0),
    ],
    ids=str,
)
def test_each_limit_permits_so_much_and_no_more(limits, of, largest):
    found = assess(buy(1e6), of, limits)
    assert found.max_size == largest
    assert found.breaches
    if largest:
        assert not assess(buy(found.max_size), of, limits).breaches


@pytest.mark.parametrize(
    "limits, of, rule",
    [
        (Limits(max_daily_loss=100), account(lost_today=100.0), "max_daily_loss"),
        (Limits(max_daily_loss=0), account(), "max_daily_loss"),
        (Limits(max_daily_loss_pct=0.05), account(equity=95.0, lost_today=5.0), "max_daily_loss_pct"),
        (Limits(max_drawdown_pct=0.1), account(equity=90.0, peak=100.0), "max_drawdown_pct"),
        (Limits(max_open_positions=1), account(long("ETH/USD")), "max_open_positions"),
        (Limits(max_open_positions=0), account(), "max_open_positions"),
    ],
    ids=str,
)
def test_a_limit_that_is_reached_lets_nothing_more_be_opened(limits, of, rule):
    found = assess(buy(1e-9), of, limits)
    assert ([check.rule for check in found.breaches], found.max_size, found.risk_score) == ([rule], 0.0, 1.0)


@pytest.mark.parametrize(
    "limits, of",
    [
        (Limits(max_daily_loss=100), account(lost_today=99.0)),
        (Limits(max_daily_loss=100), account(lost_today=-500.0)),
        (Limits(max_daily_loss_pct=0.05), account(equity=96.0, lost_today=4.0)),
        (Limits(max_drawdown_pct=0.1), account(equity=91.0, peak=100.0)),
        (Limits(max_drawdown_pct=0.1), account(equity=110.0, peak=100.0)),
        (Limits(max_open_positions=1), account(long())),  # more of what is held
        (Limits(max_open_positions=1), account(long(), long(), long())),  # one holding in three lots
        (Limits(max_open_positions=1), account(long(), long("ETH/USD"))),  # too many already, none added
    ],
    ids=str,
)
def test_short_of_it_is_within_it(limits, of):
    assert not broken(buy(0.001), of, limits)


def test_every_broken_rule_is_named_at_once():
    limits = Limits(10, 0.001, 0.001, 1, 1, 0.001, 0.001)
    of = account(long("ETH/USD"), available=1.0, lost_today=5000.0, peak=200_000.0)
    assert broken(buy(2.0), of, limits) == [
        "max_open_positions", "max_daily_loss", "max_daily_loss_pct", "max_drawdown_pct", "max_position_size",
        "max_position_pct", "max_exposure_pct", "balance",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "size, unit, most",
    [(1.1, 3000.0, 3300.0), (0.2, 50_000.0, 10_000.0), (0.07, 100.0, 7.0), (3.0, 0.1, 0.3), (1e-8, 1e8, 1.0)],
)
def test_numbers_count_as_they_are_written(size, unit, most):
    found = assess(buy(size, unit), account(), Limits(max_position_size=most))
    assert (found.breaches, found.max_size) == ((), size)
    whole = account(long(size=0.1), long(size=0.2), equity=100.0)
    assert assess(sell(0.3), whole, Limits()).max_size == 0.3
    assert assess(buy(0.4, 10.0), whole, Limits(max_position_pct=0.07)).max_size == 0.4


def test_what_has_no_price_is_worth_what_it_cost():
    of = account(Holding("ETH/USD", "LONG", 2.0, 500.0, None))
    assert assess(buy(1.0), of, Limits(max_exposure_pct=0.05)).max_size == 8.0


def test_a_limit_that_is_used_up_has_no_room_for_what_is_too_little_to_show():
    of, within = account(long(size=2.0)), Limits(max_position_size=1000)
    assert assess(buy(1e-300), of, within).max_size == 0
    assert broken(buy(1e-300), of, within) == ["max_position_size"]


def test_shorts_are_opened_only_where_they_are_allowed():
    refused = assess(sell(3.0), account(long()), Limits())
    assert [check.rule for check in refused.breaches] == ["allow_short"]
    assert "only 2 of it is held" in refused.breaches[0].said
    assert refused.max_size == 2.0
    allowed = assess(sell(3.0), account(long()), Limits(max_position_size=1000, allow_short=True))
    assert (allowed.breaches, allowed.opens, allowed.max_size) == ((), True, 4.0)


def test_a_short_must_be_covered_as_a_long_is_paid_for():
    found = assess(sell(3.0), account(available=1000.0), Limits(allow_short=True))
    assert ([check.rule for check in found.breaches], found.max_size) == (["balance"], 2.0)


def test_turning_a_short_into_a_long_counts_only_what_it_opens():
    of = account(short(size=2.0), available=500.0)
    found = assess(buy(3.0), of, Limits(max_position_size=500, max_open_positions=1))
    assert (found.breaches, found.opens, found.max_size, found.risk_score) == ((), True, 3.0, 1.0)


def test_what_only_closes_passes_whatever_the_limits_are():
    nothing = Limits(0, 0, 0, 0, 0, 0, 0)
    of = account(long(), equity=-1.0, available=-1.0, lost_today=50.0, peak=10.0)
    for size in (0.5, 2.0):
        found = assess(sell(size), of, nothing)
        assert (found.breaches, found.max_size, found.risk_score) == ((), 2.0, 0.0)


def test_what_only_closes_needs_no_price_and_what_opens_does():
    unpriced = Trade("BTC/USD", "SELL", 2.0, None)
    assert assess(unpriced, account(long()), Limits()).max_size == 2.0
    with pytest.raises(ValueError, match="price"):
        assess(Trade("BTC/USD", "BUY", 2.0, None), account(long()), Limits())


@pytest.mark.parametrize("order", [(0.1, 0.2, 0.3), (0.3, 0.2, 0.1), (0.7, 0.1, 0.3)])
def test_lots_that_a_caller_added_up_are_all_of_what_is_held(order):
    lots = account(*(long(size=size) for size in order))
    for size in (sum(order), sum(reversed(order)), fsum(order)):
        found = assess(sell(size), lots, Limits())
        assert (found.breaches, found.opens) == ((), False)
        assert not assess(sell(found.max_size), lots, Limits()).breaches
    assert broken(sell(sum(order) + 1e-9), lots, Limits()) == ["allow_short"]


def test_an_exposure_that_cannot_be_told_is_no_exposure_of_nothing():
    of = account(long("ETH/BTC"))
    assert "cannot be told" in assess(buy(1.0), of, Limits(max_exposure_pct=10)).breaches[0].said
    assert not broken(buy(1.0), of, Limits(max_position_pct=10))


def test_the_score_is_the_share_of_the_tightest_limit():
    found = assess(buy(1.0), account(available=10_000.0), Limits(max_position_size=2000, max_exposure_pct=0.5))
    assert found.risk_score == 0.25
    assert found.tightest is not None
    assert found.tightest.rule == "max_position_size"


# In floats, for any account.

amounts = st.floats(0, 1e7)
sizes = st.floats(min_value=5e-324, max_value=1e308)
ordinary = st.floats(1e-6, 1e6)
symbols = st.sampled_from(["BTC/USD", "ETH/USD", "EUR/USD", "USD/JPY", "ETH/BTC"])
holdings = st.builds(Holding, symbols, st.sampled_from(["LONG", "SHORT"]), ordinary, ordinary, st.none() | ordinary)
accounts = st.builds(
    Account,
    currency=st.just("USD"),
    equity=st.floats(-1e4, 1e7),
    available=st.floats(-1e4, 1e7),
    peak=amounts,
    lost_today=st.floats(-1e5, 1e5),
    holdings=st.lists(holdings, max_size=5).map(tuple),
)
maybe = st.none() | st.floats(0, 2)
limits = st.builds(
    Limits,
    max_position_size=st.none() | amounts,
    max_position_pct=maybe,
    max_exposure_pct=maybe,
    max_open_positions=st.none() | st.integers(0, 6),
    max_daily_loss=st.none() | amounts,
    max_daily_loss_pct=maybe,
    max_drawdown_pct=maybe,
    allow_short=st.booleans(),
)
trades = st.builds(Trade, symbols, st.sampled_from(["BUY", "SELL"]), sizes | ordinary, sizes | ordinary)


def sized(trade: Trade, size: float) -> Trade:
    return Trade(trade.symbol, trade.side, size, trade.unit)


@given(trades, accounts, limits)
def test_the_largest_size_passes_and_so_does_any_below_it(trade, of, within):
    largest = assess(trade, of, within).max_size
    assert 0 <= largest < inf
    assume(largest > 0)
    for size in (largest, nextafter(largest, 0), largest / 3):
        if size:
            again = assess(sized(trade, size), of, within)
            assert (again.breaches, again.max_size) == ((), largest)


@given(trades, accounts, limits)
def test_nothing_above_the_largest_size_passes(trade, of, within):
    largest = assess(trade, of, within).max_size
    above = nextafter(largest, inf)
    assume(above < inf)
    if not opens(sized(trade, above), of):  # all that is held, and its last digit
        above = largest * (1 + 1e-11)
    assert assess(sized(trade, above), of, within).breaches


@given(trades, accounts, limits)
def test_a_trade_is_valid_just_if_it_is_no_larger_than_the_largest(trade, of, within):
    found = assess(trade, of, within)
    assert (not found.breaches) == (trade.size <= found.max_size or not found.opens)


@given(trades, accounts, limits)
def test_the_score_is_a_share_one_where_a_rule_is_broken_and_none_where_it_only_closes(trade, of, within):
    found = assess(trade, of, within)
    assert 0 <= found.risk_score <= 1
    if found.breaches:
        assert found.risk_score == 1
    if not found.opens:
        assert (found.risk_score, found.breaches) == (0, ())


@given(accounts, limits, st.sampled_from(["BUY", "SELL"]), st.floats(1e-3, 1e3))
def test_less_of_the_same_is_never_riskier(of, within, side, size):
    more, less = (assess(Trade("BTC/USD", side, part, 7.0), of, within) for part in (size, size / 2))
    assert less.risk_score <= more.risk_score
