"""Bars in an answer: a row each, as the specs print them, or a column each, in less than half the tokens."""

from __future__ import annotations

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
    Field(description="columns: one array per field, in less than half the tokens of rows"),
]


@dataclass(frozen=True, slots=True)
class Columns:
    """Bars by column. The bar at place n opens `at[n]` steps after `start`; without `at`, n steps after it."""

    start: datetime | None
    step_s: int
    at: Annotated[list[int] | None, Field(description="Steps after start at which each bar opens; null without gaps")]
    open: list[float]
    high: list[float]
    low: list[float]
    close: list[float]
    volume: list[float]


def columns(bars: Bars, timeframe: Timeframe) -> Columns:
    """The same bars, a column each."""
    steps = ((bars.time - bars.time[:1]) // timeframe.seconds).tolist()
    return Columns(
        start=datetime.fromtimestamp(int(bars.time[0]), UTC) if len(bars) else None,
        step_s=timeframe.seconds,
        at=None if steps == list(range(len(steps))) else steps,
        **{name: getattr(bars, name).tolist() for name in COLUMNS},
    )


def rows(bars: Bars) -> list[dict[str, Any]]:
    """The same bars, an object each, oldest first."""
    opens = np.datetime_as_string(bars.time.astype("datetime64[s]")).tolist()
    figures = (getattr(bars, name).tolist() for name in COLUMNS)
    return [
        {"timestamp": f"{opened}Z", **dict(zip(COLUMNS, figure, strict=True))}
        for opened, *figure in zip(opens, *figures, strict=True)
    ]
