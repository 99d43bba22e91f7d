"""Alpaca's market data on loopback: past bars by REST, new ones by a websocket, on a thread of its own.

Its traits are those of `alpaca_market` and `alpaca_stream`. A stub has any number of markets, each under a path of its
own; the first has none. What a test asks of it from outside is done on the stub's thread, one after another.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any, Literal, TypeVar

from quantdeck.domain.candles import Bars
from tests.support.alpaca_market import KEY, SECRET, Market
from tests.support.alpaca_stream import Stream
from tests.support.http_stub import Answer, HttpStub, Request

__all__ = ["KEY", "SECRET", "AlpacaStub", "alpaca"]

T = TypeVar("T")
PATIENCE_S = 20


class AlpacaStub:
    """See the module. `data_url` and `stream_url` are what the settings of these names want."""

    def __init__(self) -> None:
        self.market = Market()
        self.stream = Stream(self.market)
        self._markets: dict[str, Market] = {}
        self._numbers = count(1)
        self._rest = HttpStub(self._answer)
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), name="alpaca-stub", daemon=True)

    @property
    def data_url(self) -> str:
        return self._rest.url

    @property
    def stream_url(self) -> str:
        return self.stream.url

    def environment(self) -> dict[str, str]:
        """By which the program finds it."""
        return {
            "ALPACA_API_KEY": KEY,
            "ALPACA_SECRET_KEY": SECRET,
            "QUANTDECK_ALPACA__DATA_URL": self.data_url,
            "QUANTDECK_ALPACA__STREAM_URL": self.stream_url,
        }

    def new_market(self) -> tuple[str, Market]:
        """An empty market, and its address."""
        name = f"m{next(self._numbers)}"
        self._markets[name] = Market()
        return f"{self._rest.url}/{name}", self._markets[name]

    def market_at(self, url: str) -> Market:
        return self._markets[url.rpartition("/")[2]]

    def start(self) -> AlpacaStub:
        self._thread.start()
        assert self._ready.wait(PATIENCE_S)
        return self

    def stop(self) -> None:
        self.do(self._stopped.set)
        self._thread.join(PATIENCE_S)

    def do(self, work: Callable[[], T]) -> T:
        """Have it done on the stub's thread."""

        async def run() -> T:
            return work()

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result(PATIENCE_S)

    def reveal(
        self, symbol: str, bars: Bars, *, kind: Literal["b", "u"] = "b", streamed: bool = True, asked: bool = True
    ) -> None:
        """Have bars become known: to who asks, and to who listens unless the stream is mute."""

        def work() -> None:
            if asked:
                self.market.put(symbol, bars)
            if streamed:
                self.stream.send_bars(symbol, bars, kind)

        self.do(work)

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stopped = asyncio.Event()
        async with self._rest.serving(), self.stream.serving():
            self._ready.set()
            await self._stopped.wait()

    async def _answer(self, request: Request) -> Answer | None:
        name, _, rest = request.path.removeprefix("/").partition("/")
        if name in self._markets:
            moved = Request(request.method, f"/{rest}", request.query, request.headers, request.body, request.values)
            return self._markets[name].answer(moved)
        return self.market.answer(request)


@contextmanager
def alpaca(**traits: Any) -> Iterator[AlpacaStub]:
    """A stub for one test; traits are its stream's."""
    stub = AlpacaStub()
    for name, value in traits.items():
        assert hasattr(stub.stream, name)
        setattr(stub.stream, name, value)
    stub.start()
    try:
        yield stub
    finally:
        stub.stop()
