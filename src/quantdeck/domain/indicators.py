"""Indicators over bars, oldest first: one definition for every server, each a plain function from series to series.

A figure stands at the bar that completes it, and is NaN before its first one and where it is undefined; `arrays.last`
and `arrays.listed` read that as None. Bars that are not finite are left out as if they were missing (`on_whole_bars`).
To grow: write an indicator as a function of finite arrays and hand it to `on_whole_bars`; what is made of others
needs not even that.

TA-Lib does what looks back on itself. Sums over a window are ours: its running ones keep the rounding errors of all
that has left the window, so that one bad print of 1e300 makes every later average wrong, and a flat series is not
equal to its own average. Nor are its MACD and RSI used: the first starts its fast EMA late, the second gives 0 where
nothing moves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from quantdeck.domain.arrays import Floats, np, on_whole_bars, talib
from quantdeck.domain.windows import Term, sums_from_within

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = [
    "Bands",
    "Macd",
    "atr",
    "bollinger",
    "deviation",
    "ema",
    "macd",
    "rsi",
    "sma",
    "true_range",
    "typical_price",
    "vwap",
    "wilder",
]

_STILL = 1e-290
"""Averages of moves below this have lost their digits (a double has none to spare near 1e-308): nothing moves."""

_QUIETER = 2.0**-520

_FEW = 48
"""Windows up to here are summed up step by step: it is quicker."""

_CACHED = 16_384
"""So many windows at a time, which a processor's cache holds: it takes half as long."""

_LONGEST = 100_000
"""What TA-Lib takes."""


class Macd(NamedTuple):
    line: Floats
    signal: Floats
    histogram: Floats


class Bands(NamedTuple):
    upper: Floats
    middle: Floats
    lower: Floats


def sma(values: ArrayLike, period: int) -> Floats:
    """The mean of the last `period` values."""
    return _windowed(_mean, values, period)


def deviation(values: ArrayLike, period: int, *, sample: bool = False) -> Floats:
    """The standard deviation of the last `period` values: of the population, or of a sample, which takes two."""
    return _windowed(lambda x, length: _spread(x, length, length - sample), values, period)


def ema(values: ArrayLike, period: int) -> Floats:
    """The exponential average with weight 2 / (period + 1), seeded with the mean of the first `period` values."""
    return _windowed(lambda x, length: _recursive(talib.EMA, x, length), values, period)


def wilder(values: ArrayLike, period: int) -> Floats:
    """Wilder's average: exponential with weight 1 / period, seeded with the mean of the first `period` values."""
    return _windowed(lambda x, length: _recursive(talib.RMA, x, length), values, period)


def macd(values: ArrayLike, fast: int = 12, slow: int = 26, signal: int = 9) -> Macd:
    """The fast EMA less the slow one, the EMA of that line, and how far the line is above it."""
    line = on_whole_bars(np.subtract, ema(values, fast), ema(values, slow))
    average = ema(line, signal)
    return Macd(line, average, on_whole_bars(np.subtract, line, average))


def rsi(values: ArrayLike, period: int = 14) -> Floats:
    """Wilder's RSI, 0 to 100: the share of gains in all movement. Undefined where nothing has moved."""
    return _windowed(_rsi, values, period)


def bollinger(values: ArrayLike, period: int = 20, width: float = 2.0) -> Bands:
    """The mean, and `width` deviations of the population to either side of it."""
    middle, spread = sma(values, period), deviation(values, period)
    upper = on_whole_bars(lambda at, reach: at + width * reach, middle, spread)
    lower = on_whole_bars(lambda at, reach: at - width * reach, middle, spread)
    return Bands(upper, middle, lower)


def true_range(high: ArrayLike, low: ArrayLike, close: ArrayLike) -> Floats:
    """How far each bar reaches, the gap from the close before included; so the first bar has none."""
    return on_whole_bars(_true_range, high, low, close)


def atr(high: ArrayLike, low: ArrayLike, close: ArrayLike, period: int = 14) -> Floats:
    """Wilder's average of the true range."""
    return wilder(true_range(high, low, close), period)


def typical_price(high: ArrayLike, low: ArrayLike, close: ArrayLike) -> Floats:
    """The mean of the three prices."""
    return on_whole_bars(_typical_price, high, low, close)


