"""Bars in a SQLite file of the home: chunks of columns, read into numpy; see `chunks` and ADR 0012."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import orjson

from quantdeck.connections.database import Database, Row
from quantdeck.connections.databases import MARKET, Databases
from quantdeck.core.clock import Now
from quantdeck.core.errors import NotConfigured, QueryFailed
from quantdeck.domain.candles import Bars, joined
from quantdeck.domain.timeframes import TIMEFRAMES, Timeframe
from quantdeck.settings import MisconfiguredError, Settings
from quantdeck.sources.candles import Candles, Series, Storage, is_storable, off_the_loop
from quantdeck.sources.candles.chunks import PLACES, Chunk, chunk_of, chunks_of, decoded, merged, opens

__all__ = ["Embedded", "Held", "connect"]

T = TypeVar("T")

_LENGTHS = {timeframe.seconds: timeframe for timeframe in TIMEFRAMES.values()}

_DEEP = 2 * PLACES
"""So many bars to skip are counted by their places and not read."""

_ALL = "SELECT series_id, symbol, base_s, first_s, last_s FROM candle_series"
_FIND = f"{_ALL} WHERE symbol = :symbol"
_BETWEEN = """
    SELECT chunk, held, present, data FROM candle_chunks
    WHERE series_id = :series AND chunk BETWEEN :first AND :last ORDER BY chunk
"""
_BEFORE = """
    SELECT chunk, held, present, data FROM candle_chunks
    WHERE series_id = :series AND chunk <= :last ORDER BY chunk DESC LIMIT :most
"""
_NAMED = """
    SELECT chunk, held, present, data FROM candle_chunks
    WHERE series_id = :series AND chunk IN (SELECT value FROM json_each(:chunks)) ORDER BY chunk
"""
_PLACES = """
    SELECT chunk, held, present FROM candle_chunks WHERE series_id = :series AND chunk <= :last ORDER BY chunk
"""
_HELD = "SELECT COALESCE(sum(held), 0) AS held FROM candle_chunks WHERE series_id = :series AND chunk < :last"
_EXTEND = """
    INSERT INTO candle_series (symbol, base_s, first_s, last_s) VALUES (:symbol, :base_s, :first_s, :last_s)
    ON CONFLICT (symbol) DO UPDATE SET
        first_s = min(candle_series.first_s, excluded.first_s), last_s = max(candle_series.last_s, excluded.last_s)
    RETURNING series_id, symbol, base_s, first_s, last_s
"""
_PUT = """
    INSERT INTO candle_chunks (series_id, chunk, held, present, data) VALUES (:series, :chunk, :held, :present, :data)
    ON CONFLICT (series_id, chunk) DO UPDATE SET held = excluded.held, present = excluded.present, data = excluded.data
"""
_FORGET = "DELETE FROM candle_series WHERE symbol = :symbol"


@dataclass(frozen=True, slots=True)
class Held(Series):
    """A series by the number under which its chunks are; a forgotten one's is never given again."""

    number: int


