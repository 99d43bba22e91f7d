"""How the sources are, asked at most once a second however many want to know."""

from __future__ import annotations

import asyncio
from typing import Any

from quantdeck.app import App, Health

__all__ = ["HealthCheck"]

FRESH_S = 1.0


class HealthCheck:
    """What `/health` says."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._asking = asyncio.Lock()
        self._asked_at = float("-inf")
        self._found: list[Health] = []

    async def ask(self, *, in_detail: bool) -> tuple[int, dict[str, Any]]:
        """The HTTP status and the body; only those who may call hear what stands behind the server."""
        found = await self._now()
        healthy = all(health.status != "unhealthy" for health in found)
        told: dict[str, Any] = {"status": "ok" if healthy else "degraded"}
        if in_detail:
            told["dependencies"] = {health.source: _told(health) for health in found}
        return (200 if healthy else 503), told

    async def _now(self) -> list[Health]:
        loop = asyncio.get_running_loop()
        async with self._asking:
            if loop.time() - self._asked_at > FRESH_S:
                self._found = await self._app.health()
                self._asked_at = loop.time()
            return self._found


def _told(health: Health) -> dict[str, str]:
    told = {"status": health.status, "kind": health.kind}
    return {**told, "advice": health.advice} if health.advice else told