def vwap(high: ArrayLike, low: ArrayLike, close: ArrayLike, volume: ArrayLike) -> Floats:
    """The typical price weighted by volume, over all bars so far. Undefined while there has been no volume."""
    return on_whole_bars(_vwap, high, low, close, volume)


def _windowed(figure: Callable[[Floats, int], Floats], values: ArrayLike, period: int) -> Floats:
    """A figure that needs `period` values; what it gives stands at the newest of them."""
    if not 1 <= period <= _LONGEST:
        raise ValueError(f"a period is 1 to {_LONGEST} bars, not {period}")

    def of(x: Floats) -> Floats:
        given = figure(x, period) if len(x) >= period else x[:0]
        return np.concatenate((np.full(len(x) - len(given), np.nan), given))

    return on_whole_bars(of, values)


def _recursive(average: Callable[[Floats, int], Floats], x: Floats, period: int) -> Floats:
    """An average that looks back on itself. It never leaves the range of its values, except by rounding: the clip."""
    found = average(x, period)
    return np.clip(found, np.minimum.accumulate(x), np.maximum.accumulate(x), out=found)


def _mean(x: Floats, period: int) -> Floats:
    within, (total,) = _from_within(x, period, _distance)
    return within + total / period


def _spread(x: Floats, period: int, divisor: int) -> Floats:
    found = _root(x, period, divisor)
    loud = ~np.isfinite(found)
    if (
        loud.any()
    ):  # the squares overflowed; scaled by a power of two nothing is lost, and quiet windows stay as they are
        found[loud] = _root(x * _QUIETER, period, divisor)[loud] / _QUIETER
    return found


def _root(x: Floats, period: int, divisor: int) -> Floats:
    _, (total, squares) = _from_within(x, period, _distance, _square)
    root: Floats = np.sqrt(np.maximum(squares - total * total / period, 0.0) / divisor)
    return root


def _distance(step: Floats, _: Floats) -> Floats:
    return step


def _square(step: Floats, _: Floats) -> Floats:
    return step * step


def _from_within(x: Floats, period: int, *terms: Term) -> tuple[Floats, list[Floats]]:
    """As `sums_from_within`, by so many steps for each window where these are few."""
    if period > _FEW:
        return sums_from_within(x, period, *terms)
    newest = x[period - 1 :]
    found = [np.zeros_like(newest) for _ in terms]
    for begin in range(0, len(newest), _CACHED):
        totals = [total[begin : begin + _CACHED] for total in found]
        for step in _steps(x[begin : begin + _CACHED + period - 1], period):
            for total, term in zip(totals, terms, strict=True):
                np.add(total, term(step, step), out=total)
    return newest, found


def _steps(x: Floats, period: int) -> Iterator[Floats]:
    """From the newest value of each window to each of the others.

    Being differences inside the window they are small where it is quiet and nothing where it is flat, whatever the
    size of the values or of what has been before.
    """
    for back in range(1, period):
        yield x[period - 1 - back : len(x) - back] - x[period - 1 :]


def _rsi(x: Floats, period: int) -> Floats:
    if len(x) <= period:
        return np.full(0, np.nan)
    moves = np.diff(x)
    gains = talib.RMA(np.maximum(moves, 0.0), period)
    losses = talib.RMA(np.maximum(np.negative(moves, out=moves), 0.0, out=moves), period)
    moved = np.add(gains, losses, out=losses)
    share: Floats = np.divide(gains, moved, out=gains)
    share *= 100.0
    share[moved <= _STILL] = np.nan
    return share


def _true_range(high: Floats, low: Floats, close: Floats) -> Floats:
    before = np.concatenate(([np.nan], close[:-1]))
    return np.maximum(high, before) - np.minimum(low, before)


def _typical_price(high: Floats, low: Floats, close: Floats) -> Floats:
    return low + ((high - low) + (close - low)) / 3.0  # so that a bar of one price has that price


def _vwap(high: Floats, low: Floats, close: Floats, volume: Floats) -> Floats:
    if not len(volume):
        return volume
    price, weight = _typical_price(high, low, close), np.maximum(volume, 0.0)
    weight = weight / weight.max()  # or the product overflows before the mean does
    least = np.minimum.accumulate(np.where(weight > 0, price, np.inf))
    most = np.maximum.accumulate(np.where(weight > 0, price, -np.inf))
    average: Floats = np.cumsum(weight * price) / np.cumsum(weight)
    return np.clip(average, least, most)
