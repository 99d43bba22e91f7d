"""A relay between a client and a server that counts connections, and can hold or break them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

__all__ = ["Relay", "relay"]


class Relay:
    def __init__(self, target: str) -> None:
        self._host, _, port = target.rpartition(":")
        self._port = int(port)
        self.target = ""
        self.opened = 0
        self._may_pass = asyncio.Event()
        self._may_pass.set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def hold(self) -> None:
        """Let nothing through from now on, as a host that has vanished."""
        self._may_pass.clear()

    def snap(self) -> None:
        """Break every connection, without a word."""
        for writer in self._writers:
            writer.transport.abort()

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.opened += 1
        there, back = await asyncio.open_connection(self._host, self._port)
        self._writers |= {writer, back}
        self._tasks |= {
            asyncio.ensure_future(self._carried(reader, back)),
            asyncio.ensure_future(self._carried(there, writer)),
        }

    async def _carried(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(2**16):
                await self._may_pass.wait()
                writer.write(data)
                await writer.drain()
        writer.transport.abort()

    async def close(self) -> None:
        self._may_pass.set()
        self.snap()
        await asyncio.gather(*self._tasks, return_exceptions=True)


@asynccontextmanager
async def relay(target: str) -> AsyncIterator[Relay]:
    """One before this server."""
    found = Relay(target)
    server = await asyncio.start_server(found.connected, "127.0.0.1", 0)
    found.target = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield found
    finally:
        server.close()
        await found.close()
        await server.wait_closed()
