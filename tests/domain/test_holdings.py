"""What holdings are worth and have earned, by hand."""

from __future__ import annotations

import pytest

from quantdeck.domain.holdings import Holding, worth


@pytest.mark.parametrize("side, price, gained", [("LONG", 60.0, 20.0), ("SHORT", 60.0, -20.0), ("SHORT", 45.0, 10.0)])
def test_a_long_gains_when_the_price_rises_and_a_short_when_it_falls(side, price, gained):
    assert Holding("BTC/USD", side, 2.0, 50.0, price).gained == gained


def test_a_gain_is_what_one_would_work_out_by_hand():
    assert Holding("EUR/USD", "SHORT", 20_000.0, 1.1116, 1.0884).gained == 464.0


def test_without_a_price_nothing_is_known_to_be_gained():
    held = Holding("BTC/USD", "LONG", 2.0, 50.0, None)
    assert (held.gained, held.gained_in("USD")) == (None, None)


def test_what_is_beyond_any_number_is_not_known():
    assert Holding("BTC/USD", "LONG", 1e200, 1.0, 1e200).gained is None


@pytest.mark.parametrize(
    "symbol, currency, unit",
    [
        ("BTC/USD", "USD", 50.0),
        ("BTC/USDT", "USD", 50.0),  # at par
        ("BTC/USD", "USDC", 50.0),
        ("BTC/EUR", "USD", None),
        ("ETH/BTC", "USD", None),
        ("USD/JPY", "USD", 1.0),  # the account's own currency is the base
        ("EUR/GBP", "EUR", 1.0),
    ],
)
def test_a_unit_is_worth_its_price_only_in_the_currency_it_is_quoted_in(symbol, currency, unit):
    assert worth(symbol, 50.0, currency) == unit


def test_a_gain_in_yen_is_told_in_dollars_at_the_last_price():
    held = Holding("USD/JPY", "LONG", 1000.0, 150.0, 160.0)
    assert (held.gained, held.gained_in("USD")) == (10_000.0, 62.5)
    assert held.gained_in("EUR") is None
