"""MCP over the process's own stdin and stdout.

The stock transport passes every message through two worker threads and two streams, is silent about bad JSON and drops
what is in flight when its input ends. This one does none of that, and ends decently on a signal.
"""

from __future__ import annotations

import asyncio
import signal
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import anyio

from quantdeck.transports.lines import LineCutter
from quantdeck.transports.pipes import claimed, open_reader, open_writer
from quantdeck.transports.sdk_seams import serve_connection
from quantdeck.transports.streams import Inbox, Outbox

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mcp.server.lowlevel import Server
    from mcp.server.models import InitializationOptions

__all__ = ["serve_stdio"]

SIGNALS = (signal.SIGTERM, signal.SIGINT)


async def serve_stdio(
    server: Server[Any],
    *,
    options: InitializationOptions | None = None,
    on_closing: Callable[[], None] | None = None,
    max_line_bytes: int = 16 * 2**20,
    drain_s: float = 90.0,
    stdin_fd: int = 0,
    stdout_fd: int = 1,
) -> None:
    """Serve one connection, either era, and return when the client has left or a signal asked to stop.

    The end of stdin, SIGTERM or SIGINT starts a drain: nothing more is read, `on_closing` is called once, and what is
    in flight is answered within `drain_s`. A signal during a drain ends it at once; the next meets its default.
    """
    with claimed(stdin_fd, stdout_fd) as (wire_in, wire_out), anyio.CancelScope() as scope:
        outbox = Outbox()
        inbox = Inbox(outbox, LineCutter(max_line_bytes), on_closing or _nothing, drain_s)
        outbox.inbox = inbox
        await open_writer(wire_out, outbox, apart_from=wire_in)
        await open_reader(wire_in, inbox, apart_from=wire_out)
        try:
            with _signals_end(inbox, scope):
                await serve_connection(server, inbox, outbox, options, inbox.opens_modern)
                await outbox.flush(inbox.drain_left_s())
        finally:
            inbox.hang_up()
            outbox.hang_up()


def _nothing() -> None:
    """What there is to close when nothing was given."""


@contextmanager
def _signals_end(inbox: Inbox, scope: anyio.CancelScope) -> Iterator[None]:
    loop = asyncio.get_running_loop()

    def restore() -> None:
        for number in SIGNALS:
            with suppress(NotImplementedError, ValueError, RuntimeError):
                loop.remove_signal_handler(number)

    def end() -> None:
        if inbox.draining:
            restore()
            inbox.stop()
            scope.cancel()
        inbox.drain()

    for number in SIGNALS:
        # Only the main thread of a POSIX system can have these.
        with suppress(NotImplementedError, ValueError, RuntimeError):
            loop.add_signal_handler(number, end)
    try:
        yield
    finally:
        restore()
