"""A real server on a free port, and clients as raw or as real as a test wants them.

Not called http.py: a program in this folder would then find it in place of the standard library's.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from quantdeck.app import App, open_app
from quantdeck.core.server import Server
from quantdeck.observability.calls import to as told_to
from quantdeck.settings import Http, Settings
from quantdeck.transports.http import HttpServer, bind, http_app
from quantdeck.transports.watchers import Watchers
from quantdeck.transports.web import HttpApp
from tests.support.fixture_server import World, fixture_servers

__all__ = ["LEGACY", "MODERN", "PATIENCE_S", "Served", "Session", "body_of", "call", "modern_headers", "served"]

PATIENCE_S = 20.0
LEGACY, MODERN = "2025-11-25", "2026-07-28"
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "0"},
}
PLAIN = {"content-type": "application/json", "accept": "application/json, text/event-stream"}


def call(tool: str, request_id: Any = 1, meta: Mapping[str, Any] | None = None, **arguments: Any) -> dict[str, Any]:
    """A `tools/call` of the legacy era."""
    params = {"name": tool, "arguments": arguments} | ({} if meta is None else {"_meta": meta})
    return {"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": params}


def modern(message: dict[str, Any]) -> dict[str, Any]:
    """The same message in the modern envelope."""
    params = message.get("params", {})
    return {**message, "params": {**params, "_meta": {**params.get("_meta", {}), **ENVELOPE}}}


def modern_headers(message: Mapping[str, Any]) -> dict[str, str]:
    named = {"mcp-name": message["params"]["name"]} if "name" in message.get("params", {}) else {}
    return {**PLAIN, "mcp-protocol-version": MODERN, "mcp-method": message["method"], **named}


def body_of(answer: httpx2.Response) -> Any:
    """The JSON of an answer, or of the last event of a stream that has ended."""
    if answer.headers["content-type"].startswith("text/event-stream"):
        return json.loads([line for line in answer.text.splitlines() if line.startswith("data:")][-1][5:])
    return answer.json()


@dataclass
class Session:
    """A legacy session, in raw requests."""

    http: httpx2.AsyncClient
    path: str = "/mcp"
    headers: dict[str, str] = field(default_factory=lambda: dict(PLAIN))

    async def open(self) -> Session:
        params = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "test", "version": "0"}}
        hello = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
        opened = await self.post(hello)
        assert opened.status_code == 200, opened.text
        self.headers |= {"mcp-session-id": opened.headers["mcp-session-id"], "mcp-protocol-version": LEGACY}
        assert (await self.post({"jsonrpc": "2.0", "method": "notifications/initialized"})).status_code == 202
        return self

    async def post(self, message: Any, **headers: str) -> httpx2.Response:
        return await self.http.post(self.path, json=message, headers={**self.headers, **headers})

    async def cancel(self, request_id: Any) -> None:
        params = {"requestId": request_id}
        note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
        assert (await self.post(note)).status_code == 202


@dataclass(frozen=True)
class Served:
    """A server that is up."""

    url: str
    app: App
    world: World
    http: httpx2.AsyncClient
    events: list[dict[str, Any]]
    web: HttpApp

    async def modern(self, tool: str, path: str = "/mcp", **arguments: Any) -> httpx2.Response:
        message = modern(call(tool, **arguments))
        return await self.http.post(path, json=message, headers=modern_headers(message))

    async def rest(self, name: str, headers: Mapping[str, str] | None = None, **members: Any) -> httpx2.Response:
        return await self.http.post("/mcp/tools/call", json={"name": name, **members}, headers=headers)

    async def session(self, path: str = "/mcp", **headers: str) -> Session:
        return await Session(self.http, path, {**PLAIN, **headers}).open()

    @asynccontextmanager
    async def client(self, era: str, path: str = "/mcp", **options: Any) -> AsyncIterator[Client]:
        """The SDK's own client."""
        async with (
            httpx2.AsyncClient(headers=self.http.headers, trust_env=False, timeout=PATIENCE_S) as http,
            Client(streamable_http_client(self.url + path, http_client=http), mode=era, **options) as client,
        ):
            yield client

    @asynccontextmanager
    async def wire(self) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        """A bare connection."""
        place = urlsplit(self.url)
        reader, writer = await asyncio.open_connection(place.hostname, place.port)
        try:
            yield reader, writer
        finally:
            writer.close()

    def request(self, path: str, body: bytes, headers: Mapping[str, str] = PLAIN) -> bytes:
        """A POST as bytes, for `wire`."""
        told = {"host": urlsplit(self.url).netloc, "content-length": str(len(body)), **headers}
        lines = [f"POST {path} HTTP/1.1", *(f"{name}: {value}" for name, value in told.items())]
        return "\r\n".join([*lines, "", ""]).encode() + body


@asynccontextmanager
async def served(
    home: Path,
    *,
    stateless: bool = False,
    migrated: bool = False,
    make: Callable[[World], tuple[Server, ...]] = fixture_servers,
    headers: Mapping[str, str] | None = None,
    **said: Any,
) -> AsyncIterator[Served]:
    """The fixture's servers over HTTP, in this process; idempotency keys need it `migrated`."""
    http = Http(port=0, **said.pop("http", {}))
    settings = Settings(home=home, http=http, **said)
    world, events = World(), list[dict[str, Any]]()
    servers = make(world)
    async with open_app(settings, servers) as app:
        if migrated:
            await app.databases.migrate()
        app.runtime.observer.tell = told_to(app.metrics.count, events.append)
        web = http_app(app, servers, Watchers(), settings, stateless=stateless)
        with bind(http, guarded=True) as listener:
            ready = asyncio.Event()
            server = HttpServer(web, http, ready.set)
            running = asyncio.create_task(server.serve(sockets=[listener]))
            await ready.wait()
            url = f"http://127.0.0.1:{listener.getsockname()[1]}"
            try:
                async with httpx2.AsyncClient(
                    base_url=url, headers=headers, trust_env=False, timeout=PATIENCE_S
                ) as client:
                    yield Served(url, app, world, client, events, web)
            finally:
                world.gate.set()
                server.should_exit = True
                await running
