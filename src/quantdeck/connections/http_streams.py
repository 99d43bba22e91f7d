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


class _Stream(httpcore2.AsyncNetworkStream):
    """One connection. It is opened when something is to be sent: only then is it known whether by TLS."""

    def __init__(self, host: str, port: int) -> None:
        self._place = host, port
        self._tls: dict[str, Any] = {}
        self._unsent: list[bytes] = []
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.AsyncNetworkStream:
        self._tls = {"ssl": ssl_context, "server_hostname": server_hostname}
        return self

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._unsent.append(buffer)

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        if self._reader is None or self._writer is None:
            self._reader, self._writer = await asyncio.open_connection(*self._place, **self._tls)
        if self._unsent:
            self._writer.write(b"".join(self._unsent))
            self._unsent.clear()
            await self._writer.drain()
        return await self._reader.read(max_bytes)

    async def aclose(self) -> None:
        if self._writer is not None:
            self._writer.transport.abort()  # nothing is left to say, and a TLS farewell could wait for half a minute
            await asyncio.sleep(0)  # in which the socket is let go of

    def get_extra_info(self, info: str) -> Any:
        """Whether the other side has left while the connection rested; nothing else is known."""
        return self._reader.at_eof() if info == "is_readable" and self._reader is not None else None


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
