"""Bars for tests: a walk that is the same for the same opens and seed."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from quantdeck.core.clock import Now
from quantdeck.domain.candles import Bars

__all__ = ["FAR", "at", "every", "now", "rows", "walk"]


def at(text: str) -> int:
    """Seconds since 1970 of an instant in UTC, written as 2026-01-15T12:00."""
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


def now(second: float) -> Now:
    """The world standing at that many seconds since 1970."""
    return Now.of(datetime.fromtimestamp(0, UTC) + timedelta(seconds=second), fixed=True)


FAR = now(at("2100-01-01T00:00"))
"""After everything."""


def every(step_s: int, first_s: int, many: int) -> list[int]:
    """So many opens without a gap."""
    return list(range(first_s, first_s + step_s * many, step_s))


def walk(opens: Iterable[int], seed: int = 7) -> Bars:
    """Sound bars at these opens, prices with all their digits; volumes add up to the same in whatever order."""
    time = np.fromiter(opens, dtype=np.int64)
    random = np.random.default_rng(seed)
    close = 100 * np.exp(np.cumsum(random.normal(0, 1e-3, len(time))))
    open_ = close * np.exp(random.normal(0, 1e-3, len(time)))
    high = np.maximum(open_, close) * np.exp(np.abs(random.normal(0, 1e-3, len(time))))
    low = np.minimum(open_, close) * np.exp(-np.abs(random.normal(0, 1e-3, len(time))))
    return Bars.of(time, open_, high, low, close, np.ceil(random.exponential(10, len(time)) * 1024) / 1024)


def rows(bars: Bars) -> list[tuple[Any, ...]]:
    """Bars as a person would write them down."""
    return list(zip(*(column.tolist() for column in bars.columns()), strict=True))
