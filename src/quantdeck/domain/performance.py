"""How well a strategy did: on a scale that can be compared, and added up over a time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Literal

__all__ = ["Stretch", "Tally", "by_month", "score", "tally"]


def score(metric: Literal["sharpe", "accuracy", "return"], figure: float | None) -> float | None:
    """A metric on 0 to 1. Accuracy is there already; the others are clamp((x + 1) / 3)."""
    if figure is None:
        return None
    scaled = figure if metric == "accuracy" else (figure + 1) / 3
    return min(max(scaled, 0.0), 1.0)


@dataclass(frozen=True, slots=True)
class Stretch:
    """A stretch of trading: when it ended, how many trades, how many of them won, what they earned added up."""

    end: datetime
    trades: int
    winning: int
    earned: float | None
    sharpe: float | None


@dataclass(frozen=True, slots=True)
class Tally:
    """Stretches taken together. Without a trade there is no accuracy and no average."""

    trades: int
    accuracy: float | None
    earned: float | None
    average: float | None
    sharpe: float | None


def tally(stretches: Iterable[Stretch]) -> Tally:
    """Trades are counted, returns added; the Sharpe ratio is the mean of those there are, by their trades."""
    held = list(stretches)
    trades = sum(one.trades for one in held)
    told = [one for one in held if one.earned is not None]
    paid = sum(one.trades for one in told)
    earned = sum(one.earned or 0.0 for one in told) if told else None
    weighed = [one for one in held if one.sharpe is not None and one.trades]
    weight = sum(one.trades for one in weighed)
    return Tally(
        trades=trades,
        accuracy=sum(one.winning for one in held) / trades if trades else None,
        earned=earned,
        average=earned / paid if earned is not None and paid else None,
        sharpe=sum((one.sharpe or 0.0) * one.trades for one in weighed) / weight if weight else None,
    )


def by_month(stretches: Sequence[Stretch]) -> list[tuple[str, Tally]]:
    """By the month in UTC in which they ended, the oldest first; a month without any is left out."""
    ordered = sorted(stretches, key=_month)
    return [(month, tally(held)) for month, held in groupby(ordered, key=_month)]


def _month(stretch: Stretch) -> str:
    end = stretch.end.astimezone(UTC) - timedelta(microseconds=1)  # an end at midnight is the day before's
    return f"{end.year:04d}-{end.month:02d}"
