"""How far prices reach, and channels around them."""

from __future__ import annotations

from quantdeck.backtesting.engine.figures.averages import from_window
from quantdeck.domain import windows
from quantdeck.domain.arrays import Floats, np, on_whole_bars
from quantdeck.domain.candles import Bars
from quantdeck.domain.indicators import atr, deviation, ema, sma, typical_price

__all__ = ["band", "channel", "highest", "keltner_middle", "lowest", "mass_index", "median_price"]


def median_price(bars: Bars) -> Floats:
    """Halfway between high and low."""
    return bars.low + (bars.high - bars.low) / 2.0


def highest(x: Floats, period: int) -> Floats:
    """The greatest of `period` values, this one included: no close is above it."""
    return on_whole_bars(lambda values: from_window(windows.greatest, values, period), x)


def lowest(x: Floats, period: int) -> Floats:
    """The least of `period` values, this one included."""
    return on_whole_bars(lambda values: from_window(windows.least, values, period), x)


def band(x: Floats, period: int, width: float) -> Floats:
    """The mean, and so many deviations above it; below it for a width below zero."""
    return _beside(sma(x, period), deviation(x, period), width)


def keltner_middle(bars: Bars, period: int) -> Floats:
    """The EMA of the typical price."""
    return ema(typical_price(bars.high, bars.low, bars.close), period)


def channel(bars: Bars, period: int, atr_period: int, width: float) -> Floats:
    """That EMA, and so many average true ranges above it; below it for a width below zero."""
    return _beside(keltner_middle(bars, period), atr(bars.high, bars.low, bars.close, atr_period), width)


def mass_index(bars: Bars, ema_period: int, sum_period: int) -> Floats:
    """The sum of how much wider than its own EMA the EMA of the bars' reach is. Where nothing reaches, that is 0."""
    once = ema(bars.high - bars.low, ema_period)
    ratio = on_whole_bars(
        lambda one, two: np.divide(one, two, out=np.zeros_like(one), where=two > 0), once, ema(once, ema_period)
    )
    return on_whole_bars(lambda values: from_window(windows.sums, values, sum_period), ratio)


def _beside(middle: Floats, reach: Floats, width: float) -> Floats:
    return on_whole_bars(lambda at, far: at + width * far, middle, reach)
