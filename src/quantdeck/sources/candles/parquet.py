"""Bars in Parquet files as the chart spec lays them out (`layout`), read and written by DuckDB on threads.

The newest 3,000 bars of a symbol are kept in memory. Each read looks whether the files are still those that it knows,
which takes microseconds, so what another process stores is in the next answer. A file is replaced whole: who reads sees
it as it was or as it is. Bars of several months are several files, each replaced by itself.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from quantdeck.connections.databases import Databases
from quantdeck.core.clock import Now
from quantdeck.core.errors import NotConfigured, QueryFailed
from quantdeck.domain.candles import Bars, joined
from quantdeck.domain.timeframes import MINUTE, Timeframe
from quantdeck.settings import MisconfiguredError, Settings
from quantdeck.sources.candles import Candles, Series, Storage
from quantdeck.sources.candles.folders import Mark, is_settled, mark, writing
from quantdeck.sources.candles.layout import begins_s, month_of, name_of
from quantdeck.sources.candles.months import SOURCE, Months, unchanged
from quantdeck.sources.candles.shelf import IN_MEMORY, SYMBOLS_KEPT, Shelf, Tail, keep

__all__ = ["IN_MEMORY", "SOURCE", "ParquetCandles", "connect"]


@dataclass(frozen=True, slots=True)
class _Derived:
    """Coarser bars that were asked for, and the files that they were made of."""

    end_s: int
    count: int
    bars: Bars
    months: tuple[int, ...]
    marks: Mapping[str, Mark | None]


class ParquetCandles(Candles):
    """See the port and the module."""

    source = SOURCE

    def __init__(self, root: Path) -> None:
        self.root = root
        self._shelf = Shelf(root)
        self._coarser: OrderedDict[tuple[str, Timeframe], _Derived] = OrderedDict()
        self._write_turn = asyncio.Lock()

    async def ping(self) -> None:
        """Return if the folder is there, and what reads its files."""
        await self._shelf.listed()
        await self._shelf.months()

    async def close(self) -> None:
        await asyncio.to_thread(self._shelf.close)

    def is_there(self) -> bool:
        """Whether there is the folder."""
        with self._shelf.told():
            return self.root.is_dir()

    async def has(self, symbol: str) -> bool:
        """Whether there are files of a symbol."""
        return self.is_there() and symbol in await self._shelf.listed()

    async def symbols_filed(self) -> list[str]:
        """Symbols that there are files of, whatever is in these."""
        return list(await self._shelf.listed()) if self.is_there() else []

    async def storage(self, *, as_of: Now) -> Storage:
        """The files of all months that had begun by then."""
        if not self.root.is_dir():
            return Storage(str(self.root))
        last = month_of(int(as_of.timestamp()))
        paths = [
            self._shelf.path(symbol, month)
            for symbol, months in (await self._shelf.listed()).items()
            for month in months
            if month <= last
        ]
        marks = await self._shelf.on_a_thread(lambda: list(map(mark, paths)))
        return Storage(str(self.root), sum(found.size for found in marks if found is not None))

    async def write(self, symbol: str, base: Timeframe, bars: Bars) -> int:
        try:
            return await super().write(symbol, base, bars)
        except NotConfigured:  # who writes wants the folder; who reads is told that there is none
            with self._shelf.told():
                self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
            return await super().write(symbol, base, bars)

    async def forget(self, symbol: str) -> None:
        if name_of(symbol) is None or not self.root.is_dir():
            return
        async with self._writing():
            paths = [self._shelf.path(symbol, month) for month in (await self._shelf.listed()).get(symbol, ())]
            with self._shelf.told():
                await _to_its_end(lambda: _remove(paths))

    async def _all(self) -> list[Series]:
        found = [await self._series(symbol) for symbol in await self._shelf.listed()]
        return [series for series in found if series is not None]

    async def _series(self, symbol: str) -> Series | None:
        tail = await self._shelf.tail(symbol)
        return None if tail is None else tail.series

    async def _between(self, series: Series, start_s: int, end_s: int) -> Bars:
        tail = await self._shelf.tail(series.symbol)
        if tail is None or start_s >= end_s:
            return Bars.none()
        if start_s >= tail.begins_s:
            return tail.bars.between(start_s, end_s)
        asked = [month for month in tail.months if begins_s(month) < end_s and begins_s(month + 1) > start_s]
        files = await self._shelf.months()
        return await self._shelf.on_a_thread(
            lambda: joined([self._shelf.read(files, series.symbol, month) for month in asked]).between(start_s, end_s)
        )

    async def _before(self, series: Series, end_s: int, count: int) -> Bars:
        tail = await self._shelf.tail(series.symbol)
        if tail is None:
            return Bars.none()
        if tail.has(end_s, count):
            end = int(tail.bars.time.searchsorted(end_s))
            return tail.bars[max(end - count, 0) : end]
        files = await self._shelf.months()
        return await self._shelf.on_a_thread(lambda: self._read_back(files, tail, end_s, count))

    def _read_back(self, files: Months, tail: Tail, end_s: int, count: int) -> Bars:
        parts: list[Bars] = []
        have = 0
        for month in reversed(tail.months):
            if begins_s(month) < end_s and have < count:
                bars = self._shelf.read(files, tail.series.symbol, month)
                parts.insert(0, bars[: int(bars.time.searchsorted(end_s))])
                have += len(parts[0])
        return joined(parts)[max(have - count, 0) :]

    async def _derived_before(self, series: Series, timeframe: Timeframe, end_s: int, count: int) -> Bars:
        """As the port does it; the last such answer is kept while its files are what they were."""
        key, months = (series.symbol, timeframe), (await self._shelf.listed()).get(series.symbol, ())
        kept = self._coarser.get(key)
        if (
            kept is not None
            and (kept.end_s, kept.count, kept.months) == (end_s, count, months)
            and unchanged(kept.marks)
        ):
            return kept.bars
        marks = {month: mark(self._shelf.path(series.symbol, month)) for month in months}
        bars = await super()._derived_before(series, timeframe, end_s, count)
        if len(bars) <= IN_MEMORY:
            first = month_of(int(bars.time[0])) if len(bars) == count else min(months, default=0)
            made_of = {month: seen for month, seen in marks.items() if month >= first}
            if all(seen is not None and is_settled(seen) for seen in made_of.values()):
                paths = {self._shelf.path(series.symbol, month): seen for month, seen in made_of.items()}
                keep(self._coarser, key, _Derived(end_s, count, bars, months, paths), 2 * SYMBOLS_KEPT)
        return bars

    async def _counted(self, series: Series, timeframe: Timeframe, end_s: int) -> int:
        months, files = (await self._shelf.listed()).get(series.symbol, ()), await self._shelf.months()

        def counted() -> int:
            paths = ((self._shelf.path(series.symbol, month), month) for month in months if begins_s(month) < end_s)
            return sum(files.count(path, month, timeframe, end_s) for path, month in paths)

        return await self._shelf.on_a_thread(counted)

    async def _write(self, symbol: str, base: Timeframe, bars: Bars) -> None:
        name = name_of(symbol)
        if name is None:
            raise QueryFailed(f"No file can be called after {symbol}: it is neither a ticker nor a pair", source=SOURCE)
        if base != MINUTE:
            raise QueryFailed(
                f"Parquet files hold bars of {MINUTE}, so they cannot take bars of {base} of {symbol}; "
                "QUANTDECK_CANDLES=embedded takes them",
                source=SOURCE,
            )
        folder, files = self.root / name.folder, await self._shelf.months()
        with self._shelf.told():
            folder.mkdir(parents=True, exist_ok=True)
            async with self._writing():
                await _to_its_end(lambda: files.store(folder, name, bars))

    @asynccontextmanager
    async def _writing(self) -> AsyncIterator[None]:
        async with self._write_turn, writing(self.root):
            yield


def connect(url: str, settings: Settings, databases: Databases) -> ParquetCandles:
    """The adapter: of the folder `data` in the home, or of the one that the URL names. Nothing is opened yet."""
    del databases
    said = url.partition(":")[2]
    if not said:
        return ParquetCandles(settings.home_path / "data")
    path = unquote(said)
    if not said.startswith("////") or not path.isprintable() or {*said} & {"?", "#"}:
        raise MisconfiguredError(
            "QUANTDECK_CANDLES names no folder; write parquet: for the folder data in the home, or "
            "parquet:////absolute/folder, with four slashes"
        )
    return ParquetCandles(Path(path[3:]))


def _remove(paths: list[str]) -> None:
    for path in paths:
        Path(path).unlink(missing_ok=True)


async def _to_its_end(work: Callable[[], Any]) -> None:
    """Work on a thread that is waited for whatever becomes of who asked: it holds the lock."""
    begun = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        await asyncio.shield(begun)
    except asyncio.CancelledError:
        await asyncio.wait([begun])
        raise
