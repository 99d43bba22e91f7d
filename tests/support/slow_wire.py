"""A wire between a client and a server on which a test can let nothing pass, or cut."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Self

__all__ = ["SlowWire"]


class SlowWire:
    """A TCP proxy on loopback. Stalled, it takes what is sent and passes nothing on until it flows again."""

    def __init__(self, port: int) -> None:
        self._to = port
        self.port = 0
        self.connections = 0
        self.most_connections = 0
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._wires: set[asyncio.StreamWriter] = set()
        self._passing: set[asyncio.Task[None]] = set()

    def stall(self) -> None:
        self._flowing.clear()

    def flow(self) -> None:
        self._flowing.set()

    def cut(self) -> None:
        """Break every connection off."""
        for wire in self._wires:
            wire.transport.abort()

    @asynccontextmanager
    async def laid(self) -> AsyncIterator[Self]:
        server = await asyncio.start_server(self._pass, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            self.flow()
            server.close()
            self.cut()
            await asyncio.gather(*self._passing)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._passing.add(task)
        task.add_done_callback(self._passing.discard)
        self.connections += 1
        self.most_connections = max(self.most_connections, self.connections)
        wires = {writer}
        try:
            with suppress(OSError):
                there, back = await asyncio.open_connection("127.0.0.1", self._to)
                wires.add(back)
                self._wires |= wires
                async with asyncio.TaskGroup() as group:
                    group.create_task(self._flow(reader, back))
                    group.create_task(self._flow(there, writer))
        except* OSError:
            pass
        finally:
            self._wires -= wires
            for wire in wires:
                wire.close()
            for wire in wires:
                with suppress(OSError):
                    await wire.wait_closed()
            self.connections -= 1

    async def _flow(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65_536):
            await self._flowing.wait()
            writer.write(data)
            await writer.drain()
        writer.write_eof()
