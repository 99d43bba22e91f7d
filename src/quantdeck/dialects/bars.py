"""Bars in an answer: a row each, as the specs print them, or a column each, in about half the tokens."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from quantdeck.dialects.replies import Compact
from quantdeck.domain.arrays import np
from quantdeck.domain.candles import COLUMNS, Bars
from quantdeck.domain.timeframes import Timeframe

__all__ = ["Columns", "Format", "columns", "rows"]

Format = Annotated[
    Literal["rows", "columns"],
    Compact("columns"),
    Field(description="columns: one array per field, in about half the tokens of rows"),
]


@dataclass(frozen=True, slots=True)
class Columns:
    """Bars by column. The first opens at `start`, each other a step after the one before, but for the gaps."""

    start: datetime | None
    step_s: int
    gaps: Annotated[
        list[list[int]], Field(description="[n, m]: before the bar at place n, counted from 0, m steps have no bar")
    ]
    open: list[float]
    high: list[float]
    low: list[float]
    close: list[float]
    volume: list[float]


def columns(bars: Bars, timeframe: Timeframe) -> Columns:
    """The same bars, a column each."""
    missing = np.diff(bars.time) // timeframe.seconds - 1
    places = np.flatnonzero(missing)
    return Columns(
        start=datetime.fromtimestamp(int(bars.time[0]), UTC) if len(bars) else None,
        step_s=timeframe.seconds,
        gaps=[list(gap) for gap in zip((places + 1).tolist(), missing[places].tolist(), strict=True)],
        **dict(zip(COLUMNS, _figures(bars), strict=True)),
    )


def rows(bars: Bars) -> list[dict[str, Any]]:
    """The same bars, an object each, oldest first."""
    opens = np.datetime_as_string(bars.time.astype("datetime64[s]")).tolist()
    return [
        {"timestamp": f"{opened}Z", "open": open_, "high": high, "low": low, "close": close, "volume": volume}
        for opened, open_, high, low, close, volume in zip(opens, *_figures(bars), strict=True)
    ]


def _figures(bars: Bars) -> Iterator[list[float]]:
    """Each column as what is shown. Sums of decimals end in noise, and 15 digits are what a decimal surely keeps."""
    yield from (getattr(bars, name).tolist() for name in COLUMNS[:-1])
    yield [float(f"{volume:.15g}") for volume in bars.volume.tolist()]
