"""tools-catalog over HTTP, in this process, on each store of shared state."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from quantdeck.servers import load
from tests.support import redis
from tests.support.over_http import Served, served

PATIENT = {"storage.shared_state.get": 5, "storage.shared_state.set": 5}
"""The spec's own 50 and 100 ms are too little for a machine that runs other tests meanwhile."""


@pytest.fixture(params=["sqlite", pytest.param("redis", marks=pytest.mark.services)])
def kept(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Settings that put shared state, limits and keys on each in turn."""
    if request.param == "sqlite":
        return {}
    return {"state": redis.available().url, "redis": redis.keyed()}


@pytest.fixture
def serving(tmp_path: Path) -> Callable[..., AbstractAsyncContextManager[Served]]:
    def opened(**said: Any) -> AbstractAsyncContextManager[Served]:
        said = {"deadline_s": PATIENT, **said}
        return served(tmp_path / "home", make=lambda _: (load("tools-catalog"),), **said)

    return opened


@pytest.fixture
async def server(serving, kept) -> AsyncIterator[Served]:
    async with serving(**kept) as opened:
        yield opened
