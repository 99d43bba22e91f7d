"""The SDK's two streams, sitting directly on the pipes.

A line is read, answered and written without a queue, a task or a thread of ours in between. The two know each other:
the outbox sees which requests have been answered, the inbox holds the account of those that have not.
"""

from __future__ import annotations

import asyncio
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any, Self, cast

import anyio
from mcp_types import (
    CONNECTION_CLOSED,
    INVALID_REQUEST,
    PROTOCOL_VERSION_META_KEY,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)
from mcp_types.version import LATEST_HANDSHAKE_VERSION

from quantdeck.transports.lines import (
    ID_IN_FLIGHT,
    BadLine,
    LineCutter,
    read_line,
    usable_id,
    write_error,
    write_line,
)
from quantdeck.transports.sdk_seams import ServerMessageMetadata, SessionMessage, coerce_request_id

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_types import JSONRPCMessage, RequestId

__all__ = ["Inbox", "Outbox"]

MAX_IN_FLIGHT = 64
_ANSWERS = (JSONRPCResponse, JSONRPCError)
MAX_BACKLOG = 1024
HIGH_WATER_BYTES = 256 * 1024
NEEDS_NO_HANDSHAKE = frozenset({"initialize", "ping", "server/discover"})
OUR_HANDSHAKE = JSONRPCRequest(
    jsonrpc="2.0",
    id="quantdeck-handshake-free",
    method="initialize",
    params={
        "protocolVersion": LATEST_HANDSHAKE_VERSION,
        "capabilities": {},
        "clientInfo": {"name": "handshake-free", "version": "0"},
    },
)
INITIALIZED = JSONRPCNotification(jsonrpc="2.0", method="notifications/initialized")


