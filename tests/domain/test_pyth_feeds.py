"""Which feed a symbol means, and which feeds a query finds."""

from __future__ import annotations

import pytest

from quantdeck.domain.pyth_feeds import Ambiguous, Catalog, Inactive, Unresolved, read_feed
from tests.support.pyth_stub import FEEDS

CATALOG = Catalog(feed for feed in map(read_feed, FEEDS) if feed)


@pytest.mark.parametrize(
    "text, symbol",
    [
        ("Crypto.BTC/USD", "Crypto.BTC/USD"),
        ("crypto.btc/usd", "Crypto.BTC/USD"),
        (" BTC/USD ", "Crypto.BTC/USD"),
        ("btc-usd", "Crypto.BTC/USD"),
        ("BTC_USD", "Crypto.BTC/USD"),
        ("BTCUSD", "Crypto.BTC/USD"),
        ("EUR/USD", "FX.EUR/USD"),  # spot before the index
        ("AAPL/USD", "Equity.US.AAPL/USD"),
        ("US.AAPL/USD", "Equity.US.AAPL/USD"),
        ("AAPL", "Equity.US.AAPL/USD"),
        ("3MSZ6", "InterestRate.3MSZ6"),
        ("Commodities.WTI/USD", "Commodities.WTI/USD"),  # who names it exactly is given it
        ("ODD/USD", "Crypto.ODD/USD"),  # in a state that nobody knows yet
    ],
)
def test_a_symbol_means_one_feed(text, symbol):
    assert CATALOG.resolve(text).symbol == symbol


def test_a_whole_symbol_in_other_letters_comes_before_what_ends_in_it():
    rows = [{"pyth_lazer_id": 1, "symbol": "KLP.BTC/USD"}, {"pyth_lazer_id": 2, "symbol": "BTC/USD"}]
    both = Catalog(found for row in rows if (found := read_feed(row)) is not None)
    assert [both.resolve(text).id for text in ("BTC/USD", "btc/usd", "klp.btc/usd")] == [2, 2, 1]


@pytest.mark.parametrize("text, kind", [("NOPE/USD", Unresolved), ("", Unresolved), ("WTI/USD", Inactive),
                                        ("DUO/USD", Ambiguous), ("x" * 5000, Unresolved)])  # fmt: skip
def test_none_and_several_are_said_and_never_guessed(text, kind):
    with pytest.raises(kind) as refused:
        CATALOG.resolve(text)
    assert type(refused.value) is kind


@pytest.mark.parametrize(
    "rivals",
    [
        [("stable", "spot"), ("beta", "spot")],
        [("stable", "index"), ("beta", "spot")],
        [("beta", "index"), ("coming_soon", "spot")],
        [("stable", "spot"), ("stable", "perp"), ("inactive", "spot")],
        [("coming_soon", ""), ("expired", "spot"), ("inactive", "spot")],
    ],
)
def test_of_several_the_one_that_is_further_along_is_meant_and_then_the_spot(rivals):
    for order in (rivals, rivals[::-1]):
        rows = [
            {"pyth_lazer_id": number, "symbol": f"House{number}.TWIN/USD", "state": state, "instrument_type": kind}
            for number, (state, kind) in enumerate(order, 1)
        ]
        feed = Catalog(found for row in rows if (found := read_feed(row)) is not None).resolve("TWIN/USD")
        assert (feed.state, feed.instrument_type) == rivals[0]


def test_several_are_named():
    with pytest.raises(Ambiguous) as refused:
        CATALOG.resolve("duo/usd")
    assert [feed.symbol for feed in refused.value.feeds] == ["Crypto.DUO/USD", "Crypto.Other.DUO/USD"]


@pytest.mark.parametrize(
    "query, asset_type, found",
    [
        ("gold", "", [346]),
        ("BTC", "", [1, 112]),
        ("btc usd", "crypto", [1]),
        ("AAPL", "", [922, 1792]),  # the one it names comes first
        ("eur/usd", "", [327, 3183]),
        ("", "metal", [346]),
        ("  ", "METAL", [346]),
        ("", "perpetual-swap", [4004]),
        ("nothing like it", "", []),
    ],
)
def test_a_query_finds_feeds_by_all_its_words(query, asset_type, found):
    assert [feed.id for feed in CATALOG.matching(query, asset_type)] == found


def test_without_a_query_live_feeds_come_first_and_all_come():
    feeds = CATALOG.matching("", "")
    assert len(feeds) == len(FEEDS)
    assert [feed.state == "stable" for feed in feeds] == [True] * (len(FEEDS) - 3) + [False] * 3


@pytest.mark.parametrize(
    "row",
    [None, 7, [], {}, {"pyth_lazer_id": "1", "symbol": "X"}, {"pyth_lazer_id": True, "symbol": "X"},
     {"pyth_lazer_id": 1, "symbol": None}, {"pyth_lazer_id": -1, "symbol": "X"},
     {"pyth_lazer_id": 2**32, "symbol": "X"}],
)  # fmt: skip
def test_a_row_that_nobody_could_ask_for_is_none(row):
    assert read_feed(row) is None


def test_a_row_of_nothing_but_the_key_is_a_feed():
    feed = read_feed({"pyth_lazer_id": 1, "symbol": "X", "exponent": "y", "market_sessions": {"a": None, "b": 3}})
    assert feed is not None
    assert (feed.id, feed.exponent, feed.state, feed.sessions) == (1, None, "", {})
