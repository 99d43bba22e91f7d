"""What the home has of bars: its Parquet files, as a collector leaves them, and beside them what was imported.

A symbol that has files is read from these, any other from `market.db`. A series that is there is written where it is; a
new one to `market.db`, or with `home:files` to files.
"""
# ruff: noqa: SLF001 - stores of its own kind

from __future__ import annotations

import os
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from quantdeck.connections.databases import MARKET, Databases
from quantdeck.core.clock import Now
from quantdeck.core.errors import NotConfigured
from quantdeck.domain.candles import Bars
from quantdeck.domain.timeframes import Timeframe
from quantdeck.settings import MisconfiguredError, Settings
from quantdeck.sources.candles import Candles, Series, Storage, embedded, parquet

if TYPE_CHECKING:
    from quantdeck.core.call import Call

__all__ = ["Home", "connect"]

FILES = "files"
"""What the URL says after its colon, where new series are to be files."""


class Home(Candles):
    """See the port and the module. `asked`, which the views of a call have, are the stores that were read for it."""

    def __init__(
        self,
        files: parquet.ParquetCandles,
        rows: embedded.Embedded,
        home: Path,
        *,
        new_are_files: bool = False,
        call: Call | None = None,
    ) -> None:
        self._files, self._rows, self._home = files, rows, home
        self._file_of_rows = f"{home}/{MARKET}.db"
        self._new_are_files = new_are_files
        self._call = call
        self._asked: dict[str, None] = {}

    @property
    def source(self) -> str:  # type: ignore[override]  # of two, the one that there is
        """The store that has bars; where both have, the files', and where none has, as the chart spec says."""
        is_rows = self._has_rows() and not self._files.is_there()
        return self._rows.source if is_rows else self._files.source

    def _for_call(self, call: Call) -> Home:
        return Home(self._files, self._rows, self._home, new_are_files=self._new_are_files, call=call)

    async def ping(self) -> None:
        """Return if each that there is answers; what reads files is asked for where there are any."""
        if self._has_rows():
            await self._rows.ping()
        elif not self._files.is_there():
            raise self._nothing()
        if await self._files.symbols_filed():
            await self._files.ping()

    async def close(self) -> None:
        await self._files.close()
        await self._rows.close()

    def snapshot(self) -> AbstractAsyncContextManager[None]:
        return self._rows.snapshot() if self._has_rows() else super().snapshot()

    async def store_of(self, symbol: str, *, as_of: Now) -> Candles:
        return await self._store_of(symbol)

    async def _store_of(self, symbol: str) -> Candles:
        if await self._files.has(symbol):
            return self._read(self._files)
        if self._has_rows():
            return self._read(self._rows)
        if self._files.is_there():
            return self._read(self._files)
        raise self._nothing()

    async def storage(self, *, as_of: Now) -> Storage:
        files, rows = [await store.storage(as_of=as_of) for store in (self._files, self._rows)]
        place = rows.place if rows.size_bytes and not files.size_bytes else files.place
        return Storage(place, files.size_bytes + rows.size_bytes)

    async def forget(self, symbol: str) -> None:
        await self._files.forget(symbol)
        await self._rows.forget(symbol)

    async def _all(self) -> list[Series]:
        there = [
            store
            for store, is_there in ((self._files, self._files.is_there()), (self._rows, self._has_rows()))
            if is_there
        ]
        if not there:
            raise self._nothing()
        found: dict[str, Series] = {}
        for store in there:
            for series in await store._all():
                self._read(store)
                found.setdefault(series.symbol, series)
        return list(found.values())

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
        return await (await self._home_of(symbol)).write(symbol, base, bars)

    async def _home_of(self, symbol: str) -> Candles:
        """Where a series is, or is to be."""
        if await self._files.has(symbol):
            return self._files
        if self._new_are_files and not (self._has_rows() and await self._rows._series(symbol)):
            return self._files
        return self._rows

    async def _write(self, symbol: str, base: Timeframe, bars: Bars) -> None:
        await (await self._home_of(symbol))._write(symbol, base, bars)

    def _of(self, series: Series) -> Candles:
        return self._rows if isinstance(series, embedded.Held) else self._files

    def _read(self, store: Candles) -> Candles:
        """Have the answer name the store that it is of."""
        if self._call is not None and store.source not in self._asked:
            self._asked[store.source] = None
            self._call.source = ",".join(self._asked)
        return store

    def _has_rows(self) -> bool:
        return os.path.exists(self._file_of_rows)  # noqa: PTH110 - each read of a bar does this

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
    said = url.partition(":")[2]
    if said not in ("", FILES):
        raise MisconfiguredError(
            "QUANTDECK_CANDLES says more than home, which is the folder data and market.db there; it may say "
            "home:files, for new series to be files"
        )
    files = parquet.connect("parquet:", settings, databases)
    rows = embedded.connect("embedded", settings, databases)
    return Home(files, rows, settings.home_path, new_are_files=said == FILES)
