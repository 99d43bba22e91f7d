"""What the HTTP routes share: a body within bounds, an answer, a refusal, a client that leaves."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import anyio
import mcp_types as t
import orjson
from starlette.types import Receive, Scope, Send

from quantdeck.core.clock import iso
from quantdeck.core.wire import digest
from quantdeck.ids import fresh_id, usable_id

__all__ = [
    "BadRequest",
    "Bounds",
    "Refused",
    "correlation_id",
    "header",
    "headers_of",
    "read_body",
    "refuse",
    "replay",
    "reply",
    "tell_refused",
    "while_connected",
]

log = logging.getLogger(__name__)

WATCH_AFTER_S = 0.05
"""A call that is over sooner is not watched for its client's leaving: that would cost more than it could save."""

_JSON = (b"content-type", b"application/json")
_CATALOG_CODES = {401: "MCP-002", 403: "MCP-002", 404: "MCP-007", 408: "MCP-004", 500: "MCP-999", 503: "MCP-003"}


class Refused(Exception):
    """A request that is not let through: its status, our sentence, more headers."""

    def __init__(self, status: int, sentence: str, **headers: str) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence
        self.headers = headers


class BadRequest(Refused):
    """A body that cannot be understood."""

    def __init__(self, sentence: str) -> None:
        super().__init__(400, sentence)


def header(scope: Scope, name: bytes) -> str | None:
    """One header as text; the first, where it was sent twice."""
    return next((value.decode("latin-1") for key, value in scope["headers"] if key == name), None)


def headers_of(told: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    """Headers as ASGI has them."""
    return [(name.replace("_", "-").lower().encode(), value.encode("latin-1")) for name, value in told.items()]


async def reply(send: Send, status: int, body: bytes, headers: Iterable[tuple[bytes, bytes]] = (_JSON,)) -> None:
    """Answer in one piece."""
    length = (b"content-length", str(len(body)).encode())
    await send({"type": "http.response.start", "status": status, "headers": [*headers, length]})
    await send({"type": "http.response.body", "body": body})


async def refuse(scope: Scope, send: Send, refused: Refused) -> None:
    """Say no in the shape that the clients of this path understand."""
    path, headers = scope["path"], [_JSON, *headers_of(refused.headers)]
    if path.startswith("/mcp/tools/"):
        asked = correlation_id(header(scope, b"x-correlation-id"))
        code = _CATALOG_CODES.get(refused.status, "MCP-001")
        body = catalog_error(code, refused.sentence, asked)
        tell_refused(scope, code, refused.sentence, asked)
        headers.append((b"x-correlation-id", asked.encode()))
    elif path == "/mcp" or path.startswith("/mcp/"):
        error = {"code": t.INVALID_REQUEST, "message": refused.sentence}
        body = orjson.dumps({"jsonrpc": "2.0", "id": None, "error": error})
    else:
        body = orjson.dumps({"error": refused.sentence})
    await reply(send, refused.status, body, headers)


def tell_refused(scope: Scope, code: str, sentence: str, asked: str) -> None:
    """Leave a trace of a call that never became one: no tool was found, or its caller was not let in."""
    peer = scope["client"][0] if scope.get("client") else None
    fields = {"error_code": code, "error_message": sentence, "correlation_id": asked, "path": scope["path"][:200]}
    log.info("refused", extra={"fields": fields | ({"client_ip_hash": digest(peer)[:8]} if peer else {})})


def catalog_error(code: str, message: str, asked: str, tool: str | None = None) -> bytes:
    """The catalog's error envelope, for what fails before there is a tool to answer in its own spec's."""
    body = {
        "error": True,
        "code": code,
        "message": message,
        "corr_id": asked,
        "details": {},
        "timestamp": iso(datetime.now(UTC)),
        "tool": tool,
    }
    return orjson.dumps(body)


def correlation_id(asked: Any) -> str:
    """The caller's id, or one of ours where there is none that a header can carry back."""
    return usable_id(asked) or f"mcp_{fresh_id(8)}"


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a body may be."""

    max_bytes: int
    arrival_s: float


async def read_body(scope: Scope, receive: Receive, bounds: Bounds) -> bytes | None:
    """The whole body, of which never more than is allowed is held; None if the client left first."""
    limit = bounds.max_bytes
    declared = header(scope, b"content-length")
    if declared is not None and int(declared) > limit:  # h11 has seen that it is a number
        raise _too_large(limit)
    first = await receive()
    if first["type"] == "http.request" and not first.get("more_body"):
        return bytes(_within(first.get("body", b""), limit))
    try:
        async with asyncio.timeout(bounds.arrival_s):
            return await _rest(first, receive, limit)
    except TimeoutError:
        raise Refused(408, "Timeout: the body did not arrive in time", connection="close") from None


async def _rest(message: Any, receive: Receive, limit: int) -> bytes | None:
    body = bytearray()
    while message["type"] == "http.request":
        body += message.get("body", b"")
        _within(body, limit)
        if not message.get("more_body"):
            return bytes(body)
        message = await receive()
    return None


def _within(body: Any, limit: int) -> Any:
    if len(body) > limit:
        raise _too_large(limit)
    return body


def _too_large(limit: int) -> Refused:
    return Refused(413, f"Invalid request: the body is larger than {limit} bytes")


def replay(body: bytes, receive: Receive) -> Receive:
    """A `receive` that gives this body first."""
    given = False

    async def again() -> Any:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


@contextmanager
def while_connected(receive: Receive, scope: anyio.CancelScope) -> Iterator[None]:
    """Cancel `scope` when the client hangs up.

    The watcher is a task without a group, because it begins late and mostly never: it ends with this context.
    """
    loop, watchers = asyncio.get_running_loop(), []
    timer = loop.call_later(WATCH_AFTER_S, lambda: watchers.append(loop.create_task(_until_gone(receive, scope))))
    try:
        yield
    finally:
        timer.cancel()
        for watcher in watchers:
            watcher.cancel()


async def _until_gone(receive: Receive, scope: anyio.CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()
