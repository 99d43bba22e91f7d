"""How far and how straight prices have moved."""

from __future__ import annotations

from quantdeck.backtesting.engine.figures.averages import earlier, finite, from_window
from quantdeck.backtesting.engine.figures.ranges import highest, lowest, median_price
from quantdeck.domain.arrays import Floats, np, on_whole_bars
from quantdeck.domain.candles import Bars
from quantdeck.domain.indicators import ema, sma, typical_price
from quantdeck.domain.windows import sums

__all__ = ["awesome", "cci", "cmo", "dpo", "macd", "roc", "stochastic_d", "stochastic_k", "williams_r"]

_CELLS = 4_000_000
"""How many values of windows are looked at in one go: 32 MB."""


def roc(x: Floats, period: int) -> Floats:
    """The change over `period` bars in percent."""

    def of(values: Floats) -> Floats:
        before = earlier(values, period)
        return (values - before) / before * 100.0

    return on_whole_bars(of, x)


def cmo(x: Floats, period: int) -> Floats:
    """Gains less losses of `period` moves, in percent of all movement: -100 to 100. Undefined where nothing moves."""

    def of(values: Floats) -> Floats:
        found = np.full(len(values), np.nan)
        if len(values) > period:
            moves = np.diff(values)
            gains, losses = sums(np.maximum(moves, 0.0), period), sums(np.maximum(-moves, 0.0), period)
            found[period:] = (gains - losses) / (gains + losses) * 100.0
        return found

    return on_whole_bars(of, x)


def dpo(x: Floats, period: int) -> Floats:
    """How far a value is above the average of period / 2 + 1 bars before."""
    before = on_whole_bars(lambda values: earlier(sma(values, period), period // 2 + 1), x)
    return on_whole_bars(np.subtract, x, before)


def macd(x: Floats, short: int, long: int) -> Floats:
    """The MACD line: the fast EMA less the slow one."""
    return on_whole_bars(np.subtract, ema(x, short), ema(x, long))


def stochastic_k(bars: Bars, period: int) -> Floats:
    """Where the close is in the reach of `period` bars, 0 to 100. Undefined where that is of one price."""
    return _place(bars, period) * 100.0


def stochastic_d(bars: Bars, period: int) -> Floats:
    """The mean of the last three of those."""
    return sma(stochastic_k(bars, period), 3)


def williams_r(bars: Bars, period: int) -> Floats:
    """How far the close is below the top of that reach: -100 to 0."""
    top, bottom = highest(bars.high, period), lowest(bars.low, period)
    return on_whole_bars(lambda high, low, close: (high - close) / (high - low) * -100.0, top, bottom, bars.close)


def cci(bars: Bars, period: int) -> Floats:
    """How far the typical price is from its mean, in 0.015 of its mean deviation; 0 where nothing moves."""
    price = typical_price(bars.high, bars.low, bars.close)
    middle = sma(price, period)
    spread = from_window(_mean_deviation, price, period)
    away = price - middle
    return finite(np.where(spread == 0.0, 0.0 * away, away / (0.015 * spread)))


def awesome(bars: Bars, short: int, long: int) -> Floats:
    """The mean of `short` medians less that of `long`."""
    price = median_price(bars)
    return on_whole_bars(np.subtract, sma(price, short), sma(price, long))


def _place(bars: Bars, period: int) -> Floats:
    top, bottom = highest(bars.high, period), lowest(bars.low, period)
    return on_whole_bars(lambda high, low, close: (close - low) / (high - low), top, bottom, bars.close)


def _mean_deviation(x: Floats, period: int) -> Floats:
    """The mean distance from the window's mean; each window is gone through, for there is no shorter way."""
    middle = sma(x, period)[period - 1 :]
    every = np.lib.stride_tricks.sliding_window_view(x, period)
    found, rows = np.empty(len(every)), max(_CELLS // period, 1)
    for begin in range(0, len(every), rows):
        part = slice(begin, begin + rows)
        found[part] = np.abs(every[part] - middle[part, None]).mean(axis=1)
    return found
