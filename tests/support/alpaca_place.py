"""A market of the stub of Alpaca, for the suite of the port `candles`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from quantdeck.core.clock import Clock
from quantdeck.domain.candles import Bars
from quantdeck.domain.timeframes import MINUTE, Timeframe
from quantdeck.settings import Alpaca
from quantdeck.sources.candles import Candles
from quantdeck.sources.candles.alpaca import AlpacaCandles
from tests.support.alpaca_stub import KEY, SECRET, AlpacaStub

__all__ = ["AlpacaPlace", "new_market"]


@dataclass(frozen=True)
class AlpacaPlace:
    """A market of the stub, as it looks from the year 2200 to the whole of the past."""

    url: str

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Candles]:
        keys = {"api_key": KEY, "secret_key": SECRET}
        group = Alpaca.model_validate({**keys, "data_url": self.url, "lookback_days": 100_000})
        clock = Clock.parse("2199-01-01T00:00:00Z")
        candles = AlpacaCandles(group, clock, lambda: ("BTC/USD", "LATER/USD"), answer_s=0)
        try:
            yield candles
        finally:
            await candles.close()

    async def fill(self, symbol: str, base: Timeframe, bars: Bars) -> None:
        if base != MINUTE:
            raise ValueError("Alpaca's bars are of a minute")
        stub = _stub()
        stub.do(lambda: stub.market_at(self.url).put(symbol, bars))


@cache
def _stub() -> AlpacaStub:
    return AlpacaStub().start()


async def new_market(folder: Path) -> AlpacaPlace:
    del folder
    url, _ = _stub().new_market()
    return AlpacaPlace(url)
