"""Every private or provisional touch of the MCP SDK, in one place.

`SEAMS` names them all; a test asserts that the installed SDK still has them, so an upgrade that moves one
fails there with its name and not somewhere in the middle of a call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

# The two serving loops behind `Server.run`. Run itself first relays every message through a second stream and task
# while it finds out the era; our reader has already seen the first request (measured: 26 us of an 86 us call).
from mcp.server.runner import _serve_legacy_stream, _serve_modern_stream

# The key under which the SDK matches cancellations: "7" and 7 are one request to it, so they are to us.
from mcp.shared.dispatcher import coerce_request_id

# `on_request_unanswered` is the only sign that a cancelled request is over.
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp.server.lowlevel import Server
    from mcp.server.models import InitializationOptions
    from mcp.shared._stream_protocols import ReadStream, WriteStream

__all__ = [
    "SEAMS",
    "ServerMessageMetadata",
    "SessionMessage",
    "coerce_request_id",
    "serve_connection",
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


# What HTTP needs is in sdk_seams_http.py, because a stdio process must not import the SDK's HTTP side.

SEAMS += (
    "mcp.server.streamable_http.REQUEST_CANCELLED",
    "mcp.server.streamable_http.StreamableHTTPServerTransport._handle_post_request",
    "mcp.server.streamable_http_manager.StreamableHTTPSessionManager._admit_session",
    "mcp.shared.inbound.classify_inbound_request",
    "mcp.shared.inbound.find_duplicated_routing_header",
    "mcp.shared.inbound.validate_mcp_param_headers",
)
