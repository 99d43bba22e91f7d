"""Twenty million one-minute bars, made on the spot, in our store, in monthly Parquet files and in bare arrays."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any

import duckdb
import numpy as np

from quantdeck.connections.databases import Databases
from quantdeck.core.clock import Now
from quantdeck.domain.candles import Bars
from quantdeck.domain.timeframes import MINUTE
from quantdeck.settings import Settings
from quantdeck.sources.candles import embedded

FIRST_S = int(datetime(2024, 1, 1, tzinfo=UTC).timestamp())
NAMES = ("time", "open", "high", "low", "close", "volume")
WRITE_AT_ONCE = 200_000


def symbols(many: int) -> list[str]:
    return [f"S{number:02}/USD" for number in range(many)]


def made(seed: int, minutes: int) -> Bars:
    random = np.random.default_rng(seed)
    close = 100 * np.exp(np.cumsum(random.standard_normal(minutes) * 1e-4))
    open_ = np.concatenate(([100.0], close[:-1]))
    reach = np.abs(random.standard_normal(minutes)) * 0.01
    time = FIRST_S + 60 * np.arange(minutes, dtype=np.int64)
    high, low = np.maximum(open_, close) + reach, np.minimum(open_, close) - reach
    return Bars(time, open_, high, low, close, random.exponential(10, minutes))


def end_of(minutes: int) -> Now:
    return Now.of(datetime.fromtimestamp(FIRST_S + 60 * minutes, UTC), fixed=True)


@asynccontextmanager
async def ours(home: Path) -> Any:
    settings = Settings(home=home)
    databases = Databases(settings)
    try:
        yield embedded.connect("", settings, databases)
    finally:
        await databases.close()


async def fill_ours(store: Any, symbol: str, bars: Bars) -> float:
    """Seconds that it takes to write them."""
    begun = perf_counter()
    for first in range(0, len(bars), WRITE_AT_ONCE):
        await store.write(symbol, MINUTE, bars[first : first + WRITE_AT_ONCE])
    return perf_counter() - begun


def _months(minutes: int) -> Iterator[tuple[str, int, int]]:
    end_s, year, month = FIRST_S + 60 * minutes, 2024, 1
    while (first_s := _month(year, month)) < end_s:
        yield f"{year}-{month:02}", first_s, min(_month(year + month // 12, month % 12 + 1), end_s)
        year, month = year + month // 12, month % 12 + 1


def _month(year: int, month: int) -> int:
    return int(datetime(year, month, 1, tzinfo=UTC).timestamp())


class MonthlyParquet:
    """The peer: a file for each symbol and month, of which a query names only those that it needs."""

    def __init__(self, folder: Path, minutes: int) -> None:
        self._folder, self._months = folder, list(_months(minutes))
        self._engine = duckdb.connect()

    def fill(self, symbol: str, bars: Bars) -> None:
        for month, first_s, end_s in self._months:
            self._engine.register("bars", dict(zip(NAMES, bars.between(first_s, end_s).columns(), strict=True)))
            self._engine.execute(f"COPY (SELECT * FROM bars) TO '{self._file(symbol, month)}' (COMPRESSION zstd)")
            self._engine.unregister("bars")

    def _file(self, symbol: str, month: str) -> str:
        return str(self._folder / f"{symbol.replace('/', '_')}_{month}.parquet")

    def _files(self, symbol: str, first_s: int) -> str:
        needed = [self._file(symbol, month) for month, _, end_s in self._months if end_s > first_s]
        return f"read_parquet([{', '.join(map(repr, needed))}])"

    def last(self, symbol: str, count: int, end_s: int) -> Any:
        files = self._files(symbol, end_s - 60 * count)
        return self._engine.execute(
            f"SELECT * FROM {files} WHERE time >= ? ORDER BY time", [end_s - 60 * count]
        ).fetchnumpy()

    def derived(self, symbol: str, length_s: int, count: int, end_s: int) -> Any:
        first_s = end_s - length_s * count
        return self._engine.execute(
            f"SELECT time // {length_s} AS bucket, arg_min(open, time), max(high), min(low), arg_max(close, time),"
            f" sum(volume) FROM {self._files(symbol, first_s)} WHERE time >= ? GROUP BY bucket ORDER BY bucket",
            [first_s],
        ).fetchnumpy()

    def close(self) -> None:
        self._engine.close()


def fill_arrays(path: Path, bars: Bars) -> None:
    """The floor: a column after the other, of one symbol."""
    table = np.memmap(path, dtype=np.float64, mode="w+", shape=(6, len(bars)))
    table[0].view(np.int64)[:] = bars.time
    for at, column in enumerate(list(bars.columns())[1:], start=1):
        table[at] = column
    table.flush()


def read_arrays(path: Path, minutes: int, many: int) -> Bars:
    table = np.memmap(path, dtype=np.float64, mode="r", shape=(6, minutes))
    columns = [np.array(table[at, minutes - many :]) for at in range(6)]
    return Bars(columns[0].view(np.int64), *columns[1:])
