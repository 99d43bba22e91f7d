"""Sockets for httpcore2's pool, straight from asyncio: a question takes two thirds of the processor time.

The pool's own go through anyio, which sets up a cancellation for each read and write; they write head and body one by
one, which wakes the other side twice; and they ask the system about every kept socket, twice in each question. Here
the caller's deadline covers all, what is written waits for the next read, and asyncio has told already who has left.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterable
from typing import Any

import httpcore2

__all__ = ["Sockets"]


_FULL = 256 * 1024
"""Bytes that may wait to be read; the rest waits at the other side."""


class _Wire(asyncio.Protocol):
    """What arrives on one socket."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0
        self._over = False
        self._error: Exception | None = None
        self._reading: asyncio.Future[None] | None = None
        self.transport: Any = None

    @property
    def is_readable(self) -> bool:
        """Something has come that nobody has read, be it the end."""
        return self._over or bool(self._parts)

    async def read(self) -> bytes:
        """What has come; nothing where nothing more will."""
        if not self.is_readable:
            self._reading = asyncio.get_running_loop().create_future()
            await self._reading
        if self._error is not None and not self._parts:
            raise self._error
        told = b"".join(self._parts)
        self._parts.clear()
        if self._size > _FULL:
            self.transport.resume_reading()
        self._size = 0
        return told

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self._parts.append(data)
        self._size += len(data)
        if self._size > _FULL >= self._size - len(data):
            self.transport.pause_reading()
        self._wake()

    def eof_received(self) -> None:
        self._over = True
        self._wake()

    def connection_lost(self, error: Exception | None) -> None:
        self._over, self._error = True, error
        self._wake()

    def _wake(self) -> None:
        if self._reading is not None and not self._reading.done():
            self._reading.set_result(None)


class _Stream(httpcore2.AsyncNetworkStream):
    """One connection. It is opened when something is to be sent: only then is it known whether by TLS."""

    def __init__(self, host: str, port: int) -> None:
        self._place = host, port
        self._tls: dict[str, Any] = {}
        self._unsent: list[bytes] = []
        self._wire: _Wire | None = None

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.AsyncNetworkStream:
        self._tls = {"ssl": ssl_context, "server_hostname": server_hostname}
        return self

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._unsent.append(buffer)

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        if self._wire is None:
            loop = asyncio.get_running_loop()
            _, self._wire = await loop.create_connection(_Wire, *self._place, **self._tls)
        if self._unsent:
            self._wire.transport.write(b"".join(self._unsent))
            self._unsent.clear()
        return await self._wire.read()

    async def aclose(self) -> None:
        if self._wire is not None:
            self._wire.transport.abort()  # nothing is left to say, and a TLS farewell could wait for half a minute
            await asyncio.sleep(0)  # in which the socket is let go of

    def get_extra_info(self, info: str) -> Any:
        """Whether the other side has said something, or left, while the connection rested; nothing else is known."""
        return self._wire.is_readable if info == "is_readable" and self._wire is not None else None


class Sockets(httpcore2.AsyncNetworkBackend):
    """To be given to a pool as its `network_backend`."""

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        return _Stream(host, port)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
