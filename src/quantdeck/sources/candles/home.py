"""What the home has of bars: its Parquet files, as a collector leaves them, and beside them what was imported.

A symbol that has files is read from these, any other from `market.db`. A new series is written to files.
"""
# ruff: noqa: SLF001 - stores of its own kind

from __future__ import annotations

from pathlib import Path

from quantdeck.connections.databases import Databases
from quantdeck.core.clock import Now
from quantdeck.core.errors import NotConfigured
from quantdeck.domain.candles import Bars
from quantdeck.domain.timeframes import Timeframe
from quantdeck.settings import MisconfiguredError, Settings
from quantdeck.sources.candles import Candles, Series, Storage, embedded, parquet

__all__ = ["Collected", "Home", "connect"]


class Collected(Candles):
    """Bars as tools ask for them that want what was collected: where no setting says otherwise, these."""

    prefers = "home"


class Home(Collected):
    """See the port and the module."""

    source = parquet.SOURCE

    def __init__(self, files: parquet.ParquetCandles, rows: embedded.Embedded, home: Path) -> None:
        self._files, self._rows, self._home = files, rows, home

    async def ping(self) -> None:
        """Return if either is there."""
        try:
            await self._files.ping()
        except NotConfigured:
            await self._asked_rows()

    async def close(self) -> None:
        await self._files.close()
        await self._rows.close()

    async def store_of(self, symbol: str, *, as_of: Now) -> Candles:
        return await self._store_of(symbol)

    async def _store_of(self, symbol: str) -> Candles:
        try:
            if await self._files.has(symbol):
                return self._files
        except NotConfigured:
            await self._asked_rows()
            return self._rows
        try:
            await self._rows.ping()
        except NotConfigured:
            return self._files
        return self._rows

    async def storage(self, *, as_of: Now) -> Storage:
        files, rows = [await store.storage(as_of=as_of) for store in (self._files, self._rows)]
        place = rows.place if rows.size_bytes and not files.size_bytes else files.place
        return Storage(place, files.size_bytes + rows.size_bytes)

    async def forget(self, symbol: str) -> None:
        await self._files.forget(symbol)
        await self._rows.forget(symbol)

    async def _all(self) -> list[Series]:
        try:
            files = await self._files._all()
        except NotConfigured:
            await self._asked_rows()
            return await self._rows._all()
        try:
            rows = await self._rows._all()
        except NotConfigured:
            return files
        filed = {series.symbol for series in files}
        return files + [series for series in rows if series.symbol not in filed]

    async def _series(self, symbol: str) -> Series | None:
        return await (await self._store_of(symbol))._series(symbol)

    async def _between(self, series: Series, start_s: int, end_s: int) -> Bars:
        return await self._of(series)._between(series, start_s, end_s)

    async def _before(self, series: Series, end_s: int, count: int) -> Bars:
        return await self._of(series)._before(series, end_s, count)

    async def _page(self, series: Series, timeframe: Timeframe, end_s: int, count: int, skip: int) -> Bars:
        return await self._of(series)._page(series, timeframe, end_s, count, skip)

    async def _counted(self, series: Series, timeframe: Timeframe, end_s: int) -> int:
        return await self._of(series)._counted(series, timeframe, end_s)

    async def write(self, symbol: str, base: Timeframe, bars: Bars) -> int:
        try:
            store = await self._store_of(symbol)
            there = await store._series(symbol)
        except NotConfigured:
            there = None
        return await (self._files if there is None else store).write(symbol, base, bars)

    async def _write(self, symbol: str, base: Timeframe, bars: Bars) -> None:
        await self._files._write(symbol, base, bars)

    def _of(self, series: Series) -> Candles:
        return self._rows if isinstance(series, embedded.Held) else self._files

    async def _asked_rows(self) -> None:
        try:
            await self._rows.ping()
        except NotConfigured as error:
            raise self._nothing() from error

    def _nothing(self) -> NotConfigured:
        return NotConfigured(
            f"No bars are stored in {self._home}. Run `quantdeck collect alpaca` with ALPACA_API_KEY and "
            "ALPACA_SECRET_KEY set, or `quantdeck import candles`; or set QUANTDECK_CANDLES to where bars are, or "
            "QUANTDECK_HOME to a demo world, which `quantdeck demo` makes",
            source=self.source,
            setting="QUANTDECK_CANDLES",
        )


def connect(url: str, settings: Settings, databases: Databases) -> Home:
    """The adapter; nothing is opened yet."""
    if url.partition(":")[2]:
        raise MisconfiguredError("QUANTDECK_CANDLES says more than home, which is the folder data and market.db there")
    files = parquet.connect("parquet:", settings, databases)
    return Home(files, embedded.connect("embedded", settings, databases), settings.home_path)
