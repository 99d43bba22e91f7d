"""The private touches of the SDK that only HTTP needs; named in `sdk_seams.SEAMS` with the others.

A module of its own because a stdio process must not import the SDK's HTTP side.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from mcp.server.streamable_http import REQUEST_CANCELLED, StreamableHTTPServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

# The modern era's own checks of a request's headers against its body, so that ours cannot differ.
from mcp.shared.inbound import classify_inbound_request, find_duplicated_routing_header, validate_mcp_param_headers
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

if TYPE_CHECKING:
    from mcp.server.auth.middleware.bearer_auth import AuthorizationContext
    from mcp.server.lowlevel import Server

__all__ = [
    "REQUEST_CANCELLED",
    "Posted",
    "SessionManager",
    "classify_inbound_request",
    "find_duplicated_routing_header",
    "validate_mcp_param_headers",
]

Posted = Callable[[str, ASGIApp, Request, Receive, Send], Awaitable[None]]
"""What answers a POST to a session, given the session's id and what the SDK would do with it."""


class SessionManager(StreamableHTTPSessionManager):
    """Sessions whose POSTs we see before their streams do.

    Private: the SDK has no hook there. Everything in front of it (which session, whose credential, the idle timer,
    whether it has ended) stays the SDK's own, which is why the hook is here and not before the manager.
    """

    def __init__(self, app: Server[Any], posted: Posted, **settings: Any) -> None:
        super().__init__(app, **settings)
        self._posted = posted

    def _admit_session(self, owner: AuthorizationContext | None) -> StreamableHTTPServerTransport | None:
        transport = super()._admit_session(owner)
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
