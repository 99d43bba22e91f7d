"""uvicorn's connection, but not for clients who take all the time there is.

uvicorn waits for a request's head without end, and after it has refused a body it reads what still comes without end:
a few hundred such clients hold every descriptor that a process may have.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["ImpatientProtocol"]


class ImpatientProtocol(H11Protocol):
    """Hangs up on a client whose next request is not there in time. Idle connections are uvicorn's to close."""

    def __init__(self, *, arrival_s: float, **given: Any) -> None:
        super().__init__(**given)
        self._arrival_s = arrival_s
        self._impatience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait_or_not()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._wait_or_not()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._wait_no_more()

    def _wait_or_not(self) -> None:
        cycle: Any = self.cycle  # None before the first request
        answering = cycle is not None and not cycle.response_complete
        if answering or self.transport.is_closing():
            self._wait_no_more()
        elif self._impatience is None:
            self._impatience = self.loop.call_later(self._arrival_s, self.transport.abort)

    def _wait_no_more(self) -> None:
        if self._impatience is not None:
            self._impatience.cancel()
            self._impatience = None
