"""The server that the conformance suite tests: its fixtures, declared our way, over our HTTP transport.

Run as a program it serves on a free port, of which it tells on stdout. Its argument is the home.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import mcp_types as t
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity

from quantdeck.app import open_app
from quantdeck.core.server import Server
from quantdeck.settings import Http, Settings
from quantdeck.transports.http import HttpServer, bind, http_app
from tests.conformance.fixture_dialect import WATCHERS
from tests.conformance.fixture_offers import PROMPTS, RESOURCES, TEMPLATES
from tests.conformance.fixture_questions import QUESTIONS
from tests.conformance.fixture_tools import TOOLS

__all__ = ["SERVER"]

SERVER = Server(
    name="conformance",
    purpose="What the conformance suite asks for by name",
    tools=(*TOOLS, *QUESTIONS),
    resources=RESOURCES,
    templates=TEMPLATES,
    prompts=PROMPTS,
)


async def _set_level(ctx: Any, params: t.SetLevelRequestParams) -> t.EmptyResult:
    """Take any level; all three lines are of the one that everybody hears."""
    del ctx, params
    return t.EmptyResult()


def _complete(sdk: Any) -> None:
    """What only these fixtures need: logs of older clients, and questions whose state is sealed."""
    sdk.add_request_handler("logging/setLevel", t.SetLevelRequestParams, _set_level)
    sdk.middleware.insert(0, RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience=SERVER.name))


async def serve(home: Path) -> None:
    settings = Settings(home=home, http=Http(port=0))
    async with open_app(settings, (SERVER,)) as app:
        web = http_app(app, (SERVER,), WATCHERS, settings)
        for route in web._endpoints.values():
            _complete(route._endpoint.sdk)
        with bind(settings.http, guarded=False) as listener:
            url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
            await HttpServer(web, settings.http, lambda: print(url, flush=True)).serve(sockets=[listener])  # noqa: T201


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1])))
