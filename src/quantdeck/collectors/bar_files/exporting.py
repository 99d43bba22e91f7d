"""Stored bars into files that anybody can read, and `importing` to the last digit."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import repeat
from pathlib import Path
from typing import TextIO

from quantdeck.collectors.bar_files import FileProblem, parquet_driver
from quantdeck.core.clock import Now
from quantdeck.domain.candles import Bars, joined
from quantdeck.domain.timeframes import Timeframe
from quantdeck.sources.candles import Candles

__all__ = ["export_csv", "export_parquet", "write_csv"]

_AT_ONCE = 200_000
_HEADER = "time,open,high,low,close,volume,symbol\n"

Advance = Callable[[float, int], None]


async def pieces(
    candles: Candles, symbol: str, timeframe: Timeframe, start_s: int, end_s: int, as_of: Now
) -> AsyncIterator[tuple[float, Bars]]:
    """The bars of a range, a bounded number at a time, and which share of the range each piece ends at."""
    step_s = _AT_ONCE * timeframe.seconds
    for piece_s in range(start_s, end_s, step_s):
        until_s = min(piece_s + step_s, end_s)
        bars = await candles.between(symbol, timeframe, _at(piece_s), _at(until_s), as_of=as_of)
        yield (until_s - start_s) / (end_s - start_s), bars


def _at(second: int) -> datetime:
    return datetime.fromtimestamp(second, UTC)


def write_csv(file: TextIO, symbol: str, bars: Bars) -> None:
    """Rows of bars; numbers with all their digits, times in UTC."""
    import numpy as np

    if not len(bars):
        return
    times = np.datetime_as_string(bars.time.astype("datetime64[s]"), timezone="UTC").tolist()
    numbers = [map(repr, column.tolist()) for column in list(bars.columns())[1:]]
    quoted = '"' + symbol.replace('"', '""') + '"' if any(mark in symbol for mark in ',"') else symbol
    file.write("\n".join(map(",".join, zip(times, *numbers, repeat(quoted), strict=False))) + "\n")


async def export_csv(path: Path, symbol: str, parts: AsyncIterator[tuple[float, Bars]], advance: Advance) -> int:
    """Write a file, whole or not at all; how many bars."""
    written = 0
    with _whole(path) as draft, draft.open("w", encoding="utf-8", newline="") as file:
        file.write(_HEADER)
        async for share, bars in parts:
            write_csv(file, symbol, bars)
            written += len(bars)
            advance(share, written)
    return written


async def export_parquet(path: Path, symbol: str, parts: AsyncIterator[tuple[float, Bars]], advance: Advance) -> int:
    """Write a file, whole or not at all; how many bars. All of them are in memory once."""
    driver = parquet_driver()
    held: list[Bars] = []
    async for share, bars in parts:
        held.append(bars)
        advance(share, sum(map(len, held)))
    with _whole(path) as draft:
        driver.write(draft, symbol, joined(held))
    return sum(map(len, held))


@contextmanager
def _whole(path: Path) -> Iterator[Path]:
    """A draft that takes the file's place when it was left well."""
    draft = path.with_name(f".{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield draft
        draft.replace(path)
    except OSError as error:
        raise FileProblem(f"cannot be written: {error.strerror or error}") from error
    finally:
        draft.unlink(missing_ok=True)
