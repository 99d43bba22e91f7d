from __future__ import annotations

import pytest


@pytest.fixture
async def strategy(serve):
    """strategy-mcp over an empty desk."""
    return await serve("strategy-mcp")
