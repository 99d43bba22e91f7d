"""Prices weighed by what was traded at them."""

from __future__ import annotations

from quantdeck.backtesting.engine.figures.averages import finite, from_window
from quantdeck.domain.arrays import Floats, Mask, np, on_whole_bars
from quantdeck.domain.candles import Bars
from quantdeck.domain.indicators import ema, typical_price
from quantdeck.domain.windows import sums

__all__ = [
    "ad",
    "chaikin_oscillator",
    "klinger",
    "money_flow",
    "negative_volume_index",
    "obv",
    "positive_volume_index",
    "vwap",
]

_BASE = 1000.0
"""Where both volume indices begin."""


def obv(bars: Bars) -> Floats:
    """The volume of bars that closed higher less that of bars that closed lower, from 0 at the first."""
    return _from_first(np.cumsum(np.sign(np.diff(bars.close)) * bars.volume[1:]), bars, 0.0)


def ad(bars: Bars) -> Floats:
    """Each bar's volume by where it closed in its reach (1 at the high, -1 at the low), from 0 at the first."""
    return _from_first(np.cumsum(_flow(bars)[1:]), bars, 0.0)


def positive_volume_index(bars: Bars) -> Floats:
    """It moves as the close does in bars of more volume than the one before, from 1000."""
    return _index(bars, np.diff(bars.volume) > 0.0)


def negative_volume_index(bars: Bars) -> Floats:
    """It moves as the close does in bars of less volume than the one before, from 1000."""
    return _index(bars, np.diff(bars.volume) < 0.0)


def money_flow(bars: Bars, period: int) -> Floats:
    """Chaikin's: volume by where bars closed in their reach, as a share of all. Undefined where none was traded."""
    return _share(_flow(bars), bars.volume, period)


def vwap(bars: Bars, period: int) -> Floats:
    """The typical price of `period` bars weighed by volume. Undefined where none was traded."""
    return _share(typical_price(bars.high, bars.low, bars.close) * bars.volume, bars.volume, period)


def chaikin_oscillator(bars: Bars, short: int, long: int) -> Floats:
    """The fast EMA of `ad` less the slow one."""
    line = ad(bars)
    return on_whole_bars(np.subtract, ema(line, short), ema(line, long))


def klinger(bars: Bars, short: int, long: int) -> Floats:
    """The fast EMA of force less the slow one. Force is volume by the move of the close, in reaches of the bar."""
    moves, reach = np.diff(bars.close), (bars.high - bars.low)[1:]
    force = bars.volume[1:] * np.divide(moves, reach, out=np.zeros_like(moves), where=reach > 0.0)
    force = _from_first(force, bars, np.nan)
    return on_whole_bars(np.subtract, ema(force, short), ema(force, long))


def _flow(bars: Bars) -> Floats:
    reach = bars.high - bars.low
    where = (bars.close - bars.low) - (bars.high - bars.close)
    return np.divide(where, reach, out=np.zeros_like(reach), where=reach > 0.0) * bars.volume


def _index(bars: Bars, moving: Mask) -> Floats:
    growth: Floats = np.where(moving, bars.close[1:] / bars.close[:-1], 1.0)
    grown = np.cumprod(growth, dtype=np.float64)
    return _from_first(_BASE * grown, bars, _BASE)


def _from_first(later: Floats, bars: Bars, first: float) -> Floats:
    """What stands from the second bar on, after what stands at the first; NaN for what is not finite."""
    return finite(np.concatenate((np.full(min(len(bars), 1), first), later)))


def _share(amounts: Floats, volume: Floats, period: int) -> Floats:
    total, weight = (from_window(sums, one, period) for one in (amounts, volume))
    return on_whole_bars(np.divide, total, weight)
