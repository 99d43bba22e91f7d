"""What the catalog's features are: which figures each has, and how far back it looks.

A figure stands at the last bar. One that is undefined there (nothing has moved, nothing was traded) is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from quantdeck.domain import indicators
from quantdeck.domain.arrays import last
from quantdeck.domain.calendars import Market
from quantdeck.domain.candles import Bars
from quantdeck.domain.timeframes import Timeframe
from quantdeck.domain.volatility import realised

__all__ = ["FEATURES", "SETTLED", "TooFewBars", "completeness", "features", "warm_up"]

SETTLED = 150
"""Bars after which an average that looks back on itself has forgotten where it began, to about one part in 100,000."""

Figures = Mapping[str, float | None]


@dataclass(frozen=True, slots=True)
class Feature:
    """`needs` bars give its first figure; of `warm_up` bars before the window more would change nothing."""

    needs: int
    warm_up: int
    figures: Callable[[Bars], Figures]


class TooFewBars(Exception):
    """A feature has not one figure: it needs more bars than there are, by its name."""

    def __init__(self, needed: Mapping[str, int]) -> None:
        super().__init__(", ".join(needed))
        self.needed = needed


def _sma(bars: Bars) -> Figures:
    return {f"sma_{period}": last(indicators.sma(bars.close, period)) for period in (20, 50)}


def _ema(bars: Bars) -> Figures:
    return {f"ema_{period}": last(indicators.ema(bars.close, period)) for period in (12, 26)}


def _rsi(bars: Bars) -> Figures:
    return {"rsi_14": last(indicators.rsi(bars.close))}


def _macd(bars: Bars) -> Figures:
    return {f"macd_{name}": last(series) for name, series in indicators.macd(bars.close)._asdict().items()}


def _bollinger(bars: Bars) -> Figures:
    return {f"bollinger_{name}": last(series) for name, series in indicators.bollinger(bars.close)._asdict().items()}


def _volatility(bars: Bars) -> Figures:
    return {"volatility": last(realised(bars.close))}


def _volume_profile(bars: Bars) -> Figures:
    return {"volume_vwap": last(indicators.vwap(bars.high, bars.low, bars.close, bars.volume))}


FEATURES = {
    "sma": Feature(20, 49, _sma),
    "ema": Feature(12, SETTLED, _ema),
    "rsi": Feature(15, SETTLED, _rsi),
    "macd": Feature(26, SETTLED, _macd),
    "bollinger": Feature(20, 19, _bollinger),
    "volatility": Feature(21, 20, _volatility),
    "volume_profile": Feature(1, 0, _volume_profile),
}

_INSIDE = frozenset({"volume_profile"})
"""Features of the window alone; any other looks at what was before it as well."""


def warm_up(names: Iterable[str]) -> int:
    """How many bars before a window its features look at."""
    return max(FEATURES[name].warm_up for name in names)


def features(names: Iterable[str], window: Bars, whole: Bars) -> dict[str, float]:
    """The figures of these features at the window's last bar; `whole` is the window and what was before it.

    Raises TooFewBars for those that need more bars than there are.
    """
    used = {name: window if name in _INSIDE else whole for name in names}
    if short := {name: FEATURES[name].needs for name, bars in used.items() if len(bars) < FEATURES[name].needs}:
        raise TooFewBars(short)
    found = {key: figure for name, bars in used.items() for key, figure in FEATURES[name].figures(bars).items()}
    return {key: figure for key, figure in found.items() if figure is not None}


def completeness(bars: Bars, timeframe: Timeframe, market: Market, first_s: int, end_s: int) -> float:
    """Of the bars that the market's hours make expected from the first open to before the end, the share there is.

    Bars outside regular hours neither add to it nor make up for one that is missing. Where none is expected it is 1.
    """
    step_s = timeframe.seconds
    expected = there = 0
    for opens, closes in market.hours(first_s, end_s):
        begin, until = max(timeframe.floor(opens), first_s), min(timeframe.ceil(closes), end_s)
        if until > begin:
            expected += (until - begin) // step_s
            low, high = bars.time.searchsorted((begin, until))
            there += int(high - low)
            first_s = until  # two stretches may share a step
    return there / expected if expected else 1.0
