"""The composition root: what is opened is closed, and what cannot be served is refused at the start."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from quantdeck.app import App, open_app
from quantdeck.connections.database import Database
from quantdeck.core.contract import Contract, Source
from quantdeck.core.errors import SourceError, Unreachable
from quantdeck.core.server import Server
from quantdeck.dialects.tradestream import tradestream
from quantdeck.servers import load
from quantdeck.settings import MisconfiguredError, Settings

CLOSED: list[str] = []


class _Rows(Source):
    group = "desk"

    def __init__(self, database: Database, source: str = "") -> None:
        self._database, self.source = database, source

    async def ask(self) -> int:
        return len(await self._database.rows("SELECT 1 AS one"))

    async def close(self) -> None:
        await self.ask()  # its database must still be open
        CLOSED.append(type(self).__name__)


class First(_Rows):
    """A source that cannot let go."""

    async def close(self) -> None:
        await super().close()
        raise Unreachable("It is gone.", source="first")


class Second(_Rows):
    """Another."""


@tradestream.tool(errors=())
async def look(first: First, second: Second) -> dict[str, Any]:
    """Look."""
    return {"asked": await first.ask() + await second.ask()}


SERVER = Server(name="fixture", purpose="A test's", tools=(look,))


async def asked(app: App, tool: Contract = look) -> None:
    answer = await app.call(tool, {})
    assert isinstance(answer.encoded, bytes)
    assert not getattr(answer, "is_error", True)


async def test_every_source_is_closed_before_its_database_though_one_of_them_fails(tmp_path: Path):
    CLOSED.clear()
    settings = Settings(home=tmp_path)
    async with open_app(settings, (SERVER,)) as app:
        await app.databases.migrate()
    with pytest.raises(SourceError, match="gone"):
        async with open_app(settings, (SERVER,)) as app:
            await asked(app)
    assert sorted(CLOSED) == ["First", "Second"]


@pytest.mark.parametrize("said", ["tea://leaves", "hunter2", "hunter2:secret@host", "://"])
async def test_a_port_that_no_adapter_serves_is_refused_at_the_start(tmp_path: Path, said: str):
    with pytest.raises(MisconfiguredError, match=r"QUANTDECK_STATE .*embedded:") as refused:
        async with open_app(Settings(home=tmp_path, state=SecretStr(said)), ()):
            pass
    assert "hunter2:secret" not in str(refused.value)
    assert "leaves" not in str(refused.value)


async def test_the_homes_own_adapter_may_be_named_with_or_without_a_colon(tmp_path: Path):
    for said in ("", "embedded", "embedded:"):
        async with open_app(Settings(home=tmp_path, state=SecretStr(said)), ()):
            pass


async def test_health_names_each_place_once_and_nothing_that_is_the_process_own(tmp_path):
    servers = (load("market-data-mcp"), load("chart-signals"))
    async with open_app(Settings(home=tmp_path), servers) as app:
        assert [found.source for found in await app.health()] == ["candles"]
