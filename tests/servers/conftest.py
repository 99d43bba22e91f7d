"""A server over a desk of its own, at a fixed noon, behind a real client of each era."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest
from mcp.client import Client

from quantdeck.app import App, open_app
from quantdeck.connections.database import Database
from quantdeck.servers import load
from quantdeck.settings import Settings
from quantdeck.transports.mcp import mcp_server
from quantdeck.transports.watchers import Watchers
from tests.support import postgresql
from tests.support.desk import NOON
from tests.support.held import Held

ERAS = ("legacy", "auto")


@dataclass(frozen=True)
class Served:
    """One open server: its app, its client, and what a call comes to."""

    app: App
    client: Client

    @property
    def desk(self) -> Database:
        return self.app.databases.of("desk")

    async def __call__(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The answer's body; both channels must carry it, and an error only the text."""
        result = await self.client.call_tool(tool, arguments)
        body: dict[str, Any] = orjson.loads(result.content[0].text)  # type: ignore[union-attr]
        assert result.is_error is ("error" in body)
        assert result.structured_content == (None if result.is_error else body)
        return body

    async def refused(self, tool: str, **arguments: Any) -> tuple[str, str]:
        """The code and the sentence of a failure."""
        error = (await self(tool, **arguments))["error"]
        return error["code"], error["message"]


@pytest.fixture(params=ERAS)
def era(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.services)])
async def database(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Settings that put a server on each engine in turn: `await serve(name, **database)`."""
    if request.param == "sqlite":
        return {}
    return {"database": await postgresql.available().new_database()}


@pytest.fixture
async def serve(serve_as_it_is: Callable[..., Any]) -> Callable[..., Any]:
    """Open a server by name, with settings, over a database with its tables."""

    async def opened(name: str, **said: Any) -> Served:
        served: Served = await serve_as_it_is(name, **said)
        await served.app.databases.migrate()
        return served

    return opened


@pytest.fixture
async def serve_as_it_is(tmp_path: Path, era: str) -> AsyncIterator[Callable[..., Any]]:
    """The same over a database as it is found."""
    async with Held() as held:

        async def opened(name: str, **said: Any) -> Served:
            settings = Settings(home=tmp_path / "home", **{"clock": NOON.isoformat(), **said})
            servers = (load(name),)
            app = await held.enter(open_app(settings, servers))
            sdk = mcp_server(app, servers, Watchers())
            client = await held.enter(Client(sdk, mode=era, raise_exceptions=True))
            return Served(app, client)

        yield opened
