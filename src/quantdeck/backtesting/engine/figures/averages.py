"""Averages that `domain/indicators.py` does not have, and the value of some bars ago."""

from __future__ import annotations

from collections.abc import Callable

from quantdeck.domain.arrays import Floats, np, on_whole_bars
from quantdeck.domain.candles import Bars
from quantdeck.domain.indicators import ema
from quantdeck.domain.windows import sums, sums_from_within

__all__ = ["dema", "earlier", "finite", "frama", "from_window", "kama", "tema", "wma", "zlema"]


def earlier(x: Floats, bars: int) -> Floats:
    """The figure of so many bars ago, or what that bar had instead of one."""
    found = np.full(len(x), np.nan)
    found[bars:] = x[: max(len(x) - bars, 0)]
    return found


def finite(x: Floats) -> Floats:
    """The same, without what has grown beyond all numbers."""
    return np.where(np.isfinite(x), x, np.nan)


def dema(x: Floats, period: int) -> Floats:
    once = ema(x, period)
    return on_whole_bars(lambda one, two: 2.0 * one - two, once, ema(once, period))


def tema(x: Floats, period: int) -> Floats:
    once = ema(x, period)
    twice = ema(once, period)
    return on_whole_bars(lambda one, two, three: 3.0 * (one - two) + three, once, twice, ema(twice, period))


def wma(x: Floats, period: int) -> Floats:
    """The newest value weighs `period`, the one before it one less, down to 1."""
    return on_whole_bars(lambda values: from_window(_wma, values, period), x)


def zlema(x: Floats, period: int) -> Floats:
    """The EMA of what each value would be, had it moved on as far as it has since (period - 1) / 2 bars ago."""
    lag = (period - 1) // 2
    return ema(on_whole_bars(lambda values: values + (values - earlier(values, lag)), x), period)


def kama(x: Floats, period: int, fast: int, slow: int) -> Floats:
    """Kaufman's: the straighter the way of the last `period` bars, the faster. It sets out from the value before."""
    quick, lazy = 2.0 / (fast + 1), 2.0 / (slow + 1)

    def of(values: Floats) -> Floats:
        found = np.full(len(values), np.nan)
        if len(values) > period:
            way = sums(np.abs(np.diff(values)), period)
            straight = np.abs(values[period:] - values[:-period])
            share = np.divide(straight, way, out=np.zeros_like(way), where=way > 0)
            found[period:] = _followed(float(values[period - 1]), (share * (quick - lazy) + lazy) ** 2, values[period:])
        return found

    return on_whole_bars(of, x)


def frama(bars: Bars, sc: float, fc: int, alpha: float) -> Floats:
    """It sets out from the close of bar `fc` and goes (1 + sc * |close - median| / range) ** alpha of each way."""
    found = np.full(len(bars), np.nan)
    if len(bars) > fc:
        part = bars[fc:]
        reach = part.high - part.low
        body = np.abs(part.close - (part.low + reach / 2.0))
        share = np.divide(body, reach, out=np.zeros_like(reach), where=reach > 0)
        share = np.power(1.0 + share * sc, alpha)[1:]
        start = float(part.close[0])
        found[fc:] = [start, *_followed(start, share, part.close[1:])]
    return finite(found)


def from_window(figure: Callable[[Floats, int], Floats], x: Floats, period: int) -> Floats:
    """What a figure makes of each window, at the newest value of it."""
    found = np.full(len(x), np.nan)
    if len(x) >= period:
        found[period - 1 :] = figure(x, period)
    return found


def _wma(x: Floats, period: int) -> Floats:
    reference, (total, by_place) = sums_from_within(x, period, lambda step, _: step, lambda step, place: step * place)
    newest = np.arange(period - 1, len(x)) % period  # its place, counted from the reference
    return reference + (by_place + (period - newest) * total) * 2.0 / (period * (period + 1))


def _followed(at: float, shares: Floats, values: Floats) -> list[float]:
    """From there on, so much of each way to the next value."""
    found = []
    for share, value in zip(shares.tolist(), values.tolist(), strict=True):
        at += share * (value - at)
        found.append(at)
    return found
