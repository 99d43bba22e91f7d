"""The chart spec's figures and crossings. The rules are data: what is compared, of the last two closed bars.

Figures are rounded to twelve digits of the price, so that what is equal on paper is equal here: the noise of floating
point would else cross a line that is level. A figure that there is not fulfils no rule.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import floor, isfinite, log10
from typing import NamedTuple

from quantdeck.domain.arrays import Floats, last, np
from quantdeck.domain.indicators import bollinger, ema, macd, rsi, sma

__all__ = [
    "BARS_NEEDED",
    "BARS_USED",
    "BB",
    "EMA",
    "MACD",
    "RSI",
    "RULES",
    "SMA",
    "Comparison",
    "Figures",
    "Reading",
    "crossings",
    "reading",
]

EMA, SMA, RSI = 9, 10, 14
MACD = (12, 26, 9)
BB = (20, 2)

BARS_NEEDED = 35
"""The signal line begins with the 34th bar, and a crossing needs it at two."""

BARS_USED = 500
"""With so many before it a figure is what it would be after any number: no digit of where they began is left."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What the spec shows of one bar."""

    close: float | None
    ema9: float | None
    ma10: float | None
    macd: float | None
    signal: float | None
    hist: float | None
    rsi: float | None
    bb_upper: float | None
    bb_middle: float | None
    bb_lower: float | None

    @property
    def bb_width(self) -> float | None:
        """How far the bands are apart, as a fraction of their middle."""
        if self.bb_upper is None or self.bb_lower is None or not self.bb_middle:
            return None
        return round((self.bb_upper - self.bb_lower) / self.bb_middle, 12)


class Comparison(NamedTuple):
    """A figure of the bar `last` or `prev`, and the figure or number that it is compared with."""

    left: str
    sign: str
    right: str | float


RULES: Mapping[str, tuple[Comparison, ...]] = {
    "macd_cross_up": (
        Comparison("prev.macd", "<=", "prev.signal"),
        Comparison("last.macd", ">", "last.signal"),
    ),
    "macd_cross_dn": (
        Comparison("prev.macd", ">=", "prev.signal"),
        Comparison("last.macd", "<", "last.signal"),
    ),
    "ema_support_lost": (
        Comparison("prev.close", ">=", "prev.ema9"),
        Comparison("last.close", "<", "last.ema9"),
    ),
    "ema_reclaim": (
        Comparison("prev.close", "<=", "prev.ema9"),
        Comparison("last.close", ">", "last.ema9"),
    ),
    "rsi_overbought": (Comparison("last.rsi", ">=", 70),),
    "rsi_oversold": (Comparison("last.rsi", "<=", 30),),
    "bb_squeeze": (Comparison("last.bb_width", "<", 0.04),),
    "bb_breakout_up": (Comparison("last.close", ">", "last.bb_upper"),),
    "bb_breakout_dn": (Comparison("last.close", "<", "last.bb_lower"),),
}
"""Each holds where all of its comparisons do."""

_SIGNS: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True, slots=True)
class Reading:
    """The last closed bar with its close as it is stored, and which rules hold there."""

    price: float
    last: Figures
    crossings: Mapping[str, bool]

    @property
    def signals(self) -> list[str]:
        """The rules that hold, in the spec's order."""
        return [name for name, holds in self.crossings.items() if holds]


def reading(closes: Floats) -> Reading:
    """Of closes, oldest first, at least one. What was asked lately is remembered: it is the same until a bar is new."""
    return _reading(np.ascontiguousarray(closes, dtype=np.float64).tobytes())


def crossings(prev: Figures, last: Figures) -> dict[str, bool]:
    """Which rules hold between two successive bars."""
    bars = {"prev": prev, "last": last}

    def figure(name: str | float) -> float | None:
        if not isinstance(name, str):
            return name
        bar, _, named = name.partition(".")
        value: float | None = getattr(bars[bar], named)
        return value

    def holds(comparison: Comparison) -> bool:
        left, right = figure(comparison.left), figure(comparison.right)
        return left is not None and right is not None and _SIGNS[comparison.sign](left, right)

    return {name: all(map(holds, rule)) for name, rule in RULES.items()}


@lru_cache(1024)
def _reading(closes: bytes) -> Reading:
    prices = np.frombuffer(closes)
    line = macd(prices, *MACD)
    bands = bollinger(prices, *BB)
    series = {
        "close": prices,
        "ema9": ema(prices, EMA),
        "ma10": sma(prices, SMA),
        "macd": line.line,
        "signal": line.signal,
        "rsi": rsi(prices, RSI),
        "bb_upper": bands.upper,
        "bb_middle": bands.middle,
        "bb_lower": bands.lower,
    }
    places = _places(float(prices[-1]))
    before, now = (_figures(series, back, places) for back in (1, 0))
    return Reading(float(prices[-1]), now, crossings(before, now))


def _figures(series: Mapping[str, Floats], back: int, places: int) -> Figures:
    found = {name: last(values, back=back) for name, values in series.items()}
    rounded = {name: _rounded(value, 10 if name == "rsi" else places) for name, value in found.items()}
    line, signal = rounded["macd"], rounded["signal"]
    hist = None if line is None or signal is None else _rounded(line - signal, places)
    return Figures(**rounded, hist=hist)


def _places(price: float) -> int:
    """Decimals that are twelve digits of such a price."""
    return 12 - floor(log10(abs(price))) if price and isfinite(price) else 12


def _rounded(value: float | None, places: int) -> float | None:
    return None if value is None else round(value, places)
