"""Pyth Pro itself."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from operator import lt
from typing import Any

from quantdeck.connections.databases import Databases
from quantdeck.connections.pyth import PythApi
from quantdeck.connections.pyth_failures import SOURCE
from quantdeck.core.clock import Now, iso
from quantdeck.core.errors import Busy, NotConfigured, NotInPast, QueryFailed, SourceError, Unreachable
from quantdeck.core.wire import digest
from quantdeck.domain.pyth_feeds import Catalog, read_feed
from quantdeck.domain.pyth_numbers import CHANNELS, exact
from quantdeck.domain.pyth_types import BUILT_IN, KeyTypes, of_catalog, of_document, snake
from quantdeck.settings import Pyth as Group
from quantdeck.settings import Settings
from quantdeck.sources.pyth import CandleColumns, Feeds, InvalidToken, NotEntitled, Pyth, Row, UnknownFeed
from quantdeck.sources.pyth.kept import Kept

__all__ = ["HttpPyth", "connect"]

_IDS_AT_ONCE = 100
"""Ids in the address of one request."""
_DOCUMENT_S = 86_400
_LARGEST = 2**63
"""What is beyond it no answer can carry exactly."""


def connect(url: str, settings: Settings, databases: Databases) -> HttpPyth:
    """The adapter. Where the services are is said by the group of settings."""
    del url, databases
    return HttpPyth(settings.pyth)


class HttpPyth(Pyth):
    """See the port."""

    source = SOURCE

    def __init__(self, settings: Group, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._chosen = settings != Group()
        self._api = PythApi(settings)
        self._catalogs = Kept[Catalog](settings.catalog_s, clock=clock)
        self._covered = Kept[frozenset[int]](settings.catalog_s, clock=clock)
        self._documents = Kept[Row](_DOCUMENT_S, clock=clock)
        self._known = BUILT_IN

    async def ping(self) -> None:
        """Nobody who set nothing of Pyth is told that it is out of reach."""
        if not self._chosen:
            told = "No Pyth Pro token is set; set PYTH_PRO_ACCESS_TOKEN (https://pyth.network/pricing has them)"
            raise NotConfigured(told, source=SOURCE, setting="QUANTDECK_PYTH__ACCESS_TOKEN")
        await self._api.live()

    async def close(self) -> None:
        await self._catalogs.close()
        await self._covered.close()
        await self._documents.close()
        await self._api.close()

    async def catalog(self, *, token: str | None) -> Catalog:
        async def load() -> Catalog:
            rows = await self._api.history("symbols", token=token)
            catalog, heard = await asyncio.to_thread(_read_catalog, rows)
            self._known |= heard
            return catalog

        return await self._catalogs.get(_key(token), load)

    async def covered(self, *, token: str | None) -> frozenset[int]:
        async def load() -> frozenset[int]:
            rows = await self._api.history("symbols", [("entitled_only", "true")], token=token)
            catalog, _ = await asyncio.to_thread(_read_catalog, rows)
            return frozenset(catalog.by_id)

        return await self._covered.get(_key(token), load)

    @property
    def known(self) -> KeyTypes:
        return self._known

    async def learn(self) -> KeyTypes:
        async def load() -> Row:
            return await self.document("rest")

        with suppress(SourceError):
            await self._documents.get("", load)
        return self._known

    async def latest(
        self, feeds: Feeds, properties: Sequence[str], channel: str, *, token: str | None, as_of: Now
    ) -> Row:
        if as_of.fixed:
            told = f"The clock of this server stands at {iso(as_of)}, and Pyth Pro's latest prices are of now"
            raise NotInPast(f"{told}; ask get_historical_price.", source=SOURCE, type="invalid_input")
        if token is None:
            raise InvalidToken(missing=True)
        return _read_update(await self._api.router("v1/latest_price", _body(feeds, properties, channel), token=token),
                            feeds)  # fmt: skip

    async def has_chart(self, symbol: str, channel: str, *, token: str | None) -> bool:
        try:
            return bool(_object(await self._api.history(f"{channel}/symbols", [("symbol", symbol)], token=token)))
        except UnknownFeed:
            return False

    async def chart_config(self, channel: str, *, token: str | None) -> Row:
        return _object(await self._api.history(f"{channel}/config", token=token))

    async def document(self, which: str) -> Row:
        document = _object(await self._api.document(which))
        if which == "rest":
            self._known |= of_document(document)
        return document

    async def _candles(
        self, symbol: str, resolution: str, begin_s: int, end_s: int, channel: str, token: str | None, as_of: Now
    ) -> CandleColumns:
        del as_of  # the service knows nothing of later
        query = [("symbol", symbol), ("from", str(begin_s)), ("to", str(end_s)), ("resolution", resolution)]
        return _read_candles(await self._api.history(f"{channel}/history", query, token=token))

    async def _prices(self, feeds: Feeds, at_us: int, channel: str, token: str | None) -> list[Row]:
        """The history's; while it is out of reach the router's, which keeps prices too and always wants a token.

        The router alone knows feeds by their symbols.
        """
        ids = [one for one in feeds if isinstance(one, int)]
        if len(ids) < len(feeds):
            if token is None:
                raise InvalidToken(missing=True)
            return await self._prices_of_router(feeds, at_us, channel, token)
        try:
            return await self._prices_of_history(ids, at_us, channel, token)
        except (Unreachable, Busy) as outage:
            if token is None:
                raise
            try:
                return await self._prices_of_router(ids, at_us, channel, token)
            except (NotEntitled, UnknownFeed):
                raise
            except SourceError:
                raise outage from None

    async def _prices_of_history(self, ids: Sequence[int], at_us: int, channel: str, token: str | None) -> list[Row]:
        found: list[Row] = []
        for begin in range(0, len(ids), _IDS_AT_ONCE):
            query = [("ids", str(number)) for number in ids[begin : begin + _IDS_AT_ONCE]]
            query.append(("timestamp", str(at_us)))
            rows = await self._api.history(f"{channel}/price", query, token=token)
            if not isinstance(rows, list):
                raise _unreadable()
            found += _of_these(rows, "price_feed_id", ids)
        return found

    async def _prices_of_router(self, feeds: Feeds, at_us: int, channel: str, token: str) -> list[Row]:
        body = {**_body(feeds, BUILT_IN.properties, channel), "timestamp": at_us}
        told = _read_update(await self._api.router("v1/price", body, token=token), feeds)
        return [_as_of_history(row, at_us, channel) for row in told["priceFeeds"]]


def _key(token: str | None) -> str:
    return "" if token is None else digest(token)


def _body(feeds: Feeds, properties: Sequence[str], channel: str) -> Row:
    """What the router is asked. Exactly one of ids and symbols may be there."""
    named = {"symbols" if any(isinstance(one, str) for one in feeds) else "priceFeedIds": list(feeds)}
    return {**named, "properties": list(properties), "formats": [], "parsed": True, "channel": channel}


def _read_update(told: Any, feeds: Feeds) -> Row:
    """The parsed part of what the router says, with the rows that were asked for.

    Rows are in the order of the question and name their feed by id alone. Where the question was of symbols and each
    has its row, a row is given its symbol.
    """
    parsed = told.get("parsed") if isinstance(told, dict) else None
    if not isinstance(parsed, dict) or not isinstance(parsed.get("priceFeeds"), list):
        raise _unreadable()
    if exact(parsed.get("timestampUs")) is None:  # a price of no time is none
        raise _unreadable()
    if all(isinstance(one, int) for one in feeds):
        return {**parsed, "priceFeeds": _of_these(parsed["priceFeeds"], "priceFeedId", feeds)}
    rows = [row for row in parsed["priceFeeds"] if isinstance(row, dict) and exact(row.get("priceFeedId")) is not None]
    if len(rows) == len(feeds):
        rows = [{**row, "symbol": symbol} for row, symbol in zip(rows, feeds, strict=True)]
    return {**parsed, "priceFeeds": rows}


def _as_of_history(row: Row, at_us: int, channel: str) -> Row:
    """A row of the router in the spelling of the history, whose integers are numbers."""
    number = CHANNELS.index(channel) + 1 if channel in CHANNELS else channel
    told = {"price_feed_id": exact(row["priceFeedId"]), "publish_time": at_us, "channel": number,
            "channel_name": channel, "served_by": "router"}  # fmt: skip
    held = {snake(name): value for name, value in row.items() if name != "priceFeedId"}
    return told | {name: value if exact(value) is None else exact(value) for name, value in held.items()}


def _of_these(rows: list[Any], name: str, ids: Feeds) -> list[Row]:
    """The rows of the feeds that were asked for; what is no row is left out."""
    wanted = frozenset(ids)
    return [row for row in rows if isinstance(row, dict) and exact(row.get(name)) in wanted]


def _read_catalog(rows: Any) -> tuple[Catalog, KeyTypes]:
    if not isinstance(rows, list):
        raise _unreadable()
    # Row by row out of the list, whose tree is ten times what is kept of it.
    catalog = Catalog(feed for feed in map(read_feed, _taken(rows)) if feed is not None)
    return catalog, of_catalog(catalog)


def _taken(rows: list[Any]) -> Iterator[Any]:
    while rows:
        yield rows.pop()


def _read_candles(told: Any) -> CandleColumns:
    """Columns of the same length, in order; a candle with something else than numbers in it is left out."""
    if not isinstance(told, dict):
        raise _unreadable()
    if told.get("s") == "error":
        raise QueryFailed("Pyth Pro could not make these candles; try another range or resolution.", source=SOURCE)
    columns = [told.get(name) or [] for name in "tohlcv"]
    if not all(isinstance(column, list) for column in columns):
        raise _unreadable()
    columns[5] = columns[5] or [0] * len(columns[0])
    if len({len(column) for column in columns}) != 1:
        raise _unreadable()
    if _are_sound(columns):
        return CandleColumns(*columns)
    by_time = {row[0]: row for row in zip(*columns, strict=True) if all(map(_is_number, row))}
    rows = [by_time[at] for at in sorted(by_time)]
    times, *figures = ([row[place] for row in rows] for place in range(6))
    return CandleColumns([int(at) for at in times], *figures)


def _are_sound(columns: list[list[Any]]) -> bool:
    """Whether nothing is to be mended, as in nearly every answer: looked at by the column, which is quick."""
    times = columns[0]
    if not times or set(map(type, times)) != {int} or not all(map(lt, times, islice(times, 1, None))):
        return False
    return all(set(map(type, one)) <= _NUMBERS and max(map(abs, one)) < _LARGEST for one in columns)


_NUMBERS = {int, float}


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < _LARGEST


def _object(told: Any) -> Row:
    if not isinstance(told, dict):
        raise _unreadable()
    return told


def _unreadable() -> Unreachable:
    return Unreachable("Pyth Pro answered in a shape that this server does not know; try again later.", source=SOURCE)
