"""The demo world's feeds: its instruments under the symbols that Pyth has for them, priced by the demo's own bars.

Needs no token and no network. Like the service's own, a price is carried on while its market is closed.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cached_property
from itertools import groupby
from typing import Any, ClassVar

from quantdeck.connections.databases import Databases
from quantdeck.core.clock import Now
from quantdeck.core.errors import NotConfigured
from quantdeck.domain.calendars import market_of
from quantdeck.domain.candles import Bars
from quantdeck.domain.demo_instruments import INSTRUMENTS, Instrument
from quantdeck.domain.pyth_feeds import Catalog, Feed
from quantdeck.domain.pyth_numbers import CHANNELS, channel_step_us
from quantdeck.domain.pyth_types import snake
from quantdeck.domain.symbols import asset_class
from quantdeck.domain.timeframes import MINUTE, TIMEFRAMES
from quantdeck.settings import Settings
from quantdeck.sources.candles import demo as demo_candles
from quantdeck.sources.pyth import RESOLUTIONS, CandleColumns, Feeds, Pyth, Row, UnknownFeed

__all__ = ["DemoPyth", "connect"]

_EXPONENT = -8
_UNITS = 10.0**-_EXPONENT
_PUBLISHERS = 12
_HALF_SPREAD, _CONFIDENCE, _MEAN_MINUTES = 1e-4, 2e-4, 60

_IDS = {
    "BTC/USD": 1, "ETH/USD": 2, "EUR/USD": 327, "XAU/USD": 346, "AAPL": 922, "AMZN": 954, "NVDA": 1314, "QQQ": 1363,
    "SPY": 1398, "TSLA": 1435,
}  # fmt: skip
"""Those that are known to be the service's own; the others are numbered from here on."""
_OTHERS = 900_001

_NEW_YORK = "America/New_York;0930-1600,0930-1600,0930-1600,0930-1600,0930-1600,C,C;"
_WEEK = "America/New_York;O,O,O,O,0000-1700,C,1700-2400;"
_ALWAYS = "America/New_York;O,O,O,O,O,O,O;"
_KINDS = {
    "crypto": ("Crypto.{}", "crypto", _ALWAYS),
    "fx": ("FX.{}", "fx", _WEEK),
    "metal": ("Metal.{}", "metal", _WEEK),
    "stock": ("Equity.US.{}/USD", "equity", _NEW_YORK),
}

_SESSIONS = {"premarket": "preMarket", "regular": "regular", "afterhours": "postMarket", "closed": "closed"}

_TIMEFRAMES = {"1": "1m", "5": "5m", "15": "15m", "30": "30m", "60": "1h", "120": "2h", "240": "4h", "360": "6h",
               "720": "12h", "D": "1d", "W": "1d", "M": "1d"}  # fmt: skip


def connect(url: str, settings: Settings, databases: Databases) -> DemoPyth:
    """The adapter, over the candles of the same world."""
    return DemoPyth(demo_candles.connect(url, settings, databases))


