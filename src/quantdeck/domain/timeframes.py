"""How long a bar lasts. A bucket begins at a whole multiple of its length since 1970 (UTC) and is named by its open."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DAY", "MINUTE", "TIMEFRAMES", "FinerThanStored", "Timeframe", "derivable"]


@dataclass(frozen=True, slots=True)
class Timeframe:
    """A length of bars, by the name that users know it by."""

    name: str
    seconds: int

    def floor(self, at_s: float) -> int:
        """The open of the bucket that this instant falls into."""
        return int(at_s // self.seconds) * self.seconds

    def ceil(self, at_s: float) -> int:
        """The first open that is not before this instant."""
        return -int(-at_s // self.seconds) * self.seconds

    def is_made_of(self, finer: Timeframe) -> bool:
        """Whether whole bars of the other fill one of this."""
        return self.seconds % finer.seconds == 0

    def __str__(self) -> str:
        return self.name


TIMEFRAMES = {
    name: Timeframe(name, minutes * 60)
    for name, minutes in {
        "1m": 1, "2m": 2, "3m": 3, "5m": 5, "10m": 10, "15m": 15, "30m": 30,
        "1h": 60, "2h": 120, "3h": 180, "4h": 240, "6h": 360, "8h": 480, "12h": 720, "1d": 1440,
    }.items()
}  # fmt: skip
"""Every length that a series can be stored at or derived to: those that fill a day."""

MINUTE, DAY = TIMEFRAMES["1m"], TIMEFRAMES["1d"]


def derivable(base: Timeframe) -> list[Timeframe]:
    """What a series of this length can be read at, itself included."""
    return [timeframe for timeframe in TIMEFRAMES.values() if timeframe.is_made_of(base)]


class FinerThanStored(ValueError):
    """What is asked for cannot be made of what there is."""

    def __init__(self, symbol: str, asked: Timeframe, base: Timeframe) -> None:
        self.available = [timeframe.name for timeframe in derivable(base)]
        offered = ", ".join(self.available)
        super().__init__(f"{symbol} is stored in bars of {base}, of which no {asked} can be made; there are {offered}")
        self.symbol, self.asked, self.base = symbol, asked, base
