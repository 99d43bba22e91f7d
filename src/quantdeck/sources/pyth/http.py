"""Pyth Pro itself."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from quantdeck.connections.databases import Databases
from quantdeck.connections.pyth import SOURCE, PythApi
from quantdeck.core.clock import Now, iso
from quantdeck.core.errors import NotConfigured, NotInPast, QueryFailed, Unreachable
from quantdeck.core.wire import digest
from quantdeck.domain.pyth_feeds import Catalog, read_feed
from quantdeck.domain.pyth_numbers import exact
from quantdeck.settings import Pyth as Group
from quantdeck.settings import Settings
from quantdeck.sources.pyth import CandleColumns, InvalidToken, Pyth, Row
from quantdeck.sources.pyth.kept import Kept

__all__ = ["HttpPyth", "connect"]

_IDS_AT_ONCE = 100
"""Ids in the address of one request."""


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

    async def ping(self) -> None:
        """Nobody who set nothing of Pyth is told that it is out of reach."""
        if not self._chosen:
            told = "No Pyth Pro token is set; set PYTH_PRO_ACCESS_TOKEN (https://pyth.network/pricing has them)"
            raise NotConfigured(told, source=SOURCE, setting="QUANTDECK_PYTH__ACCESS_TOKEN")
        await self._api.live()

    async def close(self) -> None:
        await self._catalogs.close()
        await self._covered.close()
        await self._api.close()

    async def catalog(self, *, token: str | None) -> Catalog:
        async def load() -> Catalog:
            rows = await self._api.history("symbols", token=token)
            return await asyncio.to_thread(_read_catalog, rows)

        return await self._catalogs.get(_key(token), load)

    async def covered(self, *, token: str | None) -> frozenset[int]:
        async def load() -> frozenset[int]:
            rows = await self._api.history("symbols", [("entitled_only", "true")], token=token)
            return frozenset(feed.id for feed in _read_catalog(rows).feeds)

        return await self._covered.get(_key(token), load)

    async def latest(
        self, ids: Sequence[int], properties: Sequence[str], channel: str, *, token: str | None, as_of: Now
    ) -> Row:
        if as_of.fixed:
            told = f"The clock of this server stands at {iso(as_of)}, and Pyth Pro's latest prices are of now"
            raise NotInPast(f"{told}; ask get_historical_price.", source=SOURCE, type="invalid_input")
        if token is None:
            raise InvalidToken(missing=True)
        body = {
            "priceFeedIds": list(ids),
            "properties": list(properties),
            "formats": [],
            "parsed": True,
            "channel": channel,
        }
        told = await self._api.router("v1/latest_price", body, token=token)
        parsed = told.get("parsed") if isinstance(told, dict) else None
        if not isinstance(parsed, dict) or not isinstance(parsed.get("priceFeeds"), list):
            raise _unreadable()
        return {**parsed, "priceFeeds": _of_these(parsed["priceFeeds"], "priceFeedId", ids)}

    async def chart_config(self, channel: str, *, token: str | None) -> Row:
        return _object(await self._api.history(f"{channel}/config", token=token))

    async def document(self, which: str) -> Row:
        return _object(await self._api.document(which))

    async def _candles(
        self, symbol: str, resolution: str, begin_s: int, end_s: int, channel: str, token: str | None, as_of: Now
    ) -> CandleColumns:
        del as_of  # the service knows nothing of later
        query = [("symbol", symbol), ("from", str(begin_s)), ("to", str(end_s)), ("resolution", resolution)]
        return _read_candles(await self._api.history(f"{channel}/history", query, token=token))

    async def _prices(self, ids: Sequence[int], at_us: int, channel: str, token: str | None) -> list[Row]:
        found: list[Row] = []
        for begin in range(0, len(ids), _IDS_AT_ONCE):
            query = [("ids", str(number)) for number in ids[begin : begin + _IDS_AT_ONCE]]
            query.append(("timestamp", str(at_us)))
            rows = await self._api.history(f"{channel}/price", query, token=token)
            if not isinstance(rows, list):
                raise _unreadable()
            found += _of_these(rows, "price_feed_id", ids)
        return found


def _key(token: str | None) -> str:
    return "" if token is None else digest(token)


def _of_these(rows: list[Any], name: str, ids: Sequence[int]) -> list[Row]:
    """The rows of the feeds that were asked for; what is no row is left out."""
    wanted = frozenset(ids)
    return [row for row in rows if isinstance(row, dict) and exact(row.get(name)) in wanted]


def _read_catalog(rows: Any) -> Catalog:
    if not isinstance(rows, list):
        raise _unreadable()
    # Row by row out of the list, whose tree is ten times what is kept of it.
    return Catalog(feed for feed in map(read_feed, _taken(rows)) if feed is not None)


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
    by_time = {row[0]: row for row in zip(*columns, strict=True) if all(map(_is_number, row))}
    rows = [by_time[at] for at in sorted(by_time)]
    return CandleColumns(*([row[place] for row in rows] for place in range(6)))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _object(told: Any) -> Row:
    if not isinstance(told, dict):
        raise _unreadable()
    return told


def _unreadable() -> Unreachable:
    return Unreachable("Pyth Pro answered in a shape that this server does not know; try again later.", source=SOURCE)
