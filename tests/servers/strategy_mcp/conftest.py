from __future__ import annotations

import pytest


@pytest.fixture
async def strategy(serve, database):
    """strategy-mcp over an empty desk, on each engine."""
    return await serve("strategy-mcp", **database)
