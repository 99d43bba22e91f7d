"""The demo market: bars as a pure function of seed, symbol and minute, a day at a time.

Random numbers come from a counter-based generator, so that no day needs another, any is as quick as any other, and two
machines agree. The walk from day to day is one in variance: a day weighs what its sessions and its volatility weigh,
and every 2,048 days end where they began, which keeps prices in a sane range for ever. Inside a day the minutes are a
bridge between its two ends, with fat tails and volatility in clusters.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING

from quantdeck.domain.arrays import Floats, np
from quantdeck.domain.candles import Bars
from quantdeck.domain.demo_instruments import Instrument

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["DAY_S", "DayShape", "DemoMarket"]

DAY_S = 86_400
_MINUTES = 1440
_BLOCK_DAYS = 2048
_KEPT_DAYS, _KEPT_BLOCKS = 512, 64

_LONGEST_MOVE = 8.0
_CLUSTERS = ((4, 0.30), (20, 0.35), (120, 0.30))
"""How long volatility stays as it is within a day, in minutes, and how much it varies on that scale."""
_CALM = 4 / 3 * sum(strength**2 for _, strength in _CLUSTERS)
"""What clusters would add to the variance, on average, as a logarithm; between its knots a scale varies by 2/3."""
_SEASONS = ((8, 0.25), (60, 0.25))
"""The same from day to day, in days."""
_SLACK = 0.35
"""How far a high or a low reaches beyond open and close, in standard deviations."""


@dataclass(frozen=True, slots=True)
class DayShape:
    """A UTC day of a market, a figure for each of its minutes. The variance of a usual trading day adds up to 1."""

    trades: NDArray[np.bool_]
    variance: Floats
    volume: Floats


class DemoMarket:
    """`shape` says of an instrument what a day of its market is like; days are counted from 1970."""

    def __init__(self, seed: int, shape: Callable[[Instrument, int], DayShape]) -> None:
        self._seed = seed
        self._shape = shape
        # per instance, since a process may look at several worlds
        self.day = lru_cache(_KEPT_DAYS)(self._day)
        self._block = lru_cache(_KEPT_BLOCKS)(self._walk)

    def _day(self, instrument: Instrument, day: int) -> Bars:
        """Every minute of a UTC day that trades."""
        shape = self._shape(instrument, day)
        uniform = self._uniform(instrument, "minutes", day, 8 * _MINUTES).reshape(8, _MINUTES)
        normal = _normal(uniform[:2])
        clusters = sum(
            strength * np.interp(np.arange(_MINUTES) / length, np.arange(_MINUTES // length + 2), knots)
            for (length, strength), knots in zip(_CLUSTERS, self._knots(instrument, day), strict=True)
        )
        begin, end, scale = self.ends(instrument, day)
        deviation = scale * np.sqrt(shape.variance * np.exp(2 * clusters - _CALM))
        moves = deviation * _fat(normal[0], uniform[2:5])
        # The bridge: what is missing to the day's end is shared out by variance.
        moves += (end - begin - moves.sum()) * shape.variance / shape.variance.sum()
        close = instrument.price * np.exp(begin + moves.cumsum())
        opened = np.concatenate(([instrument.price * np.exp(begin)], close[:-1]))
        reach = np.abs(_normal(uniform[5:7])) * deviation * _SLACK
        unusual = 0.55 + 0.45 * np.abs(moves) / np.maximum(deviation, 1e-12)
        volume = instrument.daily_volume * shape.volume * unusual * np.exp(0.45 * normal[1] - 0.1)
        bars = Bars(
            time=day * DAY_S + 60 * np.arange(_MINUTES),
            open=_ticked(opened, instrument),
            high=_ticked(np.maximum(opened, close) * np.exp(reach[0]), instrument),
            low=_ticked(np.minimum(opened, close) * np.exp(-reach[1]), instrument),
            close=_ticked(close, instrument),
            volume=np.round(volume, instrument.volume_decimals),
        )
        heard = self.heard(instrument, day)
        return Bars(*(column[heard] for column in bars.columns()))

    def heard(self, instrument: Instrument, day: int) -> NDArray[np.bool_]:
        """Of which minutes of a day there is a bar."""
        shape = self._shape(instrument, day)
        if instrument.silent_minutes is None:
            return shape.trades
        since_monday = (day - 4) % 7 * _MINUTES  # 1970 began on a Thursday
        silent = np.isin(since_monday + np.arange(_MINUTES), instrument.silent_minutes)
        return shape.trades & ~silent

    def _knots(self, instrument: Instrument, day: int) -> list[Floats]:
        return [
            _normal(self._uniform(instrument, f"clusters {length}", day, 2 * (_MINUTES // length + 2)).reshape(2, -1))[
                0
            ]
            for length, _ in _CLUSTERS
        ]

    def ends(self, instrument: Instrument, day: int) -> tuple[float, float, float]:
        """Where a day begins and ends, as the logarithm of price over the usual one, and its standard deviation."""
        block, at = divmod(day + self._offset(instrument), _BLOCK_DAYS)
        level, scale = self._block(instrument, block)
        return float(level[at]), float(level[at + 1]), float(scale[at])

    def _offset(self, instrument: Instrument) -> int:
        """Blocks of different instruments begin on different days, or all would be at their usual price on one."""
        return int.from_bytes(sha256(instrument.symbol.encode()).digest()[:2]) % _BLOCK_DAYS

    def _walk(self, instrument: Instrument, block: int) -> tuple[Floats, Floats]:
        """The level at each day's beginning within a block, and each day's standard deviation."""
        first = block * _BLOCK_DAYS - self._offset(instrument)
        seasons = np.zeros(_BLOCK_DAYS)
        for length, strength in _SEASONS:
            knots = self._uniform(instrument, f"seasons {length}", block, 2 * (_BLOCK_DAYS // length + 2))
            places = np.arange(_BLOCK_DAYS // length + 2)
            seasons += strength * np.interp(np.arange(_BLOCK_DAYS) / length, places, _normal(knots.reshape(2, -1))[0])
        scale = instrument.daily_volatility * np.exp(seasons)
        weights = [self._shape(instrument, first + day).variance.sum() for day in range(_BLOCK_DAYS)]
        variance = scale**2 * np.array(weights)
        steps = np.sqrt(variance) * _normal(self._uniform(instrument, "days", block, 2 * _BLOCK_DAYS).reshape(2, -1))[0]
        steps -= steps.sum() * variance / variance.sum()
        return np.concatenate(([0.0], steps.cumsum())), scale

    def _uniform(self, instrument: Instrument, about: str, number: int, count: int) -> Floats:
        """Numbers in (0, 1), always the same for the same question."""
        name = sha256(f"{self._seed}:{instrument.symbol}:{about}".encode()).digest()
        key = int.from_bytes(name[:16])
        # Raw bits and our own arithmetic: the library's distributions may change from release to release.
        raw = np.random.Philox(key=key, counter=[0, 0, number % 2**63, 0]).random_raw(count)
        uniform: Floats = ((raw >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
        return uniform


def _normal(uniform: Floats) -> Floats:
    """Two rows of independent normal numbers out of two rows of uniform ones."""
    radius, angle = np.sqrt(-2 * np.log(uniform[0])), 2 * np.pi * uniform[1]
    return np.vstack((radius * np.cos(angle), radius * np.sin(angle)))


def _fat(normal: Floats, uniform: Floats) -> Floats:
    """Student's t with six degrees of freedom, of unit variance: a normal over the root of a chi-square."""
    chi_square = -2 * np.log(uniform).sum(axis=0)
    drawn: Floats = np.clip(normal / np.sqrt(chi_square / 6) / np.sqrt(6 / 4), -_LONGEST_MOVE, _LONGEST_MOVE)
    return drawn


def _ticked(price: Floats, instrument: Instrument) -> Floats:
    """In the instrument's ticks, and never less than one."""
    return np.maximum(np.round(price, instrument.price_decimals), 10.0**-instrument.price_decimals)
