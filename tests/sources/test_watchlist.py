"""Which watchlist an installation has."""

from __future__ import annotations

from quantdeck.domain.watchlist import DEFAULT, Watchlist
from quantdeck.settings import Settings
from quantdeck.sources.watchlist import watched


def test_it_is_the_specs_until_a_file_says_otherwise(tmp_path):
    assert watched(Settings(home=tmp_path)).watchlist == DEFAULT
    (tmp_path / "watchlist.txt").write_text("TSLA # only\n")
    assert watched(Settings(home=tmp_path)).watchlist == Watchlist(("TSLA",))
    named = tmp_path / "named.txt"
    named.write_text("BTC\n")
    assert watched(Settings(home=tmp_path, watchlist=named)).watchlist == Watchlist((), ("BTC/USD",))


def test_a_named_file_that_is_missing_or_no_text_watches_nothing_and_says_so(tmp_path):
    missing = watched(Settings(home=tmp_path, watchlist=tmp_path / "missing.txt"))
    assert (missing.watchlist, "missing.txt cannot be read" in missing.problems[0]) == (Watchlist(), True)
    (tmp_path / "watchlist.txt").write_bytes(b"\xff\xfe\x00")
    assert "no text in UTF-8" in watched(Settings(home=tmp_path)).problems[0]
