"""A server that answers as a test says, and counts who is connected: for what no real server can be made to do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlsplit

__all__ = ["HttpStub", "Request"]

Answer = tuple[int, bytes] | tuple[int, bytes, Mapping[str, str]]


@dataclass(frozen=True)
class Request:
    """What arrived; of a form or a query each name's first value."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes
    values: dict[str, list[str]] = field(default_factory=dict)  # of the query, all of them

    @property
    def form(self) -> dict[str, str]:
        return {name: values[0] for name, values in parse_qs(self.body.decode()).items()}


@dataclass
class HttpStub:
    """HTTP/1.1 on loopback, connections kept. None for an answer breaks the connection off in its middle."""

    answer: Callable[[Request], Awaitable[Answer | None]]
    heard: list[Request] = field(default_factory=list)
    connected: int = 0
    most_connected: int = 0
    url: str = ""
    _left: asyncio.Event = field(default_factory=asyncio.Event)
    _serving: set[asyncio.Task[None]] = field(default_factory=set)

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[HttpStub]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        try:
            yield self
        finally:
            server.close()
            for _ in range(10):  # who was let in just now begins, and can be told off
                await asyncio.sleep(0)
            for task in self._serving:
                task.cancel()
            await asyncio.gather(*self._serving, return_exceptions=True)

    async def all_left(self) -> None:
        """Wait until nobody is connected any more."""
        while self.connected:
            self._left.clear()
            await self._left.wait()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        self.connected += 1
        self.most_connected = max(self.most_connected, self.connected)
        try:
            while (request := await _read(reader)) is not None:
                self.heard.append(request)
                answer = await self.answer(request)
                if answer is None:
                    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{")
                    await writer.drain()
                    return
                status, body = answer[:2]
                more = answer[2] if len(answer) == 3 else {}
                headers = {"content-type": "application/json", "content-length": str(len(body)), **more}
                head = "".join(
                    (f"HTTP/1.1 {status} Said\r\n", *(f"{name}: {said}\r\n" for name, said in headers.items()), "\r\n")
                )
                writer.write(head.encode() + body)
                await writer.drain()
        except (ConnectionError, asyncio.CancelledError):  # who is told off ends well, or asyncio complains
            pass
        finally:
            self.connected -= 1
            self._left.set()
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()
            self._serving.discard(task)


async def _read(reader: asyncio.StreamReader) -> Request | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.strip().split("\r\n")
    method, target, _ = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    parts = urlsplit(target)
    values = parse_qs(parts.query)
    query = {name: given[0] for name, given in values.items()}
    return Request(method, parts.path, query, headers, body, values)
