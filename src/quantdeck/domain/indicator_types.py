"""Every indicator type that a strategy spec may name, and the parameters it takes. Facts only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

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
    params: Mapping[str, Slot] = field(default_factory=dict)


def _bars(default: int | None = None) -> Slot:
    """A number of bars."""
    return Slot(whole=True, default=default)


_PERIOD = IndicatorType({"period": _bars()})
_BAND = IndicatorType({"period": _bars(), "multiplier": Slot(default=2.0, above=0.0)})
_CHANNEL = IndicatorType({"period": _bars(), "atrPeriod": _bars(10), "multiplier": Slot(default=2.0, above=0.0)})
_BARE = IndicatorType()


def _two(short: int, long: int) -> IndicatorType:
    return IndicatorType({"shortPeriod": _bars(short), "longPeriod": _bars(long)})


_BY_PERIOD = (
    "SMA", "EMA", "DEMA", "TEMA", "WMA", "ZLEMA", "RSI", "STOCHASTIC_K", "CCI", "CMO", "MFI", "WILLIAMS_R", "ROC",
    "MOMENTUM", "TRIX", "DPO", "ADX", "PLUS_DI", "MINUS_DI", "AROON_UP", "AROON_DOWN", "ATR", "BOLLINGER_MIDDLE",
    "KELTNER_MIDDLE", "DONCHIAN_UPPER", "DONCHIAN_MIDDLE", "DONCHIAN_LOWER", "CMF", "VWAP", "STD_DEV",
)  # fmt: skip
_WITHOUT = (
    "OBV", "AD", "PVT", "NVI", "PARABOLIC_SAR", "CLOSE", "HIGH", "LOW", "OPEN", "VOLUME", "TYPICAL_PRICE",
    "MEDIAN_PRICE",
)  # fmt: skip

INDICATORS: Mapping[str, IndicatorType] = {
    **dict.fromkeys(_BY_PERIOD, _PERIOD),
    **dict.fromkeys(_WITHOUT, _BARE),
    "KAMA": IndicatorType({"period": _bars(), "fastPeriod": _bars(2), "slowPeriod": _bars(30)}),
    "MACD": _two(12, 26),
    "STOCHASTIC_D": IndicatorType({"kPeriod": _bars(14)}),
    "AWESOME_OSCILLATOR": _two(5, 34),
    "BOLLINGER_UPPER": _BAND,
    "BOLLINGER_LOWER": _BAND,
    "KELTNER_UPPER": _CHANNEL,
    "KELTNER_LOWER": _CHANNEL,
    "CHAIKIN_OSCILLATOR": _two(3, 10),
    "KLINGER_VOLUME_OSCILLATOR": _two(10, 35),
    "MASS_INDEX": IndicatorType({"emaPeriod": _bars(9), "sumPeriod": _bars(25)}),
    "PREVIOUS": IndicatorType({"n": _bars(1)}),
    "CONSTANT": IndicatorType({"value": Slot()}),
    "FRAMA": IndicatorType({"sc": Slot(default=0.5), "fc": _bars(20), "alpha": Slot(default=0.5)}),
}
