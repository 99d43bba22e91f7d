"""Positions in a JetStream KV bucket, kept up by the fills that are published: quantity by symbol, a key an account.

A fill is counted once: the key says up to which message of the stream it is true, and is written only if nobody else
has written it since. Servers that run side by side share one durable consumer, so it does not matter which counts it.
"""

from __future__ import annotations

import logging
from base64 import urlsafe_b64encode
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from math import isfinite
from typing import Any

import orjson

from quantdeck.connections.databases import Databases
from quantdeck.connections.nats import SOURCE, Nats
from quantdeck.core.clock import Now, iso
from quantdeck.core.errors import NotInPast
from quantdeck.domain import symbols
from quantdeck.domain.exact import total
from quantdeck.settings import Settings
from quantdeck.sources.fills import NewFill
from quantdeck.sources.positions import Positions, Tracked

__all__ = ["NatsPositions", "connect", "fill_of"]

log = logging.getLogger(__name__)

SUBJECT = "executions.fill"
DURABLE = "quantdeck-positions"
_PATIENCE_S = 5.0
_DUST = 1e-12
_REMEMBERED = 200
"""Ids of an account's last fills: who publishes again because he heard nothing has still traded once."""


def connect(url: str, settings: Settings, databases: Databases) -> NatsPositions:
    """The adapter; nothing is connected before the first question."""
    del databases
    return NatsPositions(Nats(url, settings.nats_streams), settings.account)


class NatsPositions(Positions):
    """See the port. `account` is whose fills are that name nobody."""

    source = SOURCE

    def __init__(self, nats: Nats, account: str) -> None:
        self._nats = nats
        self._bucket = nats.settings.positions
        self._account = account

    async def ping(self) -> None:
        await self._nats.ping()

    async def close(self) -> None:
        await self._nats.close()

    async def revision(self) -> Any:
        return await self._nats.last_write(self._bucket)

    async def held(self, account: str, *, as_of: Now) -> list[Tracked]:
        found = await self._nats.get(self._bucket, _key(account))
        if found is None:
            return []
        book = orjson.loads(found[0])
        if as_of.fixed and datetime.fromisoformat(book["updated_at"]) > as_of:
            raise NotInPast(
                f"The positions of {account} were changed after the fixed clock; their earlier state is not kept",
                source=SOURCE,
                clock=iso(as_of),
            )
        held = sorted(book["positions"].items())
        return [Tracked(symbol, quantity, price) for symbol, (quantity, price) in held]

    async def follow(self, told: Callable[[NewFill], Awaitable[Any]]) -> None:
        """Count fills as they are published, for as long as the connection holds; each is told of as well."""
        async with self._nats.consumer(SUBJECT, DURABLE) as consumer:
            while True:
                try:
                    messages = await consumer.fetch(1, timeout=_PATIENCE_S)
                except TimeoutError:  # nobody has traded
                    await self._nats.ping()
                    continue
                for message in messages:
                    await self._counted(message, told)

    async def _counted(self, message: Any, told: Callable[[NewFill], Awaitable[Any]]) -> None:
        number = message.metadata.sequence.stream
        try:
            fill = fill_of(message.data, number, self._account)
        except ValueError as error:
            log.warning("fill_refused", extra={"fields": {"stream_seq": number, "why": str(error)}})
            await message.term()
            return
        await told(fill)
        while not await self._add(fill, number):
            pass
        await message.ack_sync(timeout=_PATIENCE_S)

    async def _add(self, fill: NewFill, number: int) -> bool:
        """Count a fill, unless it is counted; False where another wrote meanwhile."""
        found = await self._nats.get(self._bucket, _key(fill.account_id))
        book: dict[str, Any] = {"seq": 0, "fills": [], "positions": {}, "updated_at": iso(fill.filled_at)}
        if found is not None:
            book = orjson.loads(found[0])
        if number <= book["seq"] or fill.fill_id in book["fills"]:
            return True
        signed = fill.size if fill.side == "BUY" else -fill.size
        held, _ = book["positions"].get(fill.symbol, (0.0, None))
        quantity = total((held, signed))
        book["positions"][fill.symbol] = (quantity, fill.price)
        if abs(quantity) <= _DUST * fill.size:
            del book["positions"][fill.symbol]
        latest = max(datetime.fromisoformat(book["updated_at"]), fill.filled_at)
        book |= {"seq": number, "fills": [*book["fills"], fill.fill_id][-_REMEMBERED:], "updated_at": iso(latest)}
        return await self._nats.put(
            self._bucket, _key(fill.account_id), orjson.dumps(book), after=found[1] if found else None
        )


def _key(account: str) -> str:
    return urlsafe_b64encode(account.encode()).decode()


def fill_of(data: bytes, number: int, account: str) -> NewFill:
    """A published fill: `symbol` or `instrument`, `side`, `quantity` or `qty`, `price`; ValueError for what is none.

    `fill_id`, `account_id`, `mid_price` and `timestamp` may be left out.
    """
    told = orjson.loads(data)
    if not isinstance(told, dict):
        told = {}
    side = {"buy": "BUY", "long": "BUY", "sell": "SELL", "short": "SELL"}.get(str(told.get("side")).lower())
    if side is None:
        raise ValueError("side is none of buy and sell")
    said = told.get("timestamp")
    at = datetime.fromisoformat(said) if isinstance(said, str) else datetime.now(UTC)
    if at.tzinfo is None:
        raise ValueError("timestamp has no offset from UTC")
    mid = told.get("mid_price")
    return NewFill(
        fill_id=str(told.get("fill_id") or f"{SUBJECT}:{number}")[:128],
        account_id=str(told.get("account_id") or account)[:128],
        symbol=symbols.instrument(str(told.get("symbol") or told.get("instrument"))),
        side=side,
        size=_above_zero(told.get("quantity", told.get("qty")), "quantity"),
        price=_above_zero(told.get("price"), "price"),
        mid_price=None if mid is None else _above_zero(mid, "mid_price"),
        filled_at=at.astimezone(UTC),
        created_at=datetime.now(UTC),
    )


def _above_zero(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value) or not 0 < value < 1e300:
        raise ValueError(f"{name} is no number above 0")
    return float(value)
