from __future__ import annotations

import pytest


@pytest.fixture
async def specs(serve, database):
    """strategy-db-mcp over an empty desk, on each engine."""
    return await serve("strategy-db-mcp", **database)