class Embedded(Candles):
    """See the port. Its file is made by the first write."""

    def __init__(
        self, database: Database, make: Callable[[], Awaitable[None]], *, home: Path, source: str = "sqlite"
    ) -> None:
        self.source = source
        self._home = home
        self._database = database
        self._make = make

    async def ping(self) -> None:
        await self._database.ping()

    async def storage(self, *, as_of: Now) -> Storage:
        """The file and its log; how large they were at another time nobody knows."""
        files = [self._home / f"{MARKET}.db{ending}" for ending in ("", "-wal")]
        return Storage(str(self._home), sum(file.stat().st_size for file in files if file.exists()))

    def snapshot(self) -> AbstractAsyncContextManager[None]:
        return self._database.snapshot()

    async def write(self, symbol: str, base: Timeframe, bars: Bars) -> int:
        try:
            return await super().write(symbol, base, bars)
        except NotConfigured:  # who writes wants a file; who reads is told that there is none
            await self._make()
            return await super().write(symbol, base, bars)

    async def forget(self, symbol: str) -> None:
        if is_storable(symbol):
            with suppress(NotConfigured):  # without a file there is nothing to forget
                await self._database.execute(_FORGET, symbol=symbol)

    async def _all(self) -> list[Series]:
        return [_held(row) for row in await self._database.rows(_ALL)]

    async def _series(self, symbol: str) -> Held | None:
        row = await self._database.row(_FIND, symbol=symbol)
        return None if row is None else _held(row)

    async def _between(self, series: Series, start_s: int, end_s: int) -> Bars:
        if start_s >= end_s:
            return Bars.none()
        first, last = chunk_of(start_s, series.base), chunk_of(end_s - 1, series.base)
        found = await self._chunks(_BETWEEN, series, first=first, last=last)
        return (await self._bars(found, series)).between(start_s, end_s)

    async def _before(self, series: Series, end_s: int, count: int) -> Bars:
        parts: list[Bars] = []
        have, last, most = 0, chunk_of(end_s - 1, series.base), count // PLACES + 2
        while have < count:
            found = await self._chunks(_BEFORE, series, last=last, most=most)
            part = await self._bars(found[::-1], series)
            parts.insert(0, part.between(series.first_s, end_s))
            have += len(parts[0])
            if len(found) < most:
                break
            last, most = found[-1].chunk - 1, 2 * most
        return joined(parts)[max(have - count, 0) :]

    async def _page(self, series: Series, timeframe: Timeframe, end_s: int, count: int, skip: int) -> Bars:
        if skip >= _DEEP:
            there = await self._opens(series, timeframe, end_s)
            if skip >= len(there):
                return Bars.none()
            end_s, skip = int(there[len(there) - skip]), 0
        return await super()._page(series, timeframe, end_s, count, skip)

    async def _counted(self, series: Series, timeframe: Timeframe, end_s: int) -> int:
        if timeframe != series.base:
            return len(await self._opens(series, timeframe, end_s))
        last = chunk_of(end_s - 1, series.base)
        row = await self._database.row(_HELD, series=_number(series), last=last)
        found = await self._chunks(_BEFORE, series, last=last, most=1)
        newest = [chunk for chunk in found if chunk.chunk == last]
        assert row is not None
        return int(row["held"]) + len(_sound(lambda: opens(newest, series.base, timeframe, end_s)))

    async def _opens(self, series: Series, timeframe: Timeframe, end_s: int) -> Any:
        found = await self._chunks(_PLACES, series, last=chunk_of(end_s - 1, series.base))
        bars = PLACES * len(found)
        return await off_the_loop(bars, lambda: _sound(lambda: opens(found, series.base, timeframe, end_s)))

    async def _write(self, symbol: str, base: Timeframe, bars: Bars) -> None:
        ends = {"first_s": int(bars.time[0]), "last_s": int(bars.time[-1])}
        touched = orjson.dumps(chunks_of(bars, base)).decode()
        async with self._database.transaction():
            (row,) = await self._database.returning(_EXTEND, symbol=symbol, base_s=base.seconds, **ends)
            series = _held(row)
            self._check_base(series, base)  # another process may have come first
            old = await self._chunks(_NAMED, series, chunks=touched)
            size = len(bars) + PLACES * len(old)
            new = await off_the_loop(size, lambda: _sound(lambda: merged(old, bars, base)))
            rows = [{"series": series.number, **chunk._asdict()} for chunk in new]
            await self._database.execute_many(_PUT, rows)

    async def _chunks(self, sql: str, series: Series, **values: Any) -> list[Chunk]:
        return [Chunk(**row) for row in await self._database.rows(sql, series=_number(series), **values)]

    async def _bars(self, chunks: Sequence[Chunk], series: Series) -> Bars:
        size = PLACES * len(chunks)
        return await off_the_loop(size, lambda: _sound(lambda: decoded(chunks, series.base)))


def connect(url: str, settings: Settings, databases: Databases) -> Embedded:
    """The adapter; nothing is opened before it is first asked."""
    if url.partition(":")[2]:
        raise MisconfiguredError("QUANTDECK_CANDLES says more than embedded, whose file is market.db in QUANTDECK_HOME")
    source = "demo" if settings.is_demo else "sqlite"
    return Embedded(databases.of(MARKET), databases.make_market, home=settings.home_path, source=source)


def _held(row: Row) -> Held:
    base = _LENGTHS.get(row["base_s"])
    if base is None:
        raise _damaged()
    return Held(row["symbol"], base, row["first_s"], row["last_s"], row["series_id"])


def _number(series: Series) -> int:
    assert isinstance(series, Held)
    return series.number


def _sound(work: Callable[[], T]) -> T:
    try:
        return work()
    except ValueError as error:
        raise _damaged() from error


def _damaged() -> QueryFailed:
    return QueryFailed("Stored bars are damaged; restore market.db from a copy, or import them anew", source="sqlite")
