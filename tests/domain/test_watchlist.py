"""The watchlist and its file."""

from __future__ import annotations

import json
from pathlib import Path

from quantdeck.domain.watchlist import DEFAULT, Watchlist, read_watchlist


def test_the_default_is_the_specs():
    spec = json.loads(Path("docs/spec/chart_signals.json").read_text())["watchlist"]
    assert {"stocks": list(DEFAULT.stocks), "crypto": list(DEFAULT.crypto)} == spec
    assert len(DEFAULT.symbols) == 22


def test_a_file_has_a_symbol_per_line_with_comments_anywhere():
    text = "\ufeff# mine\r\n\r\nspy\n  AAPL   # the fruit\nbrk-b#class\nBTC\neth_usd\nSOLUSD\nSPY\n   # the end"
    assert read_watchlist(text).watchlist == Watchlist(("SPY", "AAPL", "BRK.B"), ("BTC/USD", "ETH/USD", "SOL/USD"))


def test_a_name_that_a_stock_has_too_is_the_stock_unless_it_has_a_slash():
    assert read_watchlist("LINK\nUNI/USD").watchlist == Watchlist(("LINK",), ("UNI/USD",))


def test_a_line_that_names_nothing_is_told_by_its_number_and_hides_no_other():
    read = read_watchlist("SPY\nnot a symbol\n../../etc\nEUR/USD\nBTC")
    assert read.watchlist == Watchlist(("SPY",), ("BTC/USD",))
    assert [problem.partition(":")[0] for problem in read.problems] == ["line 2", "line 3", "line 4"]
    assert "neither a stock nor a coin" in read.problems[2]


def test_an_empty_file_watches_nothing():
    assert read_watchlist("# nothing\n") == read_watchlist("")
    assert read_watchlist("").watchlist == Watchlist()
