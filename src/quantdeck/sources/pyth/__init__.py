"""The port `pyth`: feeds, their candles, their prices at a time and now.

An adapter is a subclass that asks. What it is asked as of is held here: at a fixed clock a question about a later time
is refused, and a candle that had not closed is in no answer. The list of feeds has no past; it is a directory.
"""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Any, ClassVar

from quantdeck.connections.pyth_failures import SOURCE, InvalidToken, NotEntitled, Refused, UnknownFeed, clean_token
from quantdeck.core.clock import Now, iso
from quantdeck.core.contract import Source
from quantdeck.core.errors import NotInPast
from quantdeck.domain.pyth_feeds import Catalog
from quantdeck.domain.pyth_numbers import exact, microseconds
from quantdeck.domain.pyth_types import BUILT_IN, KeyTypes

__all__ = [
    "RESOLUTIONS",
    "SOURCE",
    "CandleColumns",
    "InvalidToken",
    "KeyTypes",
    "NotEntitled",
    "Pyth",
    "Refused",
    "UnknownFeed",
    "clean_token",
    "closes_at",
]

RESOLUTIONS: Mapping[str, int] = {
    "1": 60, "5": 300, "15": 900, "30": 1800, "60": 3600, "120": 7200, "240": 14_400, "360": 21_600, "720": 43_200,
    "D": 86_400, "W": 604_800, "M": 2_678_400,
}  # fmt: skip
"""Seconds of a candle; of a month the longest."""

Row = dict[str, Any]
Feeds = Sequence[int] | Sequence[str]
"""By id, or, where the list that has the ids is out of reach, by full symbol: then a row has its `symbol` if it can."""


@dataclass(frozen=True, slots=True)
class CandleColumns:
    """Candles, a column each; `t` is each candle's open in seconds, ascending, none twice."""

    t: list[int]
    o: list[float]
    h: list[float]
    l: list[float]  # noqa: E741 - its name on the wire
    c: list[float]
    v: list[float]

    def __len__(self) -> int:
        return len(self.t)

    def __getitem__(self, part: slice) -> CandleColumns:
        return CandleColumns(*(getattr(self, field.name)[part] for field in fields(self)))


class Pyth(Source):
    """See the module. A token is a clean one, or None; `symbol` is a feed's full one."""

    port: ClassVar[str] = "pyth"
    wants_token: ClassVar[bool] = True  # whether latest prices need one

    @abstractmethod
    async def catalog(self, *, token: str | None) -> Catalog:
        """Every feed that the holder of this token may see, as the list is today."""

    @abstractmethod
    async def covered(self, *, token: str | None) -> frozenset[int]:
        """The ids of the feeds that this token may ask the price of."""

    async def candles(
        self, symbol: str, resolution: str, begin_s: int, end_s: int, channel: str, *, token: str | None, as_of: Now
    ) -> CandleColumns:
        """The candles that open in [begin, end]; none is no failure. The last may still be unfinished."""
        _refuse_later(end_s, as_of)
        found = await self._candles(symbol, resolution, begin_s, end_s, channel, token, as_of)
        found = found[bisect_left(found.t, begin_s) : bisect_right(found.t, end_s)]
        if not as_of.fixed:
            return found
        return found[: sum(closes_at(opened, resolution) <= as_of.timestamp() for opened in found.t)]

    async def prices(self, feeds: Feeds, at_us: int, channel: str, *, token: str | None, as_of: Now) -> list[Row]:
        """The rows of these feeds at a time, as the history has them; a feed without one is left out.

        A row that another service was asked for in its place says so in `served_by`.
        """
        _refuse_later(at_us / 1_000_000, as_of)
        if at_us / 1_000_000 > as_of.timestamp():
            return []
        rows = await self._prices(feeds, at_us, channel, token)
        return [row for row in rows if not _is_later(row, as_of)] if as_of.fixed else rows

    @abstractmethod
    async def latest(
        self, feeds: Feeds, properties: Sequence[str], channel: str, *, token: str | None, as_of: Now
    ) -> Row:
        """The newest update: `timestampUs` and `priceFeeds`, a row of each feed that is live."""

    @property
    def known(self) -> KeyTypes:
        """The words of the service's vocabularies, as far as they have been heard."""
        return BUILT_IN

    async def learn(self) -> KeyTypes:
        """What is known once the service has been asked for what it says of itself; silence changes nothing."""
        return self.known

    @abstractmethod
    async def has_chart(self, symbol: str, channel: str, *, token: str | None) -> bool:
        """Whether there are candles of this full symbol on this channel at all."""

    @abstractmethod
    async def chart_config(self, channel: str, *, token: str | None) -> Row:
        """What a TradingView chart is told of the service."""

    @abstractmethod
    async def document(self, which: str) -> Row:
        """The OpenAPI description of the service `rest` or `history`."""

    # What an adapter supplies.

    @abstractmethod
    async def _candles(
        self, symbol: str, resolution: str, begin_s: int, end_s: int, channel: str, token: str | None, as_of: Now
    ) -> CandleColumns: ...

    @abstractmethod
    async def _prices(self, feeds: Feeds, at_us: int, channel: str, token: str | None) -> list[Row]: ...


def closes_at(opened_s: int, resolution: str) -> float:
    """When a candle is complete, in seconds."""
    if resolution != "M":
        return opened_s + RESOLUTIONS[resolution]
    at = datetime.fromtimestamp(opened_s, UTC)
    following = at.replace(day=1, year=at.year + at.month // 12, month=at.month % 12 + 1)
    return following.timestamp()


def _is_later(row: Row, as_of: Now) -> bool:
    """Whether a row says of itself that it is of a later time."""
    try:
        return microseconds(exact(row.get("publish_time")) or 0) > as_of.timestamp() * 1_000_000
    except ValueError:  # it says nothing
        return False


def _refuse_later(at_s: float, as_of: Now) -> None:
    if as_of.fixed and at_s > as_of.timestamp():
        told = f"The clock of this server stands at {iso(as_of)}; nothing later can be asked."
        raise NotInPast(told, source=SOURCE, type="invalid_input", clock=iso(as_of))
