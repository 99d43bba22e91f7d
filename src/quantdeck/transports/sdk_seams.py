"""Every private or provisional touch of the MCP SDK, in one place.

`SEAMS` names them all; a test asserts that the installed SDK still has them, so an upgrade that moves one
fails there with its name and not somewhere in the middle of a call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

# The two serving loops behind `Server.run`. Run itself first relays every message through a second stream and task
# while it finds out the era; our reader has already seen the first request (measured: 26 us of an 86 us call).
from mcp.server.runner import _serve_legacy_stream, _serve_modern_stream
from mcp.server.streamable_http import REQUEST_CANCELLED, StreamableHTTPServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

# The key under which the SDK matches cancellations: "7" and 7 are one request to it, so they are to us.
from mcp.shared.dispatcher import coerce_request_id

# The modern era's own checks of a request's headers against its body, so that ours cannot differ.
from mcp.shared.inbound import classify_inbound_request, find_duplicated_routing_header, validate_mcp_param_headers

# `on_request_unanswered` is the only sign that a cancelled request is over.
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from starlette.requests import Request

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from mcp.server.auth.middleware.bearer_auth import AuthorizationContext
    from mcp.server.lowlevel import Server
    from mcp.server.models import InitializationOptions
    from mcp.shared._stream_protocols import ReadStream, WriteStream
    from starlette.types import ASGIApp, Receive, Scope, Send

__all__ = [
    "REQUEST_CANCELLED",
    "SEAMS",
    "ServerMessageMetadata",
    "SessionManager",
    "SessionMessage",
    "classify_inbound_request",
    "coerce_request_id",
    "find_duplicated_routing_header",
    "serve_connection",
    "validate_mcp_param_headers",
]

SEAMS: tuple[str, ...] = (
    "mcp.server.runner._serve_legacy_stream",
    "mcp.server.runner._serve_modern_stream",
    "mcp.shared._stream_protocols.ReadStream",
    "mcp.shared._stream_protocols.WriteStream",
    "mcp.shared.dispatcher.coerce_request_id",
    "mcp.shared.message.ServerMessageMetadata.on_request_unanswered",
    "mcp.shared.message.SessionMessage",
)


async def serve_connection(
    server: Server[Any],
    read: ReadStream[SessionMessage | Exception],
    write: WriteStream[SessionMessage],
    options: InitializationOptions | None,
    opens_modern: Callable[[], Awaitable[bool | None]],
) -> None:
    """Do what `Server.run` does, once `opens_modern` knows the era; None means the client left without a request."""
    async with server.lifespan(server) as state:
        modern = await opens_modern()
        if modern is None:
            return
        if modern:
            await _serve_modern_stream(server, read, write, lifespan_state=state, raise_exceptions=False)
            return
        await _serve_legacy_stream(
            server,
            read,
            write,
            lifespan_state=state,
            session_id=None,
            init_options=options,
            raise_exceptions=False,
        )


# What the endpoint needs of a request's context and of the server object; see transports/mcp.py.

SEAMS += (
    "mcp.server.connection.Connection.initialize_accepted",
    "mcp.server.connection.Connection.send_resource_updated",
    "mcp.server.session.ServerSession",
    "mcp_types.version.MODERN_PROTOCOL_VERSIONS",
)


def connection_of(ctx: Any) -> Any:
    """The connection behind a request, for pushes that outlive it. Private: the session does not offer it."""
    return ctx.session._connection


def accepts_calls(ctx: Any) -> bool:
    """Whether the handshake is over. Our fast path runs before the SDK's own check."""
    return bool(ctx.session._connection.initialize_accepted)


def is_modern(ctx: Any) -> bool:
    """Whether this request is of the 2026-07-28 era."""
    return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS


def no_tracing(server: Server[Any]) -> None:
    """Take out the SDK's tracing middleware: `core.observe` opens the span, on every transport."""
    server.middleware.clear()


# What HTTP needs; see transports/plain_calls.py and transports/http.py.

SEAMS += (
    "mcp.server.streamable_http.REQUEST_CANCELLED",
    "mcp.server.streamable_http.StreamableHTTPServerTransport._handle_post_request",
    "mcp.server.streamable_http_manager.StreamableHTTPSessionManager._admit_session",
    "mcp.shared.inbound.classify_inbound_request",
    "mcp.shared.inbound.find_duplicated_routing_header",
    "mcp.shared.inbound.validate_mcp_param_headers",
)

Posted = Callable[[str, "ASGIApp", Request, "Receive", "Send"], "Awaitable[None]"]
"""What answers a POST to a session, given the session's id and what the SDK would do with it."""


class SessionManager(StreamableHTTPSessionManager):
    """Sessions whose POSTs we see before their streams do.

    Private: the SDK has no hook there. Everything in front of it (which session, whose credential, the idle timer,
    whether it has ended) stays the SDK's own, which is why the hook is here and not before the manager.
    """

    def __init__(self, app: Server[Any], posted: Posted, **settings: Any) -> None:
        super().__init__(app, **settings)
        self._posted = posted

    def _admit_session(self, requestor: AuthorizationContext | None) -> StreamableHTTPServerTransport | None:
        transport = super()._admit_session(requestor)
        if transport is not None:
            self._hook(transport)
        return transport

    def _hook(self, transport: StreamableHTTPServerTransport) -> None:
        session_id, posted, usual = transport.mcp_session_id or "", self._posted, transport._handle_post_request

        async def carry_on(scope: Scope, receive: Receive, send: Send) -> None:
            await usual(scope, Request(scope, receive), receive, send)

        async def post(scope: Scope, request: Request, receive: Receive, send: Send) -> None:
            del scope
            await posted(session_id, carry_on, request, receive, send)

        transport._handle_post_request = post  # type: ignore[method-assign]
