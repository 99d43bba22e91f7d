"""market-data-mcp on each store of bars, an empty one, and at whatever instant a test wants."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from quantdeck.domain.candles import Bars
from quantdeck.domain.timeframes import MINUTE, Timeframe
from quantdeck.settings import InfluxDB
from quantdeck.sources.candles import Candles
from tests.servers.conftest import Served
from tests.support import influxdb
from tests.support.desk import NOON

Opened = Callable[..., Awaitable[Served]]
Fill = Callable[..., Awaitable[None]]


@pytest.fixture(params=["embedded", pytest.param("influxdb", marks=pytest.mark.services)])
def store(request: pytest.FixtureRequest) -> Callable[..., dict[str, Any]]:
    """Settings that name one and the same store, whenever they are asked for."""
    if request.param == "embedded":
        return lambda **_: {}
    server = influxdb.available()
    bucket = server.new_bucket()
    return lambda **said: {"influxdb": InfluxDB(url=server.url, bucket=bucket, **said)}


@pytest.fixture
def market_at(serve: Any, store: Callable[..., dict[str, Any]]) -> Opened:
    """The server with the world standing at an instant; `base` is the length of what InfluxDB holds."""

    async def opened(clock: str, base: str = "1m") -> Served:
        served: Served = await serve("market-data-mcp", clock=clock, **store(timeframe=base))
        return served

    return opened


@pytest.fixture
async def market(market_at: Opened) -> Served:
    """The server at noon."""
    return await market_at(NOON.isoformat())


async def fill(served: Served, symbol: str, bars: Bars, base: Timeframe = MINUTE) -> None:
    """Have these bars in the store that it reads."""
    await served.app.runtime.source(Candles).write(symbol, base, bars)


async def for_all(test: Callable[[Callable[[Awaitable[Any]], Any]], None]) -> None:
    """Run a property of hypothesis, which is not asynchronous; it is given what waits for a client here."""
    loop = asyncio.get_running_loop()

    def wait(asked: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(asked, loop).result()

    await asyncio.to_thread(test, wait)
