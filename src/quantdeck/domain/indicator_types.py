"""Every indicator type that a strategy spec may name, and the parameters it takes. Facts only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

__all__ = ["INDICATORS", "IndicatorType", "Slot"]


@dataclass(frozen=True, slots=True)
class Slot:
    """One parameter: a whole number of at least 1, or any number (above `above`). Without a default it is required."""

    whole: bool = False
    default: float | None = None
    above: float | None = None

    @property
    def required(self) -> bool:
        return self.default is None


@dataclass(frozen=True, slots=True)
class IndicatorType:
    """`reads_input`: it is computed from its input; the others are from the candles themselves, whatever it says."""

    params: Mapping[str, Slot] = field(default_factory=dict)
    reads_input: bool = False
    ascending: tuple[str, str] | None = None  # two params of which the first may not be above the second


def _bars(default: int | None = None) -> Slot:
    """A number of bars."""
    return Slot(whole=True, default=default)


def _two(short: int, long: int) -> IndicatorType:
    return IndicatorType({"shortPeriod": _bars(short), "longPeriod": _bars(long)})


_MULTIPLIER = Slot(default=2.0, above=0.0)
_PERIOD = IndicatorType({"period": _bars()})
_PERIOD_OF_INPUT = replace(_PERIOD, reads_input=True)
_BAND = IndicatorType({"period": _bars(), "multiplier": _MULTIPLIER}, reads_input=True)
_CHANNEL = IndicatorType({"period": _bars(), "atrPeriod": _bars(10), "multiplier": _MULTIPLIER})

_BY_PERIOD_OF_INPUT = (
    "SMA", "EMA", "DEMA", "TEMA", "WMA", "ZLEMA", "RSI", "CMO", "ROC", "MOMENTUM", "TRIX", "DPO", "BOLLINGER_MIDDLE",
    "STD_DEV",
)  # fmt: skip
_BY_PERIOD = (
    "STOCHASTIC_K", "CCI", "MFI", "WILLIAMS_R", "ADX", "PLUS_DI", "MINUS_DI", "AROON_UP", "AROON_DOWN", "ATR",
    "KELTNER_MIDDLE", "DONCHIAN_UPPER", "DONCHIAN_MIDDLE", "DONCHIAN_LOWER", "CMF", "VWAP",
)  # fmt: skip
_WITHOUT = (
    "OBV", "AD", "PVT", "NVI", "PARABOLIC_SAR", "CLOSE", "HIGH", "LOW", "OPEN", "VOLUME", "TYPICAL_PRICE",
    "MEDIAN_PRICE",
)  # fmt: skip

INDICATORS: Mapping[str, IndicatorType] = {
    **dict.fromkeys(_BY_PERIOD_OF_INPUT, _PERIOD_OF_INPUT),
    **dict.fromkeys(_BY_PERIOD, _PERIOD),
    "BOLLINGER_UPPER": _BAND,
    "BOLLINGER_LOWER": _BAND,
    "KELTNER_UPPER": _CHANNEL,
    "KELTNER_LOWER": _CHANNEL,
    "KAMA": IndicatorType({"period": _bars(), "fastPeriod": _bars(2), "slowPeriod": _bars(30)}, reads_input=True),
    "MACD": replace(_two(12, 26), reads_input=True, ascending=("shortPeriod", "longPeriod")),
    "AWESOME_OSCILLATOR": _two(5, 34),
    "CHAIKIN_OSCILLATOR": _two(3, 10),
    "KLINGER_VOLUME_OSCILLATOR": _two(10, 35),
    "STOCHASTIC_D": IndicatorType({"kPeriod": _bars(14)}),
    "MASS_INDEX": IndicatorType({"emaPeriod": _bars(9), "sumPeriod": _bars(25)}),
    "FRAMA": IndicatorType({"sc": Slot(default=0.5), "fc": _bars(20), "alpha": Slot(default=0.5)}),
    "PREVIOUS": IndicatorType({"n": _bars(1)}, reads_input=True),
    "CONSTANT": IndicatorType({"value": Slot()}),
    **dict.fromkeys(_WITHOUT, IndicatorType()),
}
