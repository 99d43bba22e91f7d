"""The indicators once more, in plain Python and plain loops: what the ones in use are held against.

Nothing here is shared with the package. Where floats would lose digits, sums are taken in fractions, so that a
difference is the other's. None is what does not exist.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import pairwise

Series = list[float]
Figures = list[float | None]


def mean(values: Series) -> float:
    return float(sum(map(Fraction, values)) / len(values))


def spread(values: Series, divisor: int) -> float | None:
    if divisor < 1:
        return None
    exact = [Fraction(value) for value in values]
    middle = Fraction(sum(exact)) / len(exact)
    variance = Fraction(sum((value - middle) ** 2 for value in exact)) / divisor
    with localcontext() as context:
        context.prec = 40
        return float((Decimal(variance.numerator) / Decimal(variance.denominator)).sqrt())


def windows(values: Series, period: int):
    for end in range(1, len(values) + 1):
        yield values[end - period : end] if end >= period else None


def sma(values: Series, period: int) -> Figures:
    return [None if window is None else mean(window) for window in windows(values, period)]


def deviation(values: Series, period: int, *, sample: bool = False) -> Figures:
    return [None if window is None else spread(window, period - sample) for window in windows(values, period)]


def smoothed(values: Series, period: int, weight: float) -> Figures:
    found: Figures = []
    for index, value in enumerate(values):
        before = found[-1] if found else None
        if index == period - 1:
            found.append(mean(values[:period]))
        else:
            found.append(None if before is None else before * (1 - weight) + value * weight)
    return found


def ema(values: Series, period: int) -> Figures:
    return smoothed(values, period, 2 / (period + 1))


def wilder(values: Series, period: int) -> Figures:
    return smoothed(values, period, 1 / period)


def difference(left: Figures, right: Figures) -> Figures:
    return [None if a is None or b is None else a - b for a, b in zip(left, right, strict=True)]


def later(figure: Callable[[Series, int], Figures], values: Figures, period: int) -> Figures:
    """A figure over what there is of a series that starts with nothing."""
    start = values.count(None)
    return [None] * start + figure([value for value in values if value is not None], period)


def macd(values: Series, fast: int, slow: int, signal: int) -> tuple[Figures, Figures, Figures]:
    line = difference(ema(values, fast), ema(values, slow))
    average = later(ema, line, signal)
    return line, average, difference(line, average)


def rsi(values: Series, period: int) -> Figures:
    moves = [after - before for before, after in pairwise(values)]
    gains = wilder([max(move, 0.0) for move in moves], period)
    losses = wilder([max(-move, 0.0) for move in moves], period)
    found: Figures = [None] if values else []
    for gain, loss in zip(gains, losses, strict=True):
        if gain is None or loss is None or gain + loss == 0:
            found.append(None)
        elif loss == 0:
            found.append(100.0)
        else:
            found.append(100 - 100 / (1 + gain / loss))
    return found


def bollinger(values: Series, period: int, width: float) -> tuple[Figures, Figures, Figures]:
    upper: Figures = []
    lower: Figures = []
    for window in windows(values, period):
        if window is None:
            upper.append(None)
            lower.append(None)
        else:
            middle, reach = mean(window), width * (spread(window, period) or 0.0)
            upper.append(middle + reach)
            lower.append(middle - reach)
    return upper, sma(values, period), lower


def true_range(high: Series, low: Series, close: Series) -> Figures:
    found: Figures = []
    for index in range(len(close)):
        if index == 0:
            found.append(None)
        else:
            before = close[index - 1]
            found.append(max(high[index] - low[index], abs(high[index] - before), abs(low[index] - before)))
    return found


def atr(high: Series, low: Series, close: Series, period: int) -> Figures:
    return later(wilder, true_range(high, low, close), period) if close else []


def vwap(high: Series, low: Series, close: Series, volume: Series) -> Figures:
    found: Figures = []
    money, weight = Fraction(0), Fraction(0)
    for bar in zip(high, low, close, volume, strict=True):
        typical = Fraction(sum(map(Fraction, bar[:3]))) / 3
        money += typical * Fraction(bar[3])
        weight += Fraction(bar[3])
        found.append(float(money / weight) if weight else None)
    return found


def returns(close: Series) -> Figures:
    found: Figures = [None] if close else []
    for before, after in pairwise(close):
        move = (after - before) / before if before > 0 and after > 0 else math.inf
        found.append(move if math.isfinite(move) else None)
    return found


def volatility(high: Series, low: Series, close: Series) -> tuple[float | None, float | None, float | None]:
    high, low, close = high[-25:], low[-25:], close[-25:]
    sound = [value for value in returns(close) if value is not None]
    pairs = list(zip(returns(close), true_range(high, low, close), strict=True))[-14:]
    ranges = [reach for move, reach in pairs if move is not None and reach is not None]
    return (
        spread(sound, len(sound) - 1) if len(sound) > 1 else None,
        mean(ranges) if ranges else None,
        max(high[-24:]) - min(low[-24:]) if high else None,
    )
