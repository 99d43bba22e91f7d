"""Serve an ASGI app on a free loopback port and print its address."""

import socket
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import uvicorn

Scope = MutableMapping[str, Any]
App = Callable[[Scope, Callable[[], Awaitable[Scope]], Callable[[Scope], Awaitable[None]]], Awaitable[None]]


def serve(app: App) -> None:
    """uvicorn as it comes, but for the line it would log per request: that goes to a terminal or is switched off."""
    # The protocol is named because asyncio switches Nagle's delay off only for sockets that say TCP; with the usual 0,
    # each answer sent in two writes waits 40 ms for the client's delayed acknowledgement.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    listener.listen(256)
    print(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])
