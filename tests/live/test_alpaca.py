"""Alpaca itself: its past, its stream, and whether the stub's traits are its own.

QUANTDECK_ALPACA__… counts here too. Nothing but market data is asked, on a connection of a second.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest

from quantdeck.collectors.alpaca.stream import Connection, Lost, Refused
from quantdeck.connections.alpaca import keys
from quantdeck.core.clock import Clock
from quantdeck.core.errors import Denied
from quantdeck.domain.candles import resampled
from quantdeck.domain.timeframes import DAY, MINUTE, TIMEFRAMES
from quantdeck.settings import Settings
from quantdeck.sources.candles.alpaca import AlpacaCandles
from tests.support.bars import FAR, rows

NEEDS = ("ALPACA_API_KEY", "ALPACA_SECRET_KEY")

MORNING = datetime(2025, 6, 3, 14, 0, tzinfo=UTC)
"""A Tuesday in New York, half an hour after the opening."""
BETWEEN = {"AAPL": (190, 215), "BTC/USD": (95_000, 115_000)}
"""What each traded between that week, with room."""


@pytest.fixture
async def candles() -> AsyncIterator[AlpacaCandles]:
    candles = AlpacaCandles(Settings.read().alpaca, Clock(), lambda: BETWEEN)
    yield candles
    await candles.close()


@pytest.mark.parametrize("symbol", BETWEEN)
async def test_minutes_of_a_known_day_are_there_and_sound(candles, symbol):
    bars = await candles.between(symbol, MINUTE, MORNING, MORNING + timedelta(hours=3), as_of=FAR)
    assert 60 < len(bars) <= 180
    low, high = BETWEEN[symbol]
    assert low < bars.low.min() <= bars.high.max() < high
    newest = await candles.newest(symbol, MINUTE, 50, as_of=Clock().now())
    assert len(newest) == 50


@pytest.mark.parametrize("symbol", BETWEEN)
@pytest.mark.parametrize("name", ["5m", "1h", "4h", "1d"])
async def test_its_longer_bars_are_those_of_its_minutes(candles, symbol, name):
    """Prices to the digit; of volumes it may count trades that make no price."""
    begin = MORNING.replace(hour=0)
    minutes = await candles.between(symbol, MINUTE, begin, begin + timedelta(days=1), as_of=FAR)
    theirs = await candles.between(symbol, TIMEFRAMES[name], begin, begin + timedelta(days=1), as_of=FAR)
    ours = resampled(minutes, TIMEFRAMES[name])
    assert [row[:5] for row in rows(theirs)] == [row[:5] for row in rows(ours)]
    assert theirs.volume.tolist() == pytest.approx(ours.volume.tolist(), rel=0.05)
    assert len(await candles.newest(symbol, DAY, 3, as_of=FAR)) == 3


async def test_who_it_does_not_know_is_absent_and_a_wrong_key_is_refused(candles):
    assert await candles.series("ZZZZZ", as_of=FAR) is None
    wrong = Settings.read({**os.environ, "ALPACA_SECRET_KEY": "wrong", "QUANTDECK_ALPACA__SECRET_KEY": ""}).alpaca
    other = AlpacaCandles(wrong, Clock(), tuple)
    with pytest.raises(Denied, match="refused the key"):
        await other.newest("AAPL", MINUTE, 1, as_of=FAR)
    await other.close()


@pytest.mark.parametrize("coins", [False, True], ids=["stocks", "coins"])
async def test_the_stream_lets_the_key_in_and_takes_a_subscription(coins):
    settings = Settings.read().alpaca
    url = settings.stream_url + ("/v1beta3/crypto/us" if coins else f"/v2/{settings.feed}")
    connection = Connection(url, *keys(settings), lambda bar: None, coins=coins)
    await connection.open()
    try:
        listening = asyncio.create_task(connection.listen())
        assert await connection.subscribe(["BTC/USD"] if coins else ["AAPL"]) == ()
        listening.cancel()
        with suppress(asyncio.CancelledError, Lost):
            await listening
    finally:
        await connection.close()
    refused = Connection(url, keys(settings)[0], "wrong", lambda bar: None, coins=coins)
    with pytest.raises(Refused) as why:
        await refused.open()
    await refused.close()
    assert why.value.code == 402
