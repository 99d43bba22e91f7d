"""The legacy HTTP sessions of an endpoint, and the calls of theirs that are answered beside their streams.

The SDK's session knows nothing of such a call, so what it would do for one is done here: cancel it when the client
says so, and when the session ends.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import anyio

from quantdeck.transports.sdk_seams import coerce_request_id, connection_of

__all__ = ["Sessions", "cancellable", "in_flight"]

_CALLS = "quantdeck.calls"


class Sessions:
    """Sessions by their id, for as long as the SDK keeps them."""

    def __init__(self) -> None:
        self._connections: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()

    def heed(self, ctx: Any) -> None:
        """Take note of what passes on its way through the SDK: a session that opens, a call that is cancelled."""
        if ctx.method == "initialize":
            self._open(connection_of(ctx))
        elif ctx.method == "notifications/cancelled":
            _cancel(connection_of(ctx), (ctx.params or {}).get("requestId"))

    def _open(self, connection: Any) -> None:
        if connection.session_id is not None and connection.session_id not in self._connections:
            self._connections[connection.session_id] = connection
            connection.exit_stack.callback(_cancel_all, connection)

    def ready(self, session_id: str | None) -> Any | None:
        """The connection of a session whose handshake is over."""
        connection = self._connections.get(session_id or "")
        return connection if connection is not None and connection.initialize_accepted else None


def in_flight(connection: Any, request_id: Any) -> bool:
    """Whether this connection has a call of this id that is not over."""
    return coerce_request_id(request_id) in connection.state.get(_CALLS, {})


@contextmanager
def cancellable(connection: Any, request_id: Any) -> Iterator[anyio.CancelScope]:
    """What is done in here ends when the client cancels this request, or its session ends."""
    calls = connection.state.setdefault(_CALLS, {})
    key = coerce_request_id(request_id)
    with anyio.CancelScope() as scope:
        calls[key] = scope
        try:
            yield scope
        finally:
            del calls[key]


def _cancel(connection: Any, request_id: Any) -> None:
    calls = connection.state.get(_CALLS)
    if calls and type(request_id) in (int, str) and (scope := calls.get(coerce_request_id(request_id))) is not None:
        scope.cancel()


def _cancel_all(connection: Any) -> None:
    for scope in connection.state.get(_CALLS, {}).values():
        scope.cancel()
