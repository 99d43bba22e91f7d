"""Every store of bars that the port's suite runs on. Another adapter joins by an entry in KINDS."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import pytest

from quantdeck.connections.databases import Databases
from quantdeck.domain.candles import Bars
from quantdeck.domain.timeframes import Timeframe
from quantdeck.settings import InfluxDB, Settings
from quantdeck.sources.candles import Candles, embedded, influxdb, parquet
from tests.support import influxdb as influx_server
from tests.support.alpaca_place import new_market

__all__ = ["FEATURES", "KINDS", "EmbeddedPlace", "Kind", "ParquetPlace", "Place"]

FEATURES = frozenset({"writing", "any base", "exact values", "any symbol", "forgetting", "whole writes", "snapshots"})
"""What tests rely on beyond reading, and a kind may say that it lacks."""


class Place(Protocol):
    """Where bars are. It can be sent to another process and opened there as well."""

    def open(self) -> Any:
        """An async context manager that gives a `Candles` on what is there."""

    async def fill(self, symbol: str, base: Timeframe, bars: Bars) -> None:
        """Have these bars there; by a write, where the adapter can write."""


@dataclass(frozen=True)
class EmbeddedPlace:
    """A home with a market.db."""

    home: Path

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Candles]:
        settings = Settings(home=self.home)
        databases = Databases(settings)
        async with AsyncExitStack() as closing:
            closing.push_async_callback(databases.close)
            candles = embedded.connect("", settings, databases)
            closing.push_async_callback(candles.close)
            yield candles

    async def fill(self, symbol: str, base: Timeframe, bars: Bars) -> None:
        async with self.open() as candles:
            await candles.write(symbol, base, bars)


async def _embedded(folder: Path) -> EmbeddedPlace:
    databases = Databases(Settings(home=folder))
    await databases.make_market()
    await databases.close()
    return EmbeddedPlace(folder)


@dataclass(frozen=True)
class InfluxPlace:
    """A bucket of the real server, as it looks from the year 2200 to the whole of the past."""

    url: str
    bucket: str

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Candles]:
        influx = InfluxDB(url=self.url, bucket=self.bucket, lookback_days=100_000)
        settings = Settings(clock="2199-01-01T00:00:00Z", influxdb=influx)
        candles = influxdb.connect("influxdb:", settings, Databases(settings))
        try:
            yield candles
        finally:
            await candles.close()

    async def fill(self, symbol: str, base: Timeframe, bars: Bars) -> None:
        async with self.open() as candles:
            await candles.write(symbol, base, bars)


async def _influxdb(folder: Path) -> InfluxPlace:
    del folder
    server = influx_server.available()
    return InfluxPlace(server.url, server.new_bucket())


@dataclass(frozen=True)
class ParquetPlace:
    """A home with a folder of Parquet files."""

    home: Path

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Candles]:
        settings = Settings(home=self.home)
        candles = parquet.connect("parquet:", settings, Databases(settings))
        try:
            yield candles
        finally:
            await candles.close()

    async def fill(self, symbol: str, base: Timeframe, bars: Bars) -> None:
        async with self.open() as candles:
            await candles.write(symbol, base, bars)


async def _parquet(folder: Path) -> ParquetPlace:
    (folder / "data").mkdir(parents=True)
    return ParquetPlace(folder)


@dataclass(frozen=True)
class Kind:
    """An adapter: how to make an empty place for it, and what it lacks of FEATURES, each with the reason."""

    make: Callable[[Path], Awaitable[Place]]
    lacks: Mapping[str, str] = field(default_factory=dict)
    marks: tuple[Any, ...] = ()


KINDS: dict[str, Kind] = {
    "embedded": Kind(_embedded),
    "parquet": Kind(
        _parquet,
        lacks={
            "any base": "its paths say 1min, as the spec has them",
            "any symbol": "a file is called after a ticker or a pair, and nothing else reaches a path",
            "snapshots": "files are replaced one by one, and nothing holds the others back meanwhile",
        },
    ),
    "influxdb": Kind(
        _influxdb,
        marks=(pytest.mark.services,),
        lacks={
            "any base": "all of a measurement is of one length, which a setting names",
            "snapshots": "it has none: a page and its total may differ by what is written between them",
        },
    ),
    "alpaca": Kind(
        new_market,
        lacks={
            "writing": "it is somebody else's",
            "any base": "it has minutes, and what is made of them",
            "any symbol": "it has stocks and coins, whose names have a form",
            "forgetting": "it is somebody else's",
            "whole writes": "nothing is written there",
            "snapshots": "it has none: a page and its total may differ by what became known between them",
        },
    ),
}
