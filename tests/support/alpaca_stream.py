"""The stub's websocket: JSON or msgpack as the request's Content-Type says, keys, subscriptions, refusals, silences.

Its traits: control frames have one message, data frames as many as there are; times are Timestamp extensions in
msgpack and text in JSON; one connection to an endpoint, and one that broke may keep its place for a while
(`lingers_s`); a subscription is answered with all that is subscribed to now. What should go wrong is queued: `upgrades`
are statuses that the next connections are refused with, `refusing` codes that the next ones are answered with.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import msgpack
import orjson
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from quantdeck.domain.candles import Bars
from tests.support.alpaca_market import KEY, SECRET, Market

__all__ = ["ERRORS", "Stream"]

STOCKS, COINS = ("/v2/iex", "/v2/sip", "/v2/test"), ("/v1beta3/crypto/us",)
CHANNELS = {"b": "bars", "u": "updatedBars", "d": "dailyBars"}
OTHERS = ("trades", "quotes", "statuses", "lulds")
ERRORS = {
    400: "invalid syntax",
    401: "not authenticated",
    402: "auth failed",
    403: "already authenticated",
    404: "auth timeout",
    405: "symbol limit exceeded",
    406: "connection limit exceeded",
    407: "slow client",
    408: "v2 not enabled",
    409: "insufficient subscription",
    410: "invalid subscribe action for this feed",
    500: "internal error",
}
ON_SUBSCRIBING = frozenset((405, 409, 410))
"""Codes of `refusing` that answer a subscription; the others answer the keys."""


@dataclass(eq=False)
class _Client:
    connection: ServerConnection
    endpoint: str
    packed: bool
    authenticated: bool = False
    subscribed: dict[str, set[str]] = field(default_factory=dict)

    async def tell(self, *messages: dict[str, Any]) -> None:
        await self.connection.send(self.encoded(messages))

    def encoded(self, messages: Iterable[dict[str, Any]]) -> bytes | str:
        told = list(messages)
        if self.packed:
            return bytes(msgpack.packb([{**m, **_stamped(m)} for m in told]))
        return orjson.dumps([{**m, **_written(m)} for m in told]).decode()


@dataclass(eq=False)
class Stream:
    """See the module. `most_connected` is how many there ever were at once at one endpoint."""

    market: Market
    auth_s: float = 10
    lingers_s: float = 0
    most_symbols: int | None = None
    mute: bool = False
    has_sip: bool = False
    refusing: list[int] = field(default_factory=list)
    upgrades: list[int] = field(default_factory=list)
    connects: int = 0
    accepted: int = 0
    heard: list[dict[str, Any]] = field(default_factory=list)
    most_connected: int = 0
    url: str = ""
    clients: set[_Client] = field(default_factory=set)
    _places: Counter[str] = field(default_factory=Counter)  # taken, by connections and by those that linger
    _open: Counter[str] = field(default_factory=Counter)
    _sending: set[asyncio.Task[None]] = field(default_factory=set)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        async with serve(
            self._serve, "127.0.0.1", 0, process_request=self._let_in, ping_interval=None, close_timeout=1
        ) as server:
            self.url = f"ws://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}"
            try:
                yield
            finally:
                for client in list(self.clients):
                    client.connection.transport.abort()
                await asyncio.gather(*self._sending, return_exceptions=True)

    def subscribed(self, channel: str = "bars") -> set[str]:
        """What somebody listens to now."""
        return {symbol for client in self.clients for symbol in client.subscribed.get(channel, ())}

    def send_bars(self, symbol: str, bars: Bars, kind: str = "b") -> None:
        """To those who listen; in frames of a hundred."""
        rows = list(zip(*(column.tolist() for column in bars.columns()), strict=True))
        self.send([{"T": kind, "S": symbol, "t": row[0], **dict(zip("ohlcv", row[1:], strict=True)), "n": 7,
                    "vw": row[4]} for row in rows])  # fmt: skip

    def send(self, messages: list[dict[str, Any]]) -> None:
        """Data to those who listen to it, unless the stream is mute."""
        if self.mute:
            return
        for client in self.clients:
            theirs = [
                m for m in messages
                if {m["S"], "*"} & client.subscribed.get(CHANNELS[m["T"]], set())
            ]  # fmt: skip
            for at in range(0, len(theirs), 100):
                self._later(client, client.encoded(theirs[at : at + 100]))

    def fail(self, code: int) -> None:
        """Tell everybody of an error, and hang up unless it leaves a subscription as it was."""
        for client in list(self.clients):
            self._later(client, client.encoded([_error(code)]), hang_up=code not in ON_SUBSCRIBING)

    def drop(self) -> None:
        """Break every connection off, without a word."""
        for client in list(self.clients):
            client.connection.transport.abort()

    def _later(self, client: _Client, frame: bytes | str, *, hang_up: bool = False) -> None:
        async def send() -> None:
            try:
                async with client.connection.quantdeck_turn:  # type: ignore[attr-defined]
                    await client.connection.send(frame)
                    if hang_up:
                        await client.connection.close()
            except ConnectionClosed:
                pass

        task = asyncio.get_running_loop().create_task(send())
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    async def _let_in(self, connection: ServerConnection, request: Request) -> Response | None:
        self.connects += 1
        if self.upgrades:
            return connection.respond(self.upgrades.pop(0), "too many requests.\n")
        if request.path not in (*STOCKS, *COINS):
            return connection.respond(404, "not found\n")
        return None

    async def _serve(self, connection: ServerConnection) -> None:
        assert connection.request is not None
        headers, endpoint = connection.request.headers, connection.request.path
        connection.quantdeck_turn = asyncio.Lock()  # type: ignore[attr-defined]
        client = _Client(connection, endpoint, headers.get("Content-Type") == "application/msgpack")
        self._open[endpoint] += 1
        self.most_connected = max(self.most_connected, self._open[endpoint])
        took_place = False
        try:
            await client.tell({"T": "success", "msg": "connected"})
            took_place = await self._authenticate(client, headers.get("APCA-API-KEY-ID"),
                                                  headers.get("APCA-API-SECRET-KEY"))  # fmt: skip
            if took_place:
                self.clients.add(client)
                self.accepted += 1
                self._changed()
                async for frame in connection:
                    await self._hear(client, frame)
        except ConnectionClosed:
            pass
        finally:
            self._open[endpoint] -= 1
            self.clients.discard(client)
            self._changed()
            if took_place:
                loop = asyncio.get_running_loop()
                loop.call_later(self.lingers_s, self._places.subtract, {endpoint: 1})

    async def _authenticate(self, client: _Client, key: str | None, secret: str | None) -> bool:
        """Whether it may stay: the keys are right, and its place is free."""
        if key is None:
            try:
                async with asyncio.timeout(self.auth_s):
                    said = await self._read(client, await client.connection.recv())
            except TimeoutError:
                return await self._refused(client, 404)
            if said is None or said.get("action") != "auth":
                return await self._refused(client, 400 if said is None else 401)
            key, secret = said.get("key"), said.get("secret")
        if code := self._objection(client, key, secret):
            return await self._refused(client, code)
        self._places[client.endpoint] += 1
        client.authenticated = True
        await client.tell({"T": "success", "msg": "authenticated"})
        return True

    def _objection(self, client: _Client, key: Any, secret: Any) -> int:
        if self.refusing and self.refusing[0] not in ON_SUBSCRIBING:
            return self.refusing.pop(0)
        if (key, secret) != (KEY, SECRET):
            return 402
        if client.endpoint == "/v2/sip" and not self.has_sip:
            return 409
        return 406 if self._places[client.endpoint] else 0

    async def _refused(self, client: _Client, code: int) -> bool:
        await client.tell(_error(code))
        await client.connection.close()
        return False

    async def _hear(self, client: _Client, frame: bytes | str) -> None:
        said = await self._read(client, frame)
        action = None if said is None else said.get("action")
        if said is None or action not in ("auth", "subscribe", "unsubscribe"):
            await client.tell(_error(400))
            return
        if action == "auth":
            await client.tell(_error(403))
            return
        self.heard.append(said)
        if self.refusing and self.refusing[0] in ON_SUBSCRIBING:
            await client.tell(_error(self.refusing.pop(0)))
            return
        channels = [name for name in said if name in (*CHANNELS.values(), *OTHERS)]
        if any(not isinstance(said[name], list) for name in channels):
            await client.tell(_error(400))
            return
        now = {name: set(held) for name, held in client.subscribed.items()}
        for name in channels:
            wanted = set(said[name])
            now[name] = now.get(name, set()) | wanted if action == "subscribe" else now.get(name, set()) - wanted
        if self.most_symbols is not None and len(now.get("bars", ())) > self.most_symbols:
            await client.tell(_error(405))
            return
        client.subscribed = now
        told = {name: sorted(now.get(name, ())) for name in (*OTHERS, *CHANNELS.values())}
        await client.tell({"T": "subscription", **told})
        self._changed()

    async def _read(self, client: _Client, frame: bytes | str) -> dict[str, Any] | None:
        try:
            said = msgpack.unpackb(frame) if client.packed else orjson.loads(frame)
        except (ValueError, TypeError, msgpack.UnpackException):
            return None
        return said if isinstance(said, dict) else None

    def _changed(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()


def _error(code: int) -> dict[str, Any]:
    return {"T": "error", "code": code, "msg": ERRORS[code]}


def _stamped(message: dict[str, Any]) -> dict[str, Any]:
    return {"t": msgpack.Timestamp(message["t"], 0)} if "t" in message else {}


def _written(message: dict[str, Any]) -> dict[str, Any]:
    if "t" not in message:
        return {}
    return {"t": datetime.fromtimestamp(message["t"], UTC).strftime("%Y-%m-%dT%H:%M:%SZ")}
