"""Quotes in a JetStream KV bucket: by symbol (EUR/USD, AAPL) the last bid and ask, and when they were."""

from __future__ import annotations

from datetime import datetime
from math import isfinite
from typing import Any

import orjson

from quantdeck.connections.databases import Databases
from quantdeck.connections.nats import SOURCE, Nats
from quantdeck.core.clock import Now
from quantdeck.settings import Settings
from quantdeck.sources.quotes import FRESH_FOR, Quote, Quotes

__all__ = ["NatsQuotes", "connect"]


def connect(url: str, settings: Settings, databases: Databases) -> NatsQuotes:
    """The adapter; nothing is connected before the first question."""
    del databases
    return NatsQuotes(Nats(url, settings.nats_streams))


class NatsQuotes(Quotes):
    """See the port. A quote that makes no sense is none."""

    source = SOURCE

    def __init__(self, nats: Nats) -> None:
        self._nats = nats

    async def ping(self) -> None:
        await self._nats.ping()

    async def close(self) -> None:
        await self._nats.close()

    async def latest(self, symbol: str, *, as_of: Now) -> Quote | None:
        found = await self._nats.get(self._nats.settings.quotes, symbol)
        quote = None if found is None else _quote(found[0])
        if quote is None or not 0 <= as_of.timestamp() - quote.at.timestamp() <= FRESH_FOR.total_seconds():
            return None
        return quote


def _quote(data: bytes) -> Quote | None:
    try:
        told: Any = orjson.loads(data)
        quote = Quote(float(told["bid"]), float(told["ask"]), datetime.fromisoformat(told["timestamp"]))
    except (ValueError, TypeError, KeyError):
        return None
    sound = 0 < quote.bid < quote.ask and isfinite(quote.ask) and quote.at.tzinfo is not None
    return quote if sound else None