class Outbox(asyncio.BaseProtocol):
    """The SDK's write stream: writes in the caller's own turn, and makes it wait only above high water."""

    inbox: Inbox

    def __init__(self) -> None:
        self._transport: asyncio.WriteTransport | None = None
        self._room = asyncio.Event()
        self._room.set()
        self._closed = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.WriteTransport", transport)
        self._transport.set_write_buffer_limits(HIGH_WATER_BYTES)

    def pause_writing(self) -> None:
        self._room.clear()

    def resume_writing(self) -> None:
        self._room.set()
        self.inbox.read_on()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client has gone: nobody is left to answer."""
        self._transport = None
        self._close()
        self.inbox.stop()

    @property
    def congested(self) -> bool:
        """Whether the client has stopped reading."""
        return not self._room.is_set()

    async def send(self, item: SessionMessage) -> None:
        message = item.message
        line = write_line(message)
        # Waiting before the write, not after it, bounds the buffer: a call stays in flight until it is written.
        while self.congested:
            await self._room.wait()
        if self._closed:
            raise anyio.ClosedResourceError
        if isinstance(message, _ANSWERS):
            if message.id is not None and self.inbox.settle(message.id):
                self.write(line)
            return
        self.write(line)
        if isinstance(message, JSONRPCRequest):
            self.inbox.expect_answer(message.id)

    def write(self, line: bytes) -> None:
        """Write a line whether or not there is room; nothing happens when the client has gone."""
        if self._transport is not None:
            self._transport.write(line)

    async def flush(self, timeout_s: float) -> None:
        """Wait until the client has been handed every byte, or the time is up."""
        if self._transport is not None:
            self._transport.set_write_buffer_limits(0)
        with anyio.move_on_after(timeout_s):
            await self._room.wait()

    def give_up_waiting(self) -> None:
        """Drop what a client that has stopped reading has left unread."""
        if self.congested:
            self._close()

    def hang_up(self) -> None:
        """Let go of the pipe."""
        # asyncio tells of the loss once more for each abort, and fails when that is told twice
        if self._transport is not None and not self._transport.is_closing():
            self._transport.abort()

    def _close(self) -> None:
        self._closed = True
        self._room.set()

    async def aclose(self) -> None:
        self._closed = True

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


class Inbox(asyncio.Protocol):
    """The SDK's read stream, and the account of the requests that are still owed an answer.

    At most MAX_IN_FLIGHT requests are with the SDK. More wait here while everything else (a cancellation, an answer)
    passes them by; only when the backlog is full does reading pause.
    """

    def __init__(self, outbox: Outbox, cutter: LineCutter, on_closing: Callable[[], None], drain_s: float) -> None:
        self.draining = False
        self._outbox = outbox
        self._cutter = cutter
        self._on_closing = on_closing
        self._drain_s = drain_s
        self._drain_timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.ReadTransport | None = None
        self._lines: deque[bytes | None] = deque()
        self._ready: deque[SessionMessage | Exception] = deque()
        self._waiting: dict[RequestId, JSONRPCRequest] = {}
        self._in_flight: set[RequestId] = set()
        self._expected: set[RequestId] = set()
        self._modern: bool | None = None
        self._hands_shaken = self._shaking_hands = False
        self._paused = self._ended = self._closed = self._refused_unread = False
        self._sleeper: asyncio.Future[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.ReadTransport", transport)

    def data_received(self, data: bytes) -> None:
        self._lines.extend(self._cutter.feed(data))
        self.read_on()

    def eof_received(self) -> None:
        self._lines.extend(self._cutter.end())
        self._ended = True
        self.read_on()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self.eof_received()

    def read_on(self) -> None:
        """Take in lines while there is room, and have the pipe read exactly when some is left."""
        while self._lines and not self._is_full():
            self._take(self._lines.popleft())
        if self._ended and not self._lines:
            self.drain()
        paused = self._is_full()
        if self._transport is None or paused == self._paused:
            return
        self._paused = paused
        if paused:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def _is_full(self) -> bool:
        # Refusals are written without waiting, so a client that reads none of them is not read either.
        self._refused_unread = self._refused_unread and self._outbox.congested
        return len(self._waiting) + len(self._ready) >= MAX_BACKLOG or self._refused_unread

    def _take(self, line: bytes | None) -> None:
        try:
            if line is None:
                raise BadLine(INVALID_REQUEST, "Invalid request: line too long")  # noqa: TRY301
            message = read_line(line)
        except BadLine as bad:
            self._refuse(bad)
            return
        if isinstance(message, JSONRPCRequest):
            self._accept(message)
        elif message is not None and self._modern is not None:
            # Before the first request there is nothing to cancel, answer or confirm.
            self._pass_on(message)

    def _refuse(self, bad: BadLine) -> None:
        self._outbox.write(write_error(bad.request_id, bad.code, bad.message))
        self._refused_unread = self._outbox.congested

    def _accept(self, request: JSONRPCRequest) -> None:
        key = coerce_request_id(request.id)
        if key in self._in_flight or key in self._waiting:
            self._refuse(BadLine(INVALID_REQUEST, ID_IN_FLIGHT, request.id))
            return
        if not self._hands_shaken:
            self._open(request)
        if self._waiting or len(self._in_flight) >= MAX_IN_FLIGHT:
            self._waiting[key] = request
        else:
            self._start(key, request)

    def _open(self, request: JSONRPCRequest) -> None:
        """Settle the era by the first request, and shake hands for a legacy client that just calls."""
        enveloped = _has_envelope(request.params)
        if self._modern is None:
            self._modern = enveloped and request.method != "initialize"
        if not (self._modern or enveloped or request.method in NEEDS_NO_HANDSHAKE):
            self._shaking_hands = True
            self._start(OUR_HANDSHAKE.id, OUR_HANDSHAKE)
            self._push(SessionMessage(INITIALIZED))
        self._hands_shaken = self._modern or self._shaking_hands or request.method == "initialize"

    def _start(self, key: RequestId, request: JSONRPCRequest) -> None:
        self._in_flight.add(key)
        # A cancelled request is never answered; the SDK then calls this instead.
        unanswered = partial(self._unanswered, key)
        self._push(SessionMessage(request, ServerMessageMetadata(on_request_unanswered=unanswered)))

    async def _unanswered(self, key: RequestId) -> None:
        self.settle(key)

    def _pass_on(self, message: JSONRPCMessage) -> None:
        if isinstance(message, JSONRPCNotification):
            if message.method == "notifications/cancelled" and self._withdraw(message.params):
                return
        elif message.id is not None:
            self._expected.discard(coerce_request_id(message.id))
        self._push(SessionMessage(message))

    def _withdraw(self, params: Mapping[str, Any] | None) -> bool:
        """Drop a cancelled request that has not started."""
        request_id = usable_id((params or {}).get("requestId"))
        return request_id is not None and self._waiting.pop(coerce_request_id(request_id), None) is not None

    def _push(self, item: SessionMessage) -> None:
        self._ready.append(item)
        self._wake()

    def settle(self, request_id: RequestId) -> bool:
        """Strike a request off the account and start the next; False if the client never asked (our own handshake)."""
        self._in_flight.discard(coerce_request_id(request_id))
        if self._waiting and len(self._in_flight) < MAX_IN_FLIGHT:
            key = next(iter(self._waiting))
            self._start(key, self._waiting.pop(key))
        if self.draining:
            self._close_if_idle()
        if self._shaking_hands and request_id == OUR_HANDSHAKE.id:
            self._shaking_hands = False
            return False
        return True

    def expect_answer(self, request_id: RequestId) -> None:
        """Note that the client has been asked something; once nothing more is read, the answer is that it left."""
        if self.draining:
            self._push(_no_answer(request_id))
        else:
            self._expected.add(request_id)

    def drain(self) -> None:
        """Read nothing more, and end the stream once every request has been answered or the time is up."""
        if self.draining or self._closed:
            return
        self.draining = True
        self._drain_timer = self._loop.call_later(self._drain_s, self.stop)
        self._lines.clear()
        if self._transport is not None:
            self._transport.close()
        for request_id in self._expected:
            self._push(_no_answer(request_id))
        self._close_if_idle()
        self._on_closing()

    def drain_left_s(self) -> float:
        """What is left of the time to drain."""
        return self._drain_timer.when() - self._loop.time() if self._drain_timer is not None else 0.0

    def _close_if_idle(self) -> None:
        if not self._in_flight and not self._waiting:
            self._close()

    def stop(self) -> None:
        """End the stream now: the SDK cancels what it has, and what it never got is answered here."""
        for request in self._waiting.values():
            self._outbox.write(write_error(request.id, CONNECTION_CLOSED, "Connection closed"))
        self._waiting.clear()
        self._ready.clear()
        self._outbox.give_up_waiting()
        self._close()

    def hang_up(self) -> None:
        """Let go of the pipe."""
        self._close()
        if self._drain_timer is not None:
            self._drain_timer.cancel()
        if self._transport is not None:
            self._transport.close()

    def _close(self) -> None:
        self._closed = True
        self._wake()

    def _wake(self) -> None:
        if self._sleeper is not None and not self._sleeper.done():
            self._sleeper.set_result(None)

    async def _sleep(self) -> None:
        self._sleeper = self._loop.create_future()
        try:
            await self._sleeper
        finally:
            self._sleeper = None

    async def opens_modern(self) -> bool | None:
        """The era of the first request, or None if none came."""
        while self._modern is None and not self._closed:
            await self._sleep()
        return self._modern

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        while not self._ready:
            if self._closed:
                raise StopAsyncIteration
            await self._sleep()
        item = self._ready.popleft()
        if self._paused:
            self.read_on()
        return item

    async def receive(self) -> SessionMessage | Exception:
        try:
            return await anext(self)
        except StopAsyncIteration:
            raise anyio.EndOfStream from None

    async def aclose(self) -> None:
        self._close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


def _has_envelope(params: Mapping[str, Any] | None) -> bool:
    meta = params.get("_meta") if params else None
    return isinstance(meta, dict) and PROTOCOL_VERSION_META_KEY in meta


def _no_answer(request_id: RequestId) -> SessionMessage:
    error = ErrorData(code=CONNECTION_CLOSED, message="Connection closed")
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=request_id, error=error))
