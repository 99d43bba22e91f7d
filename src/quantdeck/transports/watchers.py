"""Who wants to hear of changed resources, in both eras."""

from __future__ import annotations

import asyncio
import logging
import weakref
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import mcp_types as t
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated
from mcp.shared.exceptions import MCPError

from quantdeck.transports.sdk_seams import connection_of, is_modern

__all__ = ["MAX_WATCHED", "Watchers", "notifier"]

log = logging.getLogger(__name__)

MAX_WATCHED = 1000
"""Resources that one connection may watch."""
GRACE_S = 0.05
"""How long who changes a resource waits for those who watch it to be told."""

_WATCHED = "quantdeck.watched"
_UNTOLD = "quantdeck.untold"
_TELLER = "quantdeck.teller"


class Watchers:
    """Who wants to hear of changed resources: one bus for a process, whatever the era or endpoint."""

    def __init__(self) -> None:
        self.bus = InMemorySubscriptionBus()
        self._listening = ListenHandler(self.bus)
        self._closed = False
        # weakly: a connection that is gone must not be kept, and swallows what it is sent
        self._legacy: dict[str, weakref.WeakSet[Any]] = {}

    def watch(self, ctx: Any, uri: str) -> None:
        """Tell a legacy connection of this resource's changes."""
        connection = connection_of(ctx)
        watched = connection.state.get(_WATCHED)
        if watched is None:
            watched = connection.state[_WATCHED] = set()
            connection.exit_stack.callback(self._forget, connection)
        if len(watched) >= MAX_WATCHED and uri not in watched:
            raise MCPError(t.INVALID_PARAMS, f"Too many subscriptions: a connection may have {MAX_WATCHED}")
        watched.add(uri)
        self._legacy.setdefault(uri, weakref.WeakSet()).add(connection)

    def unwatch(self, ctx: Any, uri: str) -> None:
        """Tell it no more."""
        connection = connection_of(ctx)
        connection.state.get(_WATCHED, set()).discard(uri)
        self._unwatch(connection, uri)

    def _forget(self, connection: Any) -> None:
        for uri in connection.state.pop(_WATCHED):
            self._unwatch(connection, uri)
        if (teller := connection.state.get(_TELLER)) is not None:
            teller.cancel()

    def _unwatch(self, connection: Any, uri: str) -> None:
        watchers = self._legacy.get(uri)
        if watchers is not None:
            watchers.discard(connection)
            if not watchers:
                del self._legacy[uri]

    async def listen(self, ctx: Any, params: t.SubscriptionsListenRequestParams) -> t.SubscriptionsListenResult:
        """Serve one modern stream; none begins once the others have been ended."""
        if self._closed:
            raise MCPError(t.INTERNAL_ERROR, "The server is shutting down")
        return await self._listening(ctx, params)

    async def changed(self, uri: str) -> None:
        """Tell everyone who asked; a client that does not read keeps nobody waiting."""
        await self.bus.publish(ResourceUpdated(uri=uri))
        told = [self._tell(connection, uri) for connection in self._legacy.get(uri, ())]
        if begun := [task for task in told if task is not None]:
            await asyncio.wait(begun, timeout=GRACE_S)

    def _tell(self, connection: Any, uri: str) -> asyncio.Task[None] | None:
        """Have a connection told; None where it still is being told of something, and will be of this as well."""
        untold = connection.state.setdefault(_UNTOLD, {})
        idle = not untold
        untold[uri] = True
        if not idle:
            return None
        # A task without a group, because its connection may outlive whoever changed the resource; it ends with it.
        connection.state[_TELLER] = task = asyncio.get_running_loop().create_task(_deliver(connection, untold))
        return task

    def close(self) -> None:
        """End the open streams decently, so that a shutdown need not wait for them."""
        self._closed = True
        self._listening.close()


def notifier(ctx: Any) -> Callable[[str, Any], Awaitable[None]] | None:
    """What sends a legacy connection notifications of a spec's own; one that does not read loses them.

    Modern clients have no connection to send anything to, and others none that outlives the call.
    """
    if is_modern(ctx):
        return None
    connection = weakref.ref(connection_of(ctx))

    async def notify(method: str, params: Any) -> None:
        if (still := connection()) is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(GRACE_S):
                    await still.notify(method, params)

    return notify


async def _deliver(connection: Any, untold: dict[str, bool]) -> None:
    """Tell of each change once, however often it happened meanwhile."""
    while uri := next((uri for uri, wanted in untold.items() if wanted), None):
        untold[uri] = False
        try:
            await connection.send_resource_updated(uri)
        except Exception:
            log.exception("push_failed", extra={"fields": {"uri": uri[:200]}})
        if not untold[uri]:
            del untold[uri]
