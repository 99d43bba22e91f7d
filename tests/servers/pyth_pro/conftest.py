"""pyth-pro over a stub of Pyth's services, behind a real client of each era."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest
from mcp.client import Client

from quantdeck.app import App, open_app
from quantdeck.dialects.schemas import violation
from quantdeck.servers import load
from quantdeck.settings import Pyth, Settings
from quantdeck.transports.mcp import mcp_server
from quantdeck.transports.watchers import Watchers
from tests.support.held import Held
from tests.support.pyth_stub import KEY, PythStub

THEN_S = 1_750_000_000
"""A time of 2025, past on any wall clock."""


@dataclass(frozen=True)
class Asked:
    """One open server, its client and the services behind it."""

    app: App
    client: Client
    stub: PythStub
    events: list[dict[str, Any]]

    async def __call__(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The answer of a call that succeeds; both channels carry it, and it is as the tool's schema says."""
        result = await self.client.call_tool(tool, arguments)
        assert not result.is_error, result.content
        body: dict[str, Any] = orjson.loads(result.content[0].text)  # type: ignore[union-attr]
        assert result.structured_content == body
        contract = self.app.tool(tool)
        assert contract is not None
        assert violation(contract.output_schema)(orjson.dumps(body)) is None
        return body

    async def refused(self, tool: str, **arguments: Any) -> tuple[str, str]:
        """The kind and the sentence of a call that fails."""
        result = await self.client.call_tool(tool, arguments)
        assert result.is_error, result.structured_content
        assert result.structured_content is None
        return result.meta["quantdeck/error"]["type"], result.content[0].text  # type: ignore[index,union-attr]


@pytest.fixture(params=["legacy", "auto"])
def era(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def pyth(tmp_path: Path, era: str) -> AsyncIterator[Callable[..., Any]]:
    """`await pyth(token, settings…, stub=…)`: an open server."""
    async with Held() as held:

        async def opened(token: str = KEY, *, stub: PythStub | None = None, clock: str = "wall", **said: Any) -> Asked:
            stub = await held.enter((stub or PythStub()).serving())
            urls = {"router_url": stub.url, "history_url": stub.url}
            group: dict[str, Any] = {**urls, "retry_s": 0, "access_token": token, **said}
            settings = Settings(home=tmp_path, clock=clock, pyth=Pyth(**group))
            servers = (load("pyth-pro"),)
            app = await held.enter(open_app(settings, servers))
            events: list[dict[str, Any]] = []
            listening = app.runtime.observer.tell

            def tell(call: Any, outcome: Any) -> None:
                from quantdeck.observability.calls import event_of

                events.append(event_of(call, outcome))
                listening(call, outcome)

            app.runtime.observer.tell = tell
            sdk = mcp_server(app, servers, Watchers())
            client = await held.enter(Client(sdk, mode=era, raise_exceptions=True))
            return Asked(app, client, stub, events)

        yield opened
