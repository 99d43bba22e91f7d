"""Every indicator that a strategy spec may name, as a function of the bars.

What `domain/indicators.py` defines is taken from there, so that a strategy sees what the servers show. The rest means
what the engine means that the format comes from (docs/backtesting.md has each formula), but for its beginnings: no
figure stands before the bar that completes it, where that engine makes do with what bars there are. A figure of
nothing (0 / 0) is not there either, and a condition on it does not hold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from quantdeck.backtesting.engine.figures import averages, momentum, ranges, trend, volumes
from quantdeck.domain import indicators
from quantdeck.domain.arrays import Floats, np
from quantdeck.domain.candles import Bars
from quantdeck.domain.strategy_specs import PRICES, Computation, RunnableSpec

__all__ = ["FIGURES", "computed"]

Numbers = Mapping[str, int | float]
Figure = Callable[[Bars, Floats, Numbers], Floats]


def computed(spec: RunnableSpec, bars: Bars, tell: Callable[[float], None] = lambda share: None) -> dict[str, Floats]:
    """Each computation's figure by its id, and the close; NaN where there is none. The bars are finite, above zero."""
    found: dict[str, Floats] = {"close": bars.close}
    for place, one in enumerate(spec.computations, 1):
        found[one.id] = _figure(one, bars, found)
        tell(place / (len(spec.computations) + 1))
    return found


def _figure(one: Computation, bars: Bars, found: Mapping[str, Floats]) -> Floats:
    source = found[one.input] if one.input in found else getattr(bars, one.input)
    assert one.input in found or one.input in PRICES, "the spec was not read"
    with np.errstate(all="ignore"):
        return FIGURES[one.type](bars, source, one.numbers)


def _of_input(figure: Callable[[Floats, int], Floats]) -> Figure:
    return lambda bars, source, numbers: figure(source, int(numbers["period"]))


def _of_bars(figure: Callable[[Bars, int], Floats], period: str = "period") -> Figure:
    return lambda bars, source, numbers: figure(bars, int(numbers[period]))


def _of_two(figure: Callable[[Bars, int, int], Floats], first: str, second: str) -> Figure:
    return lambda bars, source, numbers: figure(bars, int(numbers[first]), int(numbers[second]))


def _price(figure: Callable[[Bars], Floats]) -> Figure:
    return lambda bars, source, numbers: figure(bars)


def _band(side: int) -> Figure:
    return lambda bars, x, of: ranges.band(x, int(of["period"]), side * of["multiplier"])


def _channel(side: int) -> Figure:
    return lambda bars, x, of: ranges.channel(bars, int(of["period"]), int(of["atrPeriod"]), side * of["multiplier"])


FIGURES: Mapping[str, Figure] = {
    "SMA": _of_input(indicators.sma),
    "EMA": _of_input(indicators.ema),
    "DEMA": _of_input(averages.dema),
    "TEMA": _of_input(averages.tema),
    "TRIX": _of_input(averages.tema),
    "WMA": _of_input(averages.wma),
    "ZLEMA": _of_input(averages.zlema),
    "KAMA": lambda bars, x, of: averages.kama(x, int(of["period"]), int(of["fastPeriod"]), int(of["slowPeriod"])),
    "FRAMA": lambda bars, x, of: averages.frama(bars, of["sc"], int(of["fc"]), of["alpha"]),
    "RSI": _of_input(indicators.rsi),
    "CMO": _of_input(momentum.cmo),
    "ROC": _of_input(momentum.roc),
    "MOMENTUM": _of_input(momentum.roc),
    "DPO": _of_input(momentum.dpo),
    "MACD": lambda bars, x, of: momentum.macd(x, int(of["shortPeriod"]), int(of["longPeriod"])),
    "STOCHASTIC_K": _of_bars(momentum.stochastic_k),
    "STOCHASTIC_D": _of_bars(momentum.stochastic_d, "kPeriod"),
    "WILLIAMS_R": _of_bars(momentum.williams_r),
    "CCI": _of_bars(momentum.cci),
    "AWESOME_OSCILLATOR": _of_two(momentum.awesome, "shortPeriod", "longPeriod"),
    "ADX": _of_bars(trend.adx),
    "PLUS_DI": _of_bars(trend.plus_di),
    "MINUS_DI": _of_bars(trend.minus_di),
    "AROON_UP": _of_bars(trend.aroon_up),
    "AROON_DOWN": _of_bars(trend.aroon_down),
    "PARABOLIC_SAR": _price(trend.parabolic_sar),
    "ATR": _of_bars(lambda bars, period: indicators.atr(bars.high, bars.low, bars.close, period)),
    "STD_DEV": _of_input(indicators.deviation),
    "BOLLINGER_MIDDLE": _of_input(indicators.sma),
    "BOLLINGER_UPPER": _band(1),
    "BOLLINGER_LOWER": _band(-1),
    "KELTNER_MIDDLE": _of_bars(ranges.keltner_middle),
    "KELTNER_UPPER": _channel(1),
    "KELTNER_LOWER": _channel(-1),
    "DONCHIAN_UPPER": _of_bars(lambda bars, period: ranges.highest(bars.high, period)),
    "DONCHIAN_MIDDLE": _of_bars(lambda bars, period: indicators.sma(bars.close, period)),
    "DONCHIAN_LOWER": _of_bars(lambda bars, period: ranges.lowest(bars.low, period)),
    "MASS_INDEX": _of_two(ranges.mass_index, "emaPeriod", "sumPeriod"),
    "OBV": _price(volumes.obv),
    "AD": _price(volumes.ad),
    "PVT": _price(volumes.positive_volume_index),
    "NVI": _price(volumes.negative_volume_index),
    "CMF": _of_bars(volumes.money_flow),
    "MFI": _of_bars(volumes.money_flow),
    "VWAP": _of_bars(volumes.vwap),
    "CHAIKIN_OSCILLATOR": _of_two(volumes.chaikin_oscillator, "shortPeriod", "longPeriod"),
    "KLINGER_VOLUME_OSCILLATOR": _of_two(volumes.klinger, "shortPeriod", "longPeriod"),
    "CLOSE": _price(lambda bars: bars.close),
    "OPEN": _price(lambda bars: bars.open),
    "HIGH": _price(lambda bars: bars.high),
    "LOW": _price(lambda bars: bars.low),
    "VOLUME": _price(lambda bars: bars.volume),
    "TYPICAL_PRICE": _price(lambda bars: indicators.typical_price(bars.high, bars.low, bars.close)),
    "MEDIAN_PRICE": _price(ranges.median_price),
    "PREVIOUS": lambda bars, x, of: averages.earlier(x, int(of["n"])),
    "CONSTANT": lambda bars, x, of: np.full(len(bars), float(of["value"])),
}
