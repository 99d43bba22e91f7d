from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson
import pytest

from quantdeck.connections.database import Database
from tests.servers.conftest import Served

WHY = {"symbol": "BTC/USD", "action": "BUY", "confidence": 0.7, "reasoning": "why"}
"""All that a decision must have."""


@dataclass(frozen=True)
class Diary:
    """decisions-mcp, what it writes to, and how a decision is saved under a key."""

    served: Served

    @property
    def database(self) -> Database:
        return self.served.app.databases.of("decisions")

    async def __call__(self, tool: str, **arguments: Any) -> dict[str, Any]:
        return await self.served(tool, **arguments)

    async def refused(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The whole error of a failure."""
        error: dict[str, Any] = (await self.served(tool, **arguments))["error"]
        return error

    async def save(self, **said: Any) -> str:
        body = await self.served("save_decision", **{**WHY, **said})
        assert body["data"]["saved"] is True
        return str(body["data"]["decision_id"])

    async def save_with_key(self, key: str, **said: Any) -> dict[str, Any]:
        meta: Any = {"quantdeck/idempotency_key": key}
        result = await self.served.client.call_tool("save_decision", {**WHY, **said}, meta=meta)
        body: dict[str, Any] = orjson.loads(result.content[0].text)  # type: ignore[union-attr]
        return body

    async def listed(self, **asked: Any) -> list[str]:
        body = await self.served("get_recent_decisions", **asked)
        return [item["decision_id"] for item in body["data"]["items"]]

    async def stored(self) -> list[dict[str, Any]]:
        return await self.database.rows("SELECT * FROM agent_decisions ORDER BY seq")


@pytest.fixture
async def diary(serve, database) -> Diary:
    """decisions-mcp over an empty database, on each engine."""
    return Diary(await serve("decisions-mcp", **database))
