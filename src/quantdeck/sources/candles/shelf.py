"""What is known of the files: which there are, and each symbol's newest bars for as long as they are unchanged."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar
from weakref import WeakValueDictionary

from quantdeck.connections.extras import load
from quantdeck.core.errors import NotConfigured, Unreachable
from quantdeck.domain.candles import Bars, joined
from quantdeck.domain.timeframes import MINUTE
from quantdeck.sources.candles import Series
from quantdeck.sources.candles.folders import Folder, Mark
from quantdeck.sources.candles.layout import FOLDERS, name_of
from quantdeck.sources.candles.months import SOURCE, Months, unchanged

__all__ = ["IN_MEMORY", "SYMBOLS_KEPT", "Shelf", "Tail", "keep"]

IN_MEMORY = 3000
"""Bars of a symbol, as the spec says."""

SYMBOLS_KEPT = 256

T = TypeVar("T")
Key = TypeVar("Key")


@dataclass(frozen=True, slots=True)
class Tail:
    """A symbol's newest bars, and the files that they and its beginning were read of."""

    series: Series
    bars: Bars
    begins_s: int  # every bar from here on is among them
    months: tuple[int, ...]
    marks: Mapping[str, Mark | None]

    def is_of(self, months: tuple[int, ...]) -> bool:
        """Whether these are the months still, and the files."""
        return months == self.months and unchanged(self.marks)

    def has(self, end_s: int, count: int) -> bool:
        """Whether so many bars before the end are among these, or all that there are."""
        return self.begins_s <= self.series.first_s or int(self.bars.time.searchsorted(end_s)) >= count


class Shelf:
    """The files under one folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._folders = [Folder(root, name) for name in FOLDERS]
        self._months: Months | None = None
        self._tails: OrderedDict[str, Tail] = OrderedDict()
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def close(self) -> None:
        if self._months is not None:
            self._months.close()
            self._months = None

    async def listed(self) -> dict[str, tuple[int, ...]]:
        """The months that there are of each symbol."""
        found: dict[str, tuple[int, ...]] = {}
        with self.told():
            for folder in self._folders:
                if not folder.is_current():
                    await asyncio.to_thread(self._look, folder)
                found |= folder.symbols
        return found

    def _look(self, folder: Folder) -> None:
        if not self.root.is_dir():
            raise NotConfigured(
                f"No bars are stored: there is no folder {self.root}. `quantdeck collect alpaca` makes it with "
                "ALPACA_API_KEY and ALPACA_SECRET_KEY set, `quantdeck import candles` of files; or set "
                "QUANTDECK_CANDLES to where bars are",
                source=SOURCE,
                setting="QUANTDECK_CANDLES",
            )
        folder.look()

    async def tail(self, symbol: str) -> Tail | None:
        months = (await self.listed()).get(symbol, ())
        if not months:
            return None
        if (kept := self._kept(symbol, months)) is not None:
            return kept
        async with self._turns.setdefault(symbol, asyncio.Lock()):  # who asks the same waits for the first
            if (kept := self._kept(symbol, months)) is not None:
                return kept
            files = await self.months()
            read = await self.on_a_thread(lambda: self._load(files, symbol, months))
            if read is not None:
                keep(self._tails, symbol, read, SYMBOLS_KEPT)
            return read

    def _kept(self, symbol: str, months: tuple[int, ...]) -> Tail | None:
        kept = self._tails.get(symbol)
        with self.told():
            return kept if kept is not None and kept.is_of(months) else None

    def _load(self, files: Months, symbol: str, months: tuple[int, ...]) -> Tail | None:
        """The newest bars, and where the series begins."""
        marks: dict[str, Mark | None] = {}
        parts: list[Bars] = []

        def read(month: int) -> Bars:
            path = self.path(symbol, month)
            bars, marks[path] = files.read(path, month)
            return bars

        for place in range(len(months) - 1, -1, -1):
            parts.insert(0, read(months[place]))
            if sum(map(len, parts)) >= IN_MEMORY:
                break
        bars = joined(parts)
        begins_with = next((part for month in months[:place] if len(part := read(month))), bars)
        if not len(begins_with):
            return None
        newest = Bars(*(column.copy() for column in bars[-IN_MEMORY:].columns()))
        series = Series(symbol, MINUTE, int(begins_with.time[0]), int(newest.time[-1]))
        return Tail(series, newest, int(newest.time[0]), months, marks)

    def read(self, files: Months, symbol: str, month: int) -> Bars:
        return files.read(self.path(symbol, month), month)[0]

    def path(self, symbol: str, month: int) -> str:
        name = name_of(symbol)
        assert name is not None  # only what was listed or could be stored comes here
        return f"{self.root}/{name.folder}/{name.file(month)}"

    async def months(self) -> Months:
        if self._months is None:
            module = await asyncio.to_thread(load, "quantdeck.connections.duckdb", extra="parquet")
            if self._months is None:  # nobody else was quicker
                self._months = Months(module.BarFiles())
        return self._months

    async def on_a_thread(self, work: Callable[[], T]) -> T:
        with self.told():
            return await asyncio.to_thread(work)

    @contextmanager
    def told(self) -> Iterator[None]:
        """What the system refuses, in our words."""
        try:
            yield
        except OSError as error:
            raise Unreachable(
                f"No connection to the bars in {self.root}: the system refuses ({error.strerror})", source=SOURCE
            ) from error


def keep(kept: OrderedDict[Key, T], key: Key, value: T, most: int) -> None:
    """Put a value at the end, and let the first go where there are too many."""
    kept[key] = value
    kept.move_to_end(key)
    while len(kept) > most:
        kept.popitem(last=False)
