"""Candles in InfluxDB, as tradestream writes them: one measurement, the symbol as a tag, the five figures as fields.

Every query is bounded in time. Coarser bars are made by the server, as `domain.candles.resampled` would make them: a
year of minutes need not travel for 365 bars of a day. The port's suite holds the two against each other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from time import monotonic
from typing import Any

from quantdeck.connections.databases import Databases
from quantdeck.connections.influxdb import SOURCE, InfluxDB, Rows, place, quoted, tag_value
from quantdeck.core.clock import Clock
from quantdeck.core.errors import QueryFailed
from quantdeck.domain.candles import COLUMNS, Bars, joined
from quantdeck.domain.symbols import UnknownSymbolError, pair
from quantdeck.domain.timeframes import TIMEFRAMES, Timeframe
from quantdeck.settings import InfluxDB as InfluxSettings
from quantdeck.settings import Settings
from quantdeck.sources.candles import Candles, Series

__all__ = ["InfluxCandles", "connect"]

_PAGE = 10_000
"""Bars in one answer. Of more than that, version 1 says that they are not all there, whether they are or not."""
_FIRST_REACH, _FEWEST = 2, 64
"""How far is read back at first, as a multiple of what bars without gaps would need, and for how many at least."""
_LATEST_S = 4_102_444_800
_KEPT_S, _MOST_KEPT = 60.0, 1000
"""How long it is kept where a series begins, and of how many."""
_LINES = 5_000
"""Points in one write, as its makers advise."""
_DAY_S = 86_400
_ENGINE = {"open": "first", "high": "max", "low": "min", "close": "last", "volume": "sum"}


def connect(url: str, settings: Settings, databases: Databases) -> InfluxCandles:
    """The adapter; nothing is connected before the first question."""
    del databases
    database = InfluxDB(place(url, settings.influxdb), settings.influxdb)
    return InfluxCandles(database, settings.influxdb, Clock.parse(settings.clock))


class InfluxCandles(Candles):
    """See the port."""

    source = SOURCE

    def __init__(self, database: InfluxDB, settings: InfluxSettings, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._settings = settings
        self._base = TIMEFRAMES[settings.timeframe]
        self._kept: dict[str, tuple[float, Series]] = {}
        self._measurement, self._tag = quoted(settings.measurement), quoted(settings.tag)
        self._fields = {name: quoted(getattr(settings, f"field_{name}")) for name in COLUMNS}

    async def ping(self) -> None:
        """Return if the measurement can be asked for."""
        await self._database.query(
            f"SELECT {self._fields['close']} FROM {self._measurement} WHERE time >= now() LIMIT 1"
        )

    async def close(self) -> None:
        await self._database.close()

    async def forget(self, symbol: str) -> None:
        self._kept.pop(symbol, None)
        await self._database.query(
            f"DELETE FROM {self._measurement} WHERE {self._tag} = $symbol", symbol=self._tagged(symbol)
        )

    async def _all(self) -> list[Series]:
        first, last = await self._database.query(*self._ends("", f"GROUP BY {self._tag}"))
        tag = self._settings.tag
        lasts = {row[tag]: row["time"] for row in last}
        return [self._found(self._symbol(row[tag]), row["time"], lasts[row[tag]]) for row in first if row[tag] in lasts]

    async def _series(self, symbol: str) -> Series | None:
        kept = self._kept.get(symbol)
        if kept is not None and kept[0] > monotonic():
            return kept[1]
        begin, _ = self._ends(f"{self._of_symbol} AND ", "")
        (first,) = await self._database.query(begin, symbol=self._tagged(symbol))
        if not first:
            return None
        # What is kept says where it begins; bars come in at its end.
        found = self._found(symbol, first[0]["time"], _LATEST_S)
        self._kept[symbol] = (monotonic() + _KEPT_S, found)
        while len(self._kept) > _MOST_KEPT:
            del self._kept[next(iter(self._kept))]
        return found

    async def _between(self, series: Series, start_s: int, end_s: int) -> Bars:
        windows = await self._windows(series, series.base, start_s, end_s)
        found = [await self._asked(series, *window) for window in windows]  # in turn, to be a modest guest
        return await asyncio.to_thread(lambda: joined(list(map(_bars, found))))

    async def _before(self, series: Series, end_s: int, count: int) -> Bars:
        """Read back in ever longer windows: a long one costs a file for each week in it, whatever its limit."""
        parts: list[Bars] = []
        left = count
        reach_s = _FIRST_REACH * min(max(count, _FEWEST), _PAGE) * series.base.seconds
        while left > 0 and end_s > series.first_s:
            start_s, asked = max(end_s - reach_s, series.first_s), min(left, _PAGE)
            rows = await self._asked(series, start_s, end_s, f"ORDER BY time DESC LIMIT {asked}")
            parts.insert(0, await asyncio.to_thread(_bars, rows[::-1]))
            left -= len(parts[0])
            if len(rows) == asked:  # there may be more in this window; a point that is no bar counts here too
                end_s = int(rows[-1]["time"])
                continue
            reach_s *= 2
            end_s = start_s if rows else await self._end_of_last(series, start_s)
        return joined(parts)

    async def _page(self, series: Series, timeframe: Timeframe, end_s: int, count: int, skip: int) -> Bars:
        """Stored bars are skipped over there, and only where there are many: it looks at each of them."""
        if timeframe != series.base or skip < _PAGE:
            return await super()._page(series, timeframe, end_s, count, skip)
        last = f"SELECT {self._fields['close']} FROM {self._measurement}"
        where = f"WHERE {self._of_symbol} AND {_within(series.first_s, end_s)} ORDER BY time DESC LIMIT 1 OFFSET {skip}"
        (found,) = await self._database.query(f"{last} {where}", symbol=self._tagged(series.symbol))
        return await self._before(series, int(found[0]["time"]) + 1, count) if found else Bars.none()

    async def _end_of_last(self, series: Series, end_s: int) -> int:
        """Where the last bar before an instant ends: across a long silence there is nothing to read back through."""
        last = f"SELECT last({self._fields['close']}) FROM {self._measurement}"
        where = f"WHERE {self._of_symbol} AND {_within(series.first_s, end_s)}"
        (found,) = await self._database.query(f"{last} {where}", symbol=self._tagged(series.symbol))
        return int(found[0]["time"]) + 1 if found else series.first_s

    async def _derived(self, series: Series, timeframe: Timeframe, start_s: int, end_s: int) -> Bars:
        if timeframe == series.base:
            return await super()._derived(series, timeframe, start_s, end_s)
        figures = ", ".join(f"{_ENGINE[name]}({field}) AS {quoted(name)}" for name, field in self._fields.items())
        parts = []
        for window in await self._windows(series, timeframe, start_s, end_s):
            (rows,) = await self._database.query(
                f"SELECT {figures} FROM {self._measurement} WHERE {self._of_symbol} AND {_within(*window)} "
                f"GROUP BY time({timeframe.seconds}s) fill(none)",
                symbol=self._tagged(series.symbol),
            )
            parts.append(await asyncio.to_thread(_bars, rows))
        return joined(parts)

    async def _windows(self, series: Series, timeframe: Timeframe, start_s: int, end_s: int) -> list[tuple[int, int]]:
        """Spans that hold a page of bars each, no further than there are any."""
        span_s = _PAGE * timeframe.seconds
        start_s = max(start_s, timeframe.floor(series.first_s))
        if end_s - start_s > span_s:
            end_s = min(end_s, timeframe.ceil(await self._end_of_last(series, end_s)))
        return [(at_s, min(at_s + span_s, end_s)) for at_s in range(start_s, end_s, span_s)]

    async def _counted(self, series: Series, timeframe: Timeframe, end_s: int) -> int:
        inner = (
            f"SELECT count({self._fields['close']}) AS bars FROM {self._measurement} "
            f"WHERE {self._of_symbol} AND {_within(series.first_s, end_s)}"
        )
        if timeframe != series.base:
            inner = f"SELECT count(bars) AS bars FROM ({inner} GROUP BY time({timeframe.seconds}s) fill(none))"
        (rows,) = await self._database.query(inner, symbol=self._tagged(series.symbol))
        return int(rows[0]["bars"]) if rows else 0

    async def _write(self, symbol: str, base: Timeframe, bars: Bars) -> None:
        if base != self._base:
            raise QueryFailed(
                f"InfluxDB is said to hold bars of {self._base}, so it cannot take bars of {base}; "
                "QUANTDECK_INFLUXDB__TIMEFRAME says which",
                source=SOURCE,
            )
        self._kept.pop(symbol, None)
        for at in range(0, len(bars), _LINES):
            await self._database.write(await asyncio.to_thread(self._lines, symbol, bars[at : at + _LINES]))

    def _lines(self, symbol: str, bars: Bars) -> list[bytes]:
        names = [tag_value(getattr(self._settings, f"field_{name}")) for name in COLUMNS]
        measurement, tag = tag_value(self._settings.measurement), tag_value(self._settings.tag)
        begins = f"{measurement},{tag}={tag_value(self._tagged(symbol))} "
        columns = [[f"{name}={value!r}" for value in getattr(bars, column).tolist()]
                   for name, column in zip(names, COLUMNS, strict=True)]  # fmt: skip
        return [
            f"{begins}{','.join(figures)} {time}".encode()
            for time, *figures in zip(bars.time.tolist(), *columns, strict=True)
        ]

    # How tradestream's names stand in queries and lines.

    def _ends(self, where: str, grouped: str) -> list[str]:
        """Two questions: for the first close there is, as far back as is looked, and for the last."""
        close, bounded = self._fields["close"], self._bounded()
        return [
            f"SELECT {which}({close}) FROM {self._measurement} WHERE {where}{bounded} {grouped}"
            for which in ("first", "last")
        ]

    @property
    def _of_symbol(self) -> str:
        return f"{self._tag} = $symbol"

    def _bounded(self) -> str:
        """As far back as is looked, from where the clock stands."""
        since_s = int(self._clock.now().timestamp()) - self._settings.lookback_days * _DAY_S
        return f"time >= {since_s}s"

    def _tagged(self, symbol: str) -> str:
        return symbol.replace("/", self._settings.separator)

    def _symbol(self, tag: str) -> str:
        separator = self._settings.separator
        if separator:
            return tag.replace(separator, "/")
        try:
            return pair(tag)
        except UnknownSymbolError:  # a ticker, or what nobody can read
            return tag

    def _found(self, symbol: str, first_s: int, last_s: int) -> Series:
        return Series(symbol, self._base, self._base.ceil(first_s), self._base.floor(last_s))

    async def _asked(self, series: Series, start_s: int, end_s: int, order: str = "") -> Rows:
        figures = ", ".join(f"{field} AS {quoted(name)}" for name, field in self._fields.items())
        (rows,) = await self._database.query(
            f"SELECT {figures} FROM {self._measurement} WHERE {self._of_symbol} AND {_within(start_s, end_s)} {order}",
            symbol=self._tagged(series.symbol),
        )
        return rows


def _within(start_s: int, end_s: int) -> str:
    return f"time >= {start_s}s AND time < {end_s}s"


def _bars(rows: Sequence[dict[str, Any]]) -> Bars:
    """Rows as columns. A point that lacks a figure is no bar."""
    whole = [row for row in rows if None not in row.values()]
    return Bars.of([row["time"] for row in whole], *([row[name] for row in whole] for name in COLUMNS))
