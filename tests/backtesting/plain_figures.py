"""Every indicator type once more, bar by bar and window by window, in plain Python.

Nothing here is shared with the package. A bar is (open, high, low, close, volume); None is what does not exist.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import pairwise
from typing import Any

from tests.domain import reference

Bar = tuple[float, float, float, float, float]
Figures = list[float | None]
Numbers = Mapping[str, Any]

OPEN, HIGH, LOW, CLOSE, VOLUME = range(5)


def plain(kind: str, bars: list[Bar], source: Figures, numbers: Numbers) -> Figures:
    """The figure of one type."""
    return [None if one is None or not math.isfinite(one) else one for one in PLAIN[kind](bars, source, numbers)]


def on_defined(figure: Callable[..., Figures], *series: Figures) -> Figures:
    """A figure over the bars in which all of these exist."""
    there = [index for index, row in enumerate(zip(*series, strict=True)) if None not in row]
    found = figure(*([one[index] for index in there] for one in series))
    spread: Figures = [None] * len(series[0])
    for index, value in zip(there, found, strict=True):
        spread[index] = value
    return spread


def column(bars: list[Bar], which: int) -> list[float]:
    return [bar[which] for bar in bars]


def typical(bars: list[Bar]) -> list[float]:
    return [(bar[HIGH] + bar[LOW] + bar[CLOSE]) / 3 for bar in bars]


def median(bars: list[Bar]) -> list[float]:
    return [(bar[HIGH] + bar[LOW]) / 2 for bar in bars]


def minus(left: Figures, right: Figures) -> Figures:
    return reference.difference(left, right)


def sma(x: Figures, period: int) -> Figures:
    return on_defined(lambda values: reference.sma(values, period), x)


def ema(x: Figures, period: int) -> Figures:
    return on_defined(lambda values: reference.ema(values, period), x)


def wilder(x: Figures, period: int) -> Figures:
    return on_defined(lambda values: reference.wilder(values, period), x)


def each_window(x: Figures, period: int, figure: Callable[[list[float]], float | None]) -> Figures:
    def of(values: list[float]) -> Figures:
        return [None if window is None else figure(window) for window in reference.windows(values, period)]

    return on_defined(of, x)


def ratio(above: float, below: float, otherwise: float | None = None) -> float | None:
    return above / below if below else otherwise


def dema(x: Figures, period: int) -> Figures:
    once = ema(x, period)
    return [None if b is None or a is None else 2 * a - b for a, b in zip(once, ema(once, period), strict=True)]


def tema(x: Figures, period: int) -> Figures:
    once = ema(x, period)
    twice = ema(once, period)
    thrice = ema(twice, period)
    return [
        None if a is None or b is None or c is None else 3 * a - 3 * b + c
        for a, b, c in zip(once, twice, thrice, strict=True)
    ]


def wma(x: Figures, period: int) -> Figures:
    def of(window: list[float]) -> float:
        total = sum(Fraction(value) * (place + 1) for place, value in enumerate(window))
        return float(total / (period * (period + 1) // 2))

    return each_window(x, period, of)


def zlema(x: Figures, period: int) -> Figures:
    lag = (period - 1) // 2

    def ahead(values: list[float]) -> Figures:
        return [None if at < lag else 2 * value - values[at - lag] for at, value in enumerate(values)]

    return ema(on_defined(ahead, x), period)


def kama(x: Figures, period: int, fast: int, slow: int) -> Figures:
    def of(values: list[float]) -> Figures:
        found: Figures = [None] * len(values)
        before = values[period - 1] if len(values) >= period else 0.0
        for at in range(period, len(values)):
            way = math.fsum(abs(values[i] - values[i - 1]) for i in range(at - period + 1, at + 1))
            straight = ratio(abs(values[at] - values[at - period]), way, 0.0) or 0.0
            weight = (straight * (2 / (fast + 1) - 2 / (slow + 1)) + 2 / (slow + 1)) ** 2
            before = before + weight * (values[at] - before)
            found[at] = before
        return found

    return on_defined(of, x)


def frama(bars: list[Bar], sc: float, fc: int, alpha: float) -> Figures:
    found: Figures = [None] * len(bars)
    if len(bars) > fc:
        found[fc] = before = bars[fc][CLOSE]
        for at in range(fc + 1, len(bars)):
            _, high, low, close, _ = bars[at]
            dimension = 1 + (ratio(abs(close - (high + low) / 2), high - low, 0.0) or 0.0) * sc
            try:
                weight = math.pow(dimension, alpha)
            except (ValueError, OverflowError):
                weight = math.nan
            before = before + (close - before) * weight
            found[at] = before
    return found


def cmo(x: Figures, period: int) -> Figures:
    def of(window: list[float]) -> float | None:
        moves = [b - a for a, b in pairwise(window)]
        gains, losses = math.fsum(m for m in moves if m > 0), math.fsum(-m for m in moves if m < 0)
        return ratio((gains - losses) * 100, gains + losses)

    return each_window(x, period + 1, of)


def roc(x: Figures, period: int) -> Figures:
    return each_window(x, period + 1, lambda window: ratio((window[-1] - window[0]) * 100, window[0]))


def dpo(x: Figures, period: int) -> Figures:
    def of(values: list[float]) -> Figures:
        average = reference.sma(values, period)
        back = period // 2 + 1
        return minus([*values], [average[at - back] if at >= back else None for at in range(len(values))])

    return on_defined(of, x)


def place(bars: list[Bar], period: int, figure: Callable[[float, float, float], float | None]) -> Figures:
    found: Figures = []
    for at in range(len(bars)):
        window = bars[max(at - period + 1, 0) : at + 1]
        top, bottom = max(bar[HIGH] for bar in window), min(bar[LOW] for bar in window)
        found.append(figure(top, bottom, bars[at][CLOSE]) if at >= period - 1 else None)
    return found


def stochastic(bars: list[Bar], period: int) -> Figures:
    return place(bars, period, lambda top, bottom, close: ratio((close - bottom) * 100, top - bottom))


def cci(bars: list[Bar], period: int) -> Figures:
    def of(window: list[float]) -> float | None:
        middle = reference.mean(window)
        spread = math.fsum(abs(value - middle) for value in window) / period
        return ratio(window[-1] - middle, 0.015 * spread, 0.0)

    return each_window([*typical(bars)], period, of)


def directional(bars: list[Bar], period: int) -> tuple[Figures, Figures]:
    plus: Figures = [None] if bars else []
    down: Figures = [None] if bars else []
    for before, bar in pairwise(bars):
        up_move, down_move = bar[HIGH] - before[HIGH], before[LOW] - bar[LOW]
        plus.append(up_move if up_move > down_move and up_move > 0 else 0.0)
        down.append(down_move if down_move > up_move and down_move > 0 else 0.0)
    reach = atr(bars, period)
    return tuple(  # type: ignore[return-value]
        [
            None if move is None or far is None else (ratio(move, far, 0.0) or 0.0) * 100
            for move, far in zip(wilder(moves, period), reach, strict=True)
        ]
        for moves in (plus, down)
    )


def adx(bars: list[Bar], period: int) -> Figures:
    plus, down = directional(bars, period)
    apart: Figures = [
        None if a is None or b is None else (ratio(abs(a - b), a + b, 0.0) or 0.0) * 100
        for a, b in zip(plus, down, strict=True)
    ]
    return wilder(apart, period)


def aroon(values: list[float], period: int) -> Figures:
    def of(window: list[float]) -> float:
        newest = max(at for at, value in enumerate(window) if value == max(window))
        return newest / period * 100

    return each_window([*values], period + 1, of)


def parabolic_sar(bars: list[Bar]) -> Figures:
    found: Figures = [None] * len(bars)
    rising, extreme, speed, sar = False, 0.0, 0.0, 0.0
    for at in range(1, len(bars)):
        _, high, low, close, _ = bars[at]
        if at == 1:
            rising, speed = close > bars[0][CLOSE], 0.02
            sar, extreme = (bars[0][LOW], bars[0][HIGH]) if rising else (bars[0][HIGH], bars[0][LOW])
        else:
            sar = sar + speed * (extreme - sar)
            if rising:
                if low < sar:
                    rising, sar, extreme, speed = False, extreme, low, 0.02
                elif high > extreme:
                    extreme, speed = high, min(speed + 0.02, 0.2)
            elif high >= sar:
                rising, sar, extreme, speed = True, extreme, high, 0.02
            elif low < extreme:
                extreme, speed = low, min(speed + 0.02, 0.2)
            two = bars[at - 2 : at]
            sar = min(sar, *(bar[LOW] for bar in two)) if rising else max(sar, *(bar[HIGH] for bar in two))
        found[at] = sar
    return found


def atr(bars: list[Bar], period: int) -> Figures:
    return reference.atr(column(bars, HIGH), column(bars, LOW), column(bars, CLOSE), period)


def beside(middle: Figures, reach: Figures, width: float) -> Figures:
    return [None if a is None or b is None else a + width * b for a, b in zip(middle, reach, strict=True)]


def deviation(x: Figures, period: int) -> Figures:
    return on_defined(lambda values: reference.deviation(values, period), x)


def mass_index(bars: list[Bar], ema_period: int, sum_period: int) -> Figures:
    once = ema([bar[HIGH] - bar[LOW] for bar in bars], ema_period)
    parts: Figures = [
        None if a is None or b is None else ratio(a, b, 0.0) for a, b in zip(once, ema(once, ema_period), strict=True)
    ]
    return each_window(parts, sum_period, math.fsum)


def adding(bars: list[Bar], step: Callable[[Bar, Bar], float], start: float = 0.0) -> Figures:
    found: Figures = [start] if bars else []
    for before, bar in pairwise(bars):
        found.append((found[-1] or 0.0) + step(before, bar))
    return found


def flow(bar: Bar) -> float:
    _, high, low, close, volume = bar
    return (ratio((close - low) - (high - close), high - low, 0.0) or 0.0) * volume


def sign(value: float) -> int:
    return (value > 0) - (value < 0)


def volume_index(bars: list[Bar], wanted: int) -> Figures:
    found: Figures = [1000.0] if bars else []
    for before, bar in pairwise(bars):
        last = found[-1] or 0.0
        moves = sign(bar[VOLUME] - before[VOLUME]) == wanted
        found.append(last + last * (bar[CLOSE] - before[CLOSE]) / before[CLOSE] if moves else last)
    return found


def share(amounts: list[float], volumes: list[float], period: int) -> Figures:
    found: Figures = []
    for at in range(len(amounts)):
        part = slice(at - period + 1, at + 1)
        found.append(ratio(math.fsum(amounts[part]), math.fsum(volumes[part])) if at >= period - 1 else None)
    return found


def klinger(bars: list[Bar], short: int, long: int) -> Figures:
    force: Figures = [None] if bars else []
    for before, bar in pairwise(bars):
        force.append(bar[VOLUME] * (ratio(bar[CLOSE] - before[CLOSE], bar[HIGH] - bar[LOW], 0.0) or 0.0))
    return minus(ema(force, short), ema(force, long))


def previous(x: Figures, n: int) -> Figures:
    return [x[at - n] if at >= n else None for at in range(len(x))]


def _flows(bars: list[Bar]) -> list[float]:
    return [flow(bar) for bar in bars]


PLAIN: dict[str, Callable[[list[Bar], Figures, Numbers], Figures]] = {
    "SMA": lambda bars, x, n: sma(x, n["period"]),
    "EMA": lambda bars, x, n: ema(x, n["period"]),
    "DEMA": lambda bars, x, n: dema(x, n["period"]),
    "TEMA": lambda bars, x, n: tema(x, n["period"]),
    "TRIX": lambda bars, x, n: tema(x, n["period"]),
    "WMA": lambda bars, x, n: wma(x, n["period"]),
    "ZLEMA": lambda bars, x, n: zlema(x, n["period"]),
    "KAMA": lambda bars, x, n: kama(x, n["period"], n["fastPeriod"], n["slowPeriod"]),
    "FRAMA": lambda bars, x, n: frama(bars, n["sc"], n["fc"], n["alpha"]),
    "RSI": lambda bars, x, n: on_defined(lambda values: reference.rsi(values, n["period"]), x),
    "CMO": lambda bars, x, n: cmo(x, n["period"]),
    "ROC": lambda bars, x, n: roc(x, n["period"]),
    "MOMENTUM": lambda bars, x, n: roc(x, n["period"]),
    "DPO": lambda bars, x, n: dpo(x, n["period"]),
    "MACD": lambda bars, x, n: minus(ema(x, n["shortPeriod"]), ema(x, n["longPeriod"])),
    "STOCHASTIC_K": lambda bars, x, n: stochastic(bars, n["period"]),
    "STOCHASTIC_D": lambda bars, x, n: sma(stochastic(bars, n["kPeriod"]), 3),
    "WILLIAMS_R": lambda bars, x, n: place(bars, n["period"], lambda t, b, c: ratio((t - c) * -100, t - b)),
    "CCI": lambda bars, x, n: cci(bars, n["period"]),
    "AWESOME_OSCILLATOR": lambda bars, x, n: minus(
        sma([*median(bars)], n["shortPeriod"]), sma([*median(bars)], n["longPeriod"])
    ),
    "ADX": lambda bars, x, n: adx(bars, n["period"]),
    "PLUS_DI": lambda bars, x, n: directional(bars, n["period"])[0],
    "MINUS_DI": lambda bars, x, n: directional(bars, n["period"])[1],
    "AROON_UP": lambda bars, x, n: aroon(column(bars, HIGH), n["period"]),
    "AROON_DOWN": lambda bars, x, n: aroon([-value for value in column(bars, LOW)], n["period"]),
    "PARABOLIC_SAR": lambda bars, x, n: parabolic_sar(bars),
    "ATR": lambda bars, x, n: atr(bars, n["period"]),
    "STD_DEV": lambda bars, x, n: deviation(x, n["period"]),
    "BOLLINGER_MIDDLE": lambda bars, x, n: sma(x, n["period"]),
    "BOLLINGER_UPPER": lambda bars, x, n: beside(sma(x, n["period"]), deviation(x, n["period"]), n["multiplier"]),
    "BOLLINGER_LOWER": lambda bars, x, n: beside(sma(x, n["period"]), deviation(x, n["period"]), -n["multiplier"]),
    "KELTNER_MIDDLE": lambda bars, x, n: ema([*typical(bars)], n["period"]),
    "KELTNER_UPPER": lambda bars, x, n: beside(
        ema([*typical(bars)], n["period"]), atr(bars, n["atrPeriod"]), n["multiplier"]
    ),
    "KELTNER_LOWER": lambda bars, x, n: beside(
        ema([*typical(bars)], n["period"]), atr(bars, n["atrPeriod"]), -n["multiplier"]
    ),
    "DONCHIAN_UPPER": lambda bars, x, n: place(bars, n["period"], lambda top, bottom, close: top),
    "DONCHIAN_MIDDLE": lambda bars, x, n: sma([*column(bars, CLOSE)], n["period"]),
    "DONCHIAN_LOWER": lambda bars, x, n: place(bars, n["period"], lambda top, bottom, close: bottom),
    "MASS_INDEX": lambda bars, x, n: mass_index(bars, n["emaPeriod"], n["sumPeriod"]),
    "OBV": lambda bars, x, n: adding(bars, lambda before, bar: sign(bar[CLOSE] - before[CLOSE]) * bar[VOLUME]),
    "AD": lambda bars, x, n: adding(bars, lambda before, bar: flow(bar)),
    "PVT": lambda bars, x, n: volume_index(bars, 1),
    "NVI": lambda bars, x, n: volume_index(bars, -1),
    "CMF": lambda bars, x, n: share(_flows(bars), column(bars, VOLUME), n["period"]),
    "MFI": lambda bars, x, n: share(_flows(bars), column(bars, VOLUME), n["period"]),
    "VWAP": lambda bars, x, n: share(
        [price * bar[VOLUME] for price, bar in zip(typical(bars), bars, strict=True)],
        column(bars, VOLUME),
        n["period"],
    ),
    "CHAIKIN_OSCILLATOR": lambda bars, x, n: minus(
        ema(PLAIN["AD"](bars, x, n), n["shortPeriod"]), ema(PLAIN["AD"](bars, x, n), n["longPeriod"])
    ),
    "KLINGER_VOLUME_OSCILLATOR": lambda bars, x, n: klinger(bars, n["shortPeriod"], n["longPeriod"]),
    "CLOSE": lambda bars, x, n: [*column(bars, CLOSE)],
    "OPEN": lambda bars, x, n: [*column(bars, OPEN)],
    "HIGH": lambda bars, x, n: [*column(bars, HIGH)],
    "LOW": lambda bars, x, n: [*column(bars, LOW)],
    "VOLUME": lambda bars, x, n: [*column(bars, VOLUME)],
    "TYPICAL_PRICE": lambda bars, x, n: [*typical(bars)],
    "MEDIAN_PRICE": lambda bars, x, n: [*median(bars)],
    "PREVIOUS": lambda bars, x, n: previous(x, n["n"]),
    "CONSTANT": lambda bars, x, n: [n["value"]] * len(bars),
}
