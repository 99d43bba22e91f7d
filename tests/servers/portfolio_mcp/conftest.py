from __future__ import annotations

import pytest


@pytest.fixture
async def portfolio(serve, database):
    """portfolio-mcp over an empty desk, on each engine."""
    return await serve("portfolio-mcp", **database)
