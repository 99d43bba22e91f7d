"""Which way prices go, and how decidedly."""

from __future__ import annotations

from quantdeck.domain.arrays import Floats, np, on_whole_bars
from quantdeck.domain.candles import Bars
from quantdeck.domain.indicators import atr, wilder
from quantdeck.domain.windows import greatest

__all__ = ["adx", "aroon_down", "aroon_up", "minus_di", "parabolic_sar", "plus_di"]

_STEP, _FASTEST = 0.02, 0.2


def plus_di(bars: Bars, period: int) -> Floats:
    """Wilder's average of upward moves of the high, in percent of that of the true range; 0 where nothing moves."""
    up, down = _moves(bars)
    return _in_true_ranges(bars, period, np.where((up > down) & (up > 0.0), up, 0.0 * (up + down)))


def minus_di(bars: Bars, period: int) -> Floats:
    """The same of downward moves of the low."""
    up, down = _moves(bars)
    return _in_true_ranges(bars, period, np.where((down > up) & (down > 0.0), down, 0.0 * (up + down)))


def adx(bars: Bars, period: int) -> Floats:
    """Wilder's average of how far the two are apart, in percent of their sum."""
    return wilder(on_whole_bars(_apart, plus_di(bars, period), minus_di(bars, period)), period)


def aroon_up(bars: Bars, period: int) -> Floats:
    """100 at the highest high of `period` + 1 bars, 0 if that is the oldest; of equal ones the newest counts."""
    return _aroon(bars.high, period)


def aroon_down(bars: Bars, period: int) -> Floats:
    """The same of the low."""
    return _aroon(-bars.low, period)


def parabolic_sar(bars: Bars) -> Floats:
    """Wilder's stop and reverse, 0.02 to 0.2. It sets out at the second bar, upwards if that closed higher."""
    if len(bars) < 2:
        return np.full(len(bars), np.nan)
    high, low, close = bars.high.tolist(), bars.low.tolist(), bars.close.tolist()
    up = close[1] > close[0]
    at, extreme = (low[0], high[0]) if up else (high[0], low[0])
    speed, found = _STEP, [np.nan, at]
    for index in range(2, len(high)):
        at += speed * (extreme - at)
        furthest = high[index] if up else low[index]
        if low[index] < at if up else high[index] >= at:
            up, at, speed = not up, extreme, _STEP
            extreme = high[index] if up else low[index]
        elif furthest > extreme if up else furthest < extreme:
            extreme, speed = furthest, min(speed + _STEP, _FASTEST)
        # It stays outside of the two bars before.
        at = min(at, low[index - 1], low[index - 2]) if up else max(at, high[index - 1], high[index - 2])
        found.append(at)
    return np.array(found)


def _moves(bars: Bars) -> tuple[Floats, Floats]:
    """How much higher each high and how much lower each low is than the one before; the first bar has none."""
    none = np.full(min(len(bars), 1), np.nan)
    return np.concatenate((none, np.diff(bars.high))), np.concatenate((none, -np.diff(bars.low)))


def _in_true_ranges(bars: Bars, period: int, moves: Floats) -> Floats:
    reach = atr(bars.high, bars.low, bars.close, period)
    return on_whole_bars(
        lambda move, far: np.divide(move, far, out=np.zeros_like(far), where=far > 0.0) * 100.0,
        wilder(moves, period),
        reach,
    )


def _apart(plus: Floats, minus: Floats) -> Floats:
    both = plus + minus
    return np.divide(np.abs(plus - minus), both, out=np.zeros_like(both), where=both > 0.0) * 100.0


def _aroon(x: Floats, period: int) -> Floats:
    """How recent the highest rank of each window is, in percent. Of equal values the newer ranks higher."""
    order = x.argsort(kind="stable")
    rank = np.empty(len(x))
    rank[order] = np.arange(len(x))
    found = np.full(len(x), np.nan)
    if len(x) > period:
        newest = np.arange(period, len(x))
        bars = newest - order[greatest(rank, period + 1).astype(np.int64)]
        found[period:] = (period - bars) / period * 100.0
    return found
