"""What is served over HTTP: the MCP endpoints in both eras, the REST facade, health and metrics, behind one door.

    /mcp                  every selected server          POST /mcp/tools/call, /mcp/tools/list   the REST facade
    /mcp/<server>         one of them                    GET /health, /metrics

A request passes, in this order: shutting down? · Host and Origin · token · route · body within bounds.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import orjson
from mcp.server.connection import Connection
from mcp_types import DEFAULT_NEGOTIATED_VERSION, PARSE_ERROR
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request

from quantdeck.app import App, running
from quantdeck.core.call import Caller
from quantdeck.core.server import Server
from quantdeck.settings import Settings
from quantdeck.transports.asgi import Bounds, Refused, header, read_body, refuse, replay, reply
from quantdeck.transports.auth import Identity, Tokens
from quantdeck.transports.health import HealthCheck
from quantdeck.transports.hosts import Hosts
from quantdeck.transports.lines import BadLine, is_json, read_line, write_error
from quantdeck.transports.mcp import CALLER_KEY, Endpoint
from quantdeck.transports.merging import merged
from quantdeck.transports.plain_calls import PlainCalls
from quantdeck.transports.rest import Rest
from quantdeck.transports.sdk_seams_http import SessionManager
from quantdeck.transports.signatures import Signatures
from quantdeck.transports.watchers import Watchers

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

__all__ = ["HttpApp", "http_app"]

log = logging.getLogger(__name__)

_PLAIN_TEXT = (b"content-type", b"text/plain; version=0.0.4; charset=utf-8")
_CUT_OFF = Refused(
    503, "The server shut down before this was over; whether anything was changed is not known", connection="close"
)

_UNFORESEEN = Refused(500, "The server failed in a way it did not foresee; its log has the reason", connection="close")

RATE_HEADERS = ("x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset")

_CORS: dict[str, Any] = {
    "allow_methods": ("GET", "POST", "DELETE"),
    "allow_headers": ("*",),
    "expose_headers": ("mcp-session-id", "x-correlation-id", "retry-after", *RATE_HEADERS),
}

Handler = Callable[["Scope", "Receive", "Send", Caller], Awaitable[None]]


def http_app(
    app: App, servers: tuple[Server, ...], watchers: Watchers, settings: Settings, *, stateless: bool = False
) -> HttpApp:
    """Everything above as one ASGI app, whose lifespan runs the background tasks and the sessions.

    Raises MisconfiguredError where the token file cannot be used.
    """
    return HttpApp(app, servers, watchers, settings, stateless=stateless)


class HttpApp:
    """See the module."""

    def __init__(
        self, app: App, servers: tuple[Server, ...], watchers: Watchers, settings: Settings, *, stateless: bool
    ) -> None:
        self.tokens = Tokens(settings)
        self._app, self._watchers = app, watchers
        self._hosts = Hosts(settings.http)
        self._health = HealthCheck(app)
        self._closing = asyncio.Event()
        self._door: ASGIApp = self._answer
        if settings.http.origins:  # a page may only read what it is told it may
            self._door = CORSMiddleware(self._answer, settings.http.origins, **_CORS)
        self._signatures = Signatures(settings.hmac_secret.get_secret_value(), app.runtime.coordination)
        self._bounds = bounds = Bounds(int(settings.http.max_body_mb * 2**20), settings.http.arrival_s)
        rest = Rest(app, servers, bounds)

        def endpoint(offered: tuple[Server, ...]) -> McpRoute:
            offers = Endpoint(app, merged(offered), watchers, raw=False, dotted=settings.dotted_names)
            return McpRoute(offers, bounds, self._closing, stateless=stateless)

        self._endpoints = {"/mcp": endpoint(servers), **{f"/mcp/{s.name}": endpoint((s,)) for s in servers}}
        self._routes: dict[str, tuple[tuple[str, ...], Handler]] = {
            "/mcp/tools/call": (("POST",), rest.call),
            "/mcp/tools/list": (("POST",), rest.list),
            "/metrics": (("GET", "HEAD"), self._metrics),
            **{path: ((), endpoint.serve) for path, endpoint in self._endpoints.items()},
        }

    def close(self) -> None:
        """Let nothing in any more, and end the streams that would never end by themselves."""
        self._closing.set()
        self._watchers.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "http":
            await self._door(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._admit(scope, receive, send)
        except Refused as refused:
            await refuse(scope, send, refused)
        except Exception:
            log.exception("unexpected", extra={"fields": {"path": scope["path"][:200]}})
            with contextlib.suppress(RuntimeError):  # a stream that has begun has no other answer
                await refuse(scope, send, _UNFORESEEN)
        except asyncio.CancelledError:
            if not self._closing.is_set():
                raise
            with contextlib.suppress(RuntimeError):  # a stream that has begun has no other answer
                await refuse(scope, send, _CUT_OFF)

    async def _admit(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._closing.is_set():
            raise Refused(503, "The server is shutting down; try again", retry_after="1", connection="close")
        self._hosts.check(scope)
        path = scope["path"].removesuffix("/") or "/"  # clients are given either
        identity = self._identify(scope)
        if self._signatures.presented(scope):
            self._signatures.check_time(scope)
            body = await read_body(scope, receive, self._bounds)
            if body is None:
                return
            identity, receive = await self._signatures.identify(scope, body), replay(body, receive)
        if path == "/health":
            await self._serve_health(scope, send, identity)
            return
        if identity is None:
            needs = "a valid bearer token or signature" if self._signatures.used else "a valid bearer token"
            raise Refused(401, f"Unauthorized: this server needs {needs}", www_authenticate="Bearer")
        route = self._routes.get(path)
        if route is None:
            raise Refused(404, f"Not found: there is nothing at {path[:200]}")
        methods, handler = route
        if methods and scope["method"] not in methods:
            raise Refused(405, f"Method not allowed: {path} takes {methods[0]}", allow=", ".join(methods))
        if path.startswith("/mcp/") and path in self._endpoints and not identity.caller.sees(path[5:]):
            raise Refused(403, f"Forbidden: {identity.caller.id} may not use {path[5:]}")
        scope[CALLER_KEY] = identity.caller
        if identity.user is not None:
            scope["user"] = identity.user  # what the SDK binds a session to
        await handler(scope, receive, send, identity.caller)

    def _identify(self, scope: Scope) -> Identity | None:
        presented = [value for name, value in scope["headers"] if name == b"authorization"]
        if len(presented) > 1:
            raise Refused(400, "Invalid request: more than one Authorization header")
        scheme, _, bearer = presented[0].partition(b" ") if presented else (b"", b"", b"")
        peer = scope["client"][0] if scope.get("client") else "unknown"
        return self.tokens.identify(bearer.strip() if scheme.lower() == b"bearer" else None, peer)

    async def _serve_health(self, scope: Scope, send: Send, identity: Identity | None) -> None:
        if scope["method"] not in ("GET", "HEAD"):
            raise Refused(405, "Method not allowed: /health takes GET", allow="GET, HEAD")
        status, told = await self._health.ask(in_detail=identity is not None)
        await reply(send, status, orjson.dumps(told))

    async def _metrics(self, scope: Scope, receive: Receive, send: Send, caller: Caller) -> None:
        from quantdeck.transports.metrics import metrics

        del scope, receive, caller
        await reply(send, 200, metrics(self._app), [_PLAIN_TEXT])

    @asynccontextmanager
    async def _running(self) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            self._app.runtime.changed = self._watchers.changed
            await stack.enter_async_context(running(self._app))
            for endpoint in self._endpoints.values():
                await stack.enter_async_context(endpoint.manager.run())
            yield

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        async with self._running():
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})


class McpRoute:
    """One MCP endpoint: plain calls answered here, everything else by the SDK's sessions."""

    def __init__(self, endpoint: Endpoint, bounds: Bounds, closing: asyncio.Event, *, stateless: bool) -> None:
        self._endpoint = endpoint
        self._plain = PlainCalls(endpoint)
        self._bounds = bounds
        self._closing = closing
        self._stateless = stateless
        self.manager = SessionManager(
            endpoint.sdk, self._posted, stateless=stateless, max_request_body_size=bounds.max_bytes
        )

    async def serve(self, scope: Scope, receive: Receive, send: Send, caller: Caller) -> None:
        """Serve one request, whatever its era."""
        del caller
        if scope["method"] == "GET":
            if self._stateless:  # the SDK would open a stream on which nothing can ever come
                raise Refused(405, "Method not allowed: without sessions there are no streams to GET", allow="POST")
            await self._stream(scope, receive, send)
        elif scope["method"] == "POST":
            await self._post(scope, receive, send)
        else:
            await self.manager.handle_request(scope, receive, send)

    async def _post(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = await read_body(scope, receive, self._bounds)
        if body is None:
            return
        version = header(scope, b"mcp-protocol-version")
        modern = version is not None and version not in HANDSHAKE_PROTOCOL_VERSIONS
        try:
            _check(body, modern=modern)
        except BadLine as bad:
            await reply(send, 400, write_error(bad.request_id, bad.code, bad.message))
            return
        call = None
        if modern:
            call = self._plain.modern(scope, body)
        elif self._stateless:
            stranger = Connection.from_envelope(version or DEFAULT_NEGOTIATED_VERSION, None, None)
            call = self._plain.legacy(scope, body, stranger)
        if call is None:
            await self.manager.handle_request(scope, replay(body, receive), send)
        else:
            await self._plain.answer(call, receive, send)

    async def _posted(self, session_id: str, carry_on: ASGIApp, request: Request, receive: Receive, send: Send) -> None:
        """Look at what was posted to a session before the SDK does."""
        message = await receive()
        body = message.get("body", b"")
        connection = self._endpoint.sessions.ready(session_id)
        call = None if connection is None else self._plain.legacy(request.scope, body, connection)
        if call is None:
            await carry_on(request.scope, replay(body, receive), send)
        else:
            header = (b"mcp-session-id", session_id.encode())
            await self._plain.answer(call, receive, send, [header])

    async def _stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A client's stream for what the server has to say; it ends in good order when the server does."""
        begun = False
        # Nothing is kept to be sent again. Asked to, the SDK would answer nothing at all.
        scope = {**scope, "headers": [(name, value) for name, value in scope["headers"] if name != b"last-event-id"]}

        async def told(message: Any) -> None:
            nonlocal begun
            begun = message.get("more_body", message["type"] == "http.response.start")
            await send(message)

        async with anyio.create_task_group() as group:
            group.start_soon(self._until_closing, group.cancel_scope)
            await self.manager.handle_request(scope, receive, told)
            group.cancel_scope.cancel()
        if begun:
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _until_closing(self, scope: anyio.CancelScope) -> None:
        await self._closing.wait()
        scope.cancel()


def _check(body: bytes, *, modern: bool) -> None:
    """Raise BadLine for what the SDK would let pass or refuse in its validator's words.

    Its parser takes NaN and Infinity, which would reach tools as numbers, and in the legacy era a request whose id is
    null or a fraction for a notification.
    """
    if not is_json(body):
        raise BadLine(PARSE_ERROR, "Parse error: the body is not valid UTF-8 JSON")
    if not modern:
        read_line(body)
