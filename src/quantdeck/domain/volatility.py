"""How much a price moves. Everything is per bar and a fraction (0.023 is 2.3 %); nothing is annualised."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from quantdeck.domain.arrays import Floats, last, np, on_whole_bars
from quantdeck.domain.indicators import deviation, sma, true_range

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["BARS_NEEDED", "BARS_USED", "Volatility", "realised", "returns", "volatility"]

RETURNS = 24
TRUE_RANGES = 14

BARS_NEEDED = TRUE_RANGES + 1
"""With fewer there is no mean of true ranges, since each looks at the close before."""

BARS_USED = RETURNS + 1
"""The newest bars that `volatility` looks at; more are welcome and change nothing."""


@dataclass(frozen=True, slots=True)
class Volatility:
    """`atr` and `high_low_range` are in units of the price. None is what cannot be computed."""

    volatility: float | None
    atr: float | None
    high_low_range: float | None


def returns(close: ArrayLike) -> Floats:
    """The simple return from each close to the next; none where either is not above zero."""
    return on_whole_bars(_returns, close)


def realised(close: ArrayLike, period: int = 20) -> Floats:
    """The standard deviation, as of a sample, of the last `period` returns."""
    return deviation(returns(close), period, sample=True)


def volatility(high: ArrayLike, low: ArrayLike, close: ArrayLike) -> Volatility:
    """Of the newest bars: the deviation (of a sample) of 24 returns, the mean of 14 true ranges, the reach of 24 bars.

    With fewer bars they are over what there is. A pair of bars with a close that is not above zero says nothing about
    either return or true range and is skipped; so is a bar that is not finite.
    """
    bars = np.asarray([high, low, close], dtype=np.float64)
    highs, lows, closes = bars[:, np.isfinite(bars).all(axis=0)][:, -BARS_USED:]
    moves = returns(closes)
    sound = np.isfinite(moves)
    spread = deviation(moves, int(sound.sum()), sample=True) if sound.any() else moves
    ranges = true_range(highs, lows, closes)[-TRUE_RANGES:]
    ranges = ranges[np.isfinite(ranges) & sound[-TRUE_RANGES:]]
    reach = [float(highs[-RETURNS:].max()) - float(lows[-RETURNS:].min())] if len(highs) else []
    return Volatility(
        volatility=last(spread[sound]),
        atr=last(sma(ranges, len(ranges))) if len(ranges) else None,
        high_low_range=last(reach),
    )


def _returns(close: Floats) -> Floats:
    before = np.concatenate(([np.nan], close[:-1]))
    moves: Floats = (close - before) / before
    return np.where((close > 0) & (before > 0), moves, np.nan)
