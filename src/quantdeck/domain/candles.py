"""Bars as columns, and the one way in which coarser bars are made of finer ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from quantdeck.domain.arrays import Floats, np
from quantdeck.domain.timeframes import Timeframe

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Seconds = NDArray[np.int64]

__all__ = ["COLUMNS", "Bars", "closed_before", "faults", "joined", "resampled", "settled"]

COLUMNS = ("open", "high", "low", "close", "volume")

LARGEST = 1e300
"""No price or volume beyond it: a million of them still add up to a number."""

EARLIEST_S, LATEST_S = -62_135_596_800, 253_402_300_800
"""What a date can be written for."""


@dataclass(frozen=True, slots=True, eq=False)
class Bars:
    """Bars of one symbol, a column each. `time` is each bar's open in whole seconds since 1970, ascending, none twice.

    A minute without a trade has no bar: gaps stay gaps, here and in what is derived.
    """

    time: Seconds
    open: Floats
    high: Floats
    low: Floats
    close: Floats
    volume: Floats

    def __len__(self) -> int:
        return len(self.time)

    def __getitem__(self, part: slice) -> Bars:
        return Bars(*(column[part] for column in self.columns()))

    def columns(self) -> Iterator[Any]:
        """All six, `time` first."""
        return (getattr(self, field.name) for field in fields(self))

    def between(self, start_s: int, end_s: int) -> Bars:
        """Those that open at or after the start and before the end."""
        low, high = self.time.searchsorted((start_s, end_s))
        return self[int(low) : int(high)]

    @classmethod
    def of(cls, time: Sequence[int] | Seconds, *columns: Sequence[float] | Floats) -> Bars:
        """Bars of anything that can be made columns of: open, high, low, close, volume."""
        return cls(np.asarray(time, dtype=np.int64), *(np.asarray(column, dtype=np.float64) for column in columns))

    @classmethod
    def none(cls) -> Bars:
        """Not one."""
        return cls.of((), *((),) * len(COLUMNS))


def joined(parts: Sequence[Bars]) -> Bars:
    """Bars that follow one another, as one."""
    parts = [part for part in parts if len(part)]
    if len(parts) < 2:
        return parts[0] if parts else Bars.none()
    return Bars(*map(np.concatenate, zip(*(part.columns() for part in parts), strict=True)))


def settled(bars: Bars) -> Bars:
    """The same bars in order, and of several with one open the last: a correction comes after what it corrects."""
    if (np.diff(bars.time) > 0).all():
        return bars
    order = bars.time.argsort(kind="stable")
    time = bars.time[order]
    last = np.append(np.diff(time) != 0, True)
    return Bars(*(column[order][last] for column in bars.columns()))


def faults(bars: Bars, base: Timeframe) -> dict[str, Any]:
    """By what is wrong, which bars cannot be stored: a mask over them for each fault that there is."""
    numbers = np.vstack((bars.open, bars.high, bars.low, bars.close, bars.volume))
    prices = numbers[:4]
    with np.errstate(invalid="ignore"):
        found = {
            "not a finite number": ~np.isfinite(numbers).all(axis=0),
            f"a number beyond {LARGEST:g}": (np.abs(numbers) > LARGEST).any(axis=0) & np.isfinite(numbers).all(axis=0),
            "opens in no year from 1 to 9999": (bars.time < EARLIEST_S) | (bars.time >= LATEST_S),
            "high is below another price": (prices > bars.high).any(axis=0),
            "low is above another price": (prices < bars.low).any(axis=0),
            "negative volume": bars.volume < 0,
            f"opens between two bars of {base}": bars.time % base.seconds != 0,
        }
    return {fault: mask for fault, mask in found.items() if mask.any()}


def closed_before(as_of_s: float, timeframe: Timeframe) -> int:
    """Bars that open before this are closed by then; a bar is known at its close."""
    return timeframe.floor(as_of_s)


def resampled(bars: Bars, to: Timeframe) -> Bars:
    """Coarser bars: first open, highest high, lowest low, last close, all the volume, named by the bucket's open.

    A bucket in which nothing opened has no bar. The first and the last bucket are as whole as the bars that are given:
    who asks cuts at bucket edges.
    """
    if not len(bars):
        return bars
    bucket, first = _buckets(bars.time, to)
    last = np.append(first[1:], len(bars)) - 1
    return Bars(
        time=bucket,
        open=bars.open[first],
        high=np.maximum.reduceat(bars.high, first),
        low=np.minimum.reduceat(bars.low, first),
        close=bars.close[last],
        volume=np.add.reduceat(bars.volume, first),
    )


def _buckets(time: Seconds, to: Timeframe) -> tuple[Seconds, Seconds]:
    """The opens of the buckets that have a bar, and where in `time` each begins."""
    begin_s, end_s = to.floor(int(time[0])), to.floor(int(time[-1])) + to.seconds
    if (end_s - begin_s) // to.seconds <= len(time):  # looking for the edges is far quicker than dividing every time
        edges = np.arange(begin_s, end_s + to.seconds, to.seconds, dtype=np.int64)
        places = time.searchsorted(edges)
        there = np.diff(places) > 0
        return edges[:-1][there], places[:-1][there]
    bucket = time // to.seconds
    first = np.flatnonzero(np.diff(bucket, prepend=bucket[0] - 1))
    return bucket[first] * to.seconds, first
