"""tests/snapshots: each tool as a client sees it in tools/list."""

from __future__ import annotations

import json
from typing import Any

from mcp.client import Client

from quantdeck import servers
from quantdeck.app import open_app
from quantdeck.settings import Settings
from quantdeck.transports.mcp import mcp_server
from quantdeck.transports.watchers import Watchers

__all__ = ["snapshots", "text"]


async def snapshots() -> dict[str, dict[str, Any]]:
    """`server/tool` to its entry, as it goes over the wire."""
    found: dict[str, dict[str, Any]] = {}
    for name in servers.NAMES:
        served = (servers.load(name),)
        # not `Settings.read()`: a snapshot is the same in every environment
        async with (
            open_app(Settings(), served) as app,
            Client(mcp_server(app, served, Watchers()), mode="legacy") as client,
        ):
            cursor = None
            while True:
                listed = await client.list_tools(cursor=cursor)
                for tool in listed.tools:
                    entry = tool.model_dump(mode="json", by_alias=True, exclude_none=True)
                    found[f"{name}/{tool.name}"] = entry
                cursor = listed.next_cursor
                if cursor is None:
                    break
    return found


def text(entry: dict[str, Any]) -> str:
    """As it stands in its file."""
    return json.dumps(entry, indent=2, ensure_ascii=False) + "\n"