class DemoPyth(Pyth):
    """See the port."""

    source = "demo"
    wants_token: ClassVar[bool] = False

    def __init__(self, candles: demo_candles.DemoCandles) -> None:
        self._bars = candles

    @cached_property
    def _instruments(self) -> dict[int, Instrument]:
        others = [symbol for symbol in INSTRUMENTS if symbol not in _IDS]
        numbered = _IDS | {symbol: _OTHERS + place for place, symbol in enumerate(others)}
        return {numbered[symbol]: instrument for symbol, instrument in INSTRUMENTS.items()}

    @cached_property
    def _catalog(self) -> Catalog:
        return Catalog(_feed(number, instrument) for number, instrument in self._instruments.items())

    async def catalog(self, *, token: str | None) -> Catalog:
        del token
        return self._catalog

    async def covered(self, *, token: str | None) -> frozenset[int]:
        del token
        return frozenset(self._instruments)

    async def latest(
        self, feeds: Feeds, properties: Sequence[str], channel: str, *, token: str | None, as_of: Now
    ) -> Row:
        del token
        step_us = channel_step_us(channel)
        at_us = int(as_of.timestamp() * 1_000_000) // step_us * step_us
        priced = [row for number in self._ids(feeds) if (row := await self._priced(number, at_us)) is not None]
        rows = [
            {"priceFeedId": row["priceFeedId"], **{name: row[name] for name in row if name in properties}}
            for row in priced
        ]
        strings = ("price", "bestBidPrice", "bestAskPrice", "emaPrice")
        told = [{name: str(held) if name in strings else held for name, held in row.items()} for row in rows]
        return {"timestampUs": str(at_us), "priceFeeds": told}

    def _ids(self, feeds: Feeds) -> list[int]:
        return [one if isinstance(one, int) else self._number(one) for one in feeds]

    def _number(self, symbol: str) -> int:
        """The id of a full symbol, in any case."""
        for feed in self._catalog.feeds:
            if feed.symbol.lower() == symbol.lower():
                return feed.id
        raise UnknownFeed("symbol not found.")

    async def has_chart(self, symbol: str, channel: str, *, token: str | None) -> bool:
        del channel, token
        return any(feed.symbol.lower() == symbol.lower() for feed in self._catalog.feeds)

    async def chart_config(self, channel: str, *, token: str | None) -> Row:
        del channel, token
        return {"supported_resolutions": list(RESOLUTIONS), "supports_search": True, "exchanges": []}

    async def document(self, which: str) -> Row:
        told = f"The demo world has no {which} service to describe; this resource is there outside of it."
        raise NotConfigured(told, source=self.source)

    async def _candles(
        self, symbol: str, resolution: str, begin_s: int, end_s: int, channel: str, token: str | None, as_of: Now
    ) -> CandleColumns:
        del channel, token
        number = self._number(symbol)
        until = min(datetime.fromtimestamp(end_s + RESOLUTIONS[resolution], UTC), as_of)
        begin = datetime.fromtimestamp(max(begin_s - RESOLUTIONS[resolution], 0), UTC)
        timeframe = TIMEFRAMES[_TIMEFRAMES[resolution]]
        bars = await self._bars.between(self._instruments[number].symbol, timeframe, begin, until, as_of=as_of)
        return _columns(bars, resolution)

    async def _prices(self, feeds: Feeds, at_us: int, channel: str, token: str | None) -> list[Row]:
        del token
        rows = [row for number in self._ids(feeds) if (row := await self._priced(number, at_us)) is not None]
        number = CHANNELS.index(channel) + 1
        return [
            {"price_feed_id": row["priceFeedId"], "publish_time": at_us, "channel": number, "channel_name": channel}
            | {snake(name): held for name, held in row.items() if name != "priceFeedId"}
            for row in rows
        ]

    async def _priced(self, number: int, at_us: int) -> Row | None:
        instrument = self._instruments.get(number)
        if instrument is None:
            raise UnknownFeed(f"Unknown feed: {number}", number)
        at = Now.of(datetime.fromtimestamp(at_us // 1_000_000, UTC), fixed=True)
        bars = await self._bars.newest(instrument.symbol, MINUTE, _MEAN_MINUTES, as_of=at)
        if not len(bars):
            return None
        close = float(bars.close[-1])
        closed_s = int(bars.time[-1]) + MINUTE.seconds
        fresh = at_us // 1_000_000 - closed_s < MINUTE.seconds
        return {
            "priceFeedId": number,
            "price": _mantissa(close),
            "bestBidPrice": _mantissa(close * (1 - _HALF_SPREAD)),
            "bestAskPrice": _mantissa(close * (1 + _HALF_SPREAD)),
            "publisherCount": _PUBLISHERS,
            "exponent": _EXPONENT,
            "confidence": _mantissa(close * _CONFIDENCE),
            "marketSession": _SESSIONS[market_of(instrument.symbol).session_at(at)] if fresh else "closed",
            "emaPrice": _mantissa(float(bars.close.mean())),
            "emaConfidence": _mantissa(close * _CONFIDENCE),
            # within a minute of trading the price is the newest there is
            "feedUpdateTimestamp": at_us if fresh else closed_s * 1_000_000,
        }


def _feed(number: int, instrument: Instrument) -> Feed:
    pattern, kind, schedule = _KINDS[asset_class(instrument.symbol)]
    symbol = pattern.format(instrument.symbol)
    tail = symbol.rpartition(".")[2]
    return Feed(
        number,
        tail.replace("/", ""),
        symbol,
        f"{tail.replace('/', ' / ')} OF THE DEMO WORLD",
        kind,
        "spot",
        _EXPONENT,
        "real_time",
        "stable",
        None,
        "USD",
        schedule,
    )


def _mantissa(price: float) -> int:
    return round(price * _UNITS)


def _columns(bars: Bars, resolution: str) -> CandleColumns:
    columns = [column.tolist() for column in bars.columns()]
    if resolution in ("W", "M"):
        columns = _merged(columns, resolution)
    return CandleColumns(*columns)


def _merged(columns: list[list[Any]], resolution: str) -> list[list[Any]]:
    """Days as weeks from Monday, or as months."""
    rows = zip(*columns, strict=True)
    out: list[tuple[Any, ...]] = []
    for begins, days in groupby(rows, key=lambda row: _begins(row[0], resolution)):
        _, opened, high, low, close, volume = zip(*days, strict=True)
        out.append((begins, opened[0], max(high), min(low), close[-1], sum(volume)))
    return [[row[place] for row in out] for place in range(len(columns))]


def _begins(at_s: int, resolution: str) -> int:
    if resolution == "M":
        return int(datetime.fromtimestamp(at_s, UTC).replace(day=1).timestamp())
    return at_s - (at_s // 86_400 + 3) % 7 * 86_400  # 1970 began on a Thursday
