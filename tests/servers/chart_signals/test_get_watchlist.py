"""get_watchlist, through a client."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from quantdeck.domain.candles import Bars
from quantdeck.domain.crossings import reading
from quantdeck.domain.watchlist import DEFAULT
from tests.servers.chart_signals.conftest import KEYS, closing_at


def prices(seed: int, many: int = 600) -> np.ndarray:
    return 100 * np.exp(np.cumsum(np.random.default_rng(seed).normal(0, 2e-3, many)))


async def test_every_watched_symbol_has_what_get_signals_says_of_it(chart):
    for place, symbol in enumerate(DEFAULT.symbols):
        await chart.fill(symbol, closing_at(prices(place)))
    found = await chart("get_watchlist")
    assert [entry["symbol"] for entry in found["watchlist"]["stocks"]] == list(DEFAULT.stocks)
    assert [entry["symbol"] for entry in found["watchlist"]["crypto"]] == list(DEFAULT.crypto)
    for entry in (*found["watchlist"]["stocks"], *found["watchlist"]["crypto"]):
        alone = await chart("get_signals", symbol=entry["symbol"], timeframe="1min")
        assert entry["price"] == alone["snapshot"]["price"]
        assert entry["rsi"] == alone["snapshot"]["rsi"]
        assert entry["signals"] == [name for name, holds in alone["crossings"].items() if holds]
        assert "note" not in entry
    assert found["market_hours"] == {"stocks": "9:30 AM - 4:00 PM ET (weekdays)", "crypto": "24/7"}
    assert (found["timestamp"], found["source"]) == ("2026-01-15T12:00:00+00:00", "parquet")
    assert "problems" not in found


async def test_the_file_of_the_home_is_read_anew_each_time_with_comments_and_bare_coins(chart, tmp_path):
    await chart.fill("BTC/USD", closing_at(prices(1)))
    home = tmp_path / "home"
    (home / "watchlist.txt").write_text("# mine\nDNA    # a comment\n\nbtc\nLINK\nEUR/USD\n")
    found = await chart("get_watchlist")
    assert [entry["symbol"] for entry in found["watchlist"]["stocks"]] == ["DNA", "LINK"]
    assert [entry["symbol"] for entry in found["watchlist"]["crypto"]] == ["BTC/USD"]
    assert found["problems"] == ["line 6: EUR/USD is neither a stock nor a coin"]
    (home / "watchlist.txt").write_text("")
    assert (await chart("get_watchlist"))["watchlist"] == {"stocks": [], "crypto": []}
    (home / "watchlist.txt").unlink()
    assert len((await chart("get_watchlist"))["watchlist"]["stocks"]) == 20


async def test_what_is_not_ready_says_so_and_hides_no_other(chart, tmp_path):
    await chart.fill("AAPL", closing_at(prices(1)))
    await chart.fill("MSFT", closing_at(prices(2, many=34)))
    await chart.fill("TSLA", closing_at(prices(3)))
    (tmp_path / "home/data/stocks/1min/TSLA_2026-01.parquet").write_bytes(b"torn")
    entries = {entry["symbol"]: entry for entry in (await chart("get_watchlist"))["watchlist"]["stocks"]}
    assert entries["AAPL"]["rsi"] == reading(prices(1)[-500:]).last.rsi
    assert entries["MSFT"] == {
        "symbol": "MSFT", "price": prices(2, many=34)[-1], "rsi": None, "signals": [],
        "note": "insufficient bars (need 35+)",
    }  # fmt: skip
    assert entries["SPY"]["price"] is None
    assert "TSLA_2026-01.parquet is damaged" in entries["TSLA"]["note"]


async def test_a_home_without_bars_says_what_to_set(chart):
    code, message, _ = await chart.refused("get_watchlist")
    assert (code, "ALPACA_API_KEY" in message) == (-32004, True)


async def test_no_entry_has_a_bar_that_closes_later(chart, chart_at):
    bars = closing_at(prices(1, 120), int(chart.served.app.runtime.clock.now().timestamp()) + 60 * 60)
    await chart.fill("BTC/USD", bars[:60])
    before = await chart("get_watchlist")
    await chart.fill("BTC/USD", bars[60:])
    assert await chart("get_watchlist") == before


@pytest.mark.parametrize("arguments", [{"symbol": "AAPL"}, {"x": None}])
async def test_it_takes_no_arguments(chart, arguments):
    assert (await chart.refused("get_watchlist", **arguments))[0] == -32602


class Counting:
    """A store that says how often it was asked for each symbol."""

    source = "counting"

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()

    async def store_of(self, symbol: str, *, as_of: object) -> Counting:
        return self

    async def newest(self, symbol: str, *_: object, **__: object) -> Bars:
        self.asked[symbol] += 1
        return closing_at(prices(1))


async def test_each_symbol_is_read_once(chart):
    store = Counting()
    chart.served.app.runtime.source = lambda kind: store
    await chart("get_watchlist")
    assert store.asked == dict.fromkeys(DEFAULT.symbols, 1)


async def test_what_alpaca_is_asked_for_and_cannot_say_hides_nothing_that_is_stored(chart_at, tmp_path):
    """Where there are keys a symbol without bars is asked of Alpaca, which is down here."""
    (tmp_path / "watchlist.txt").write_text("AAPL\nTSLA\n")
    down = KEYS.model_copy(update={"fill": True, "data_url": "http://127.0.0.1:1"})
    chart = await chart_at(alpaca=down, watchlist=tmp_path / "watchlist.txt")
    code, message, _ = await chart.refused("get_watchlist")
    assert (code, "No connection to Alpaca" in message) == (-32004, True)
    await chart.fill("AAPL", closing_at(np.linspace(100, 101, 60)))
    stored, asked = (await chart("get_watchlist"))["watchlist"]["stocks"]
    assert (stored["price"], "note" in stored) == (101.0, False)
    assert (asked["price"], "No connection to Alpaca" in asked["note"]) == (None, True)
