"""One sandbox for all of a file: finding out whether the cage holds is the same each time."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.support.sandbox import CANARY, Looked, looked_after

pytest.importorskip("deno")
pytest.importorskip("pydantic_monty")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Each runs in the loop that the sandbox belongs to."""
    for item in items:
        if "sources/sandbox" in str(item.path) and item.get_closest_marker("asyncio") is not None:
            item.add_marker(pytest.mark.asyncio(loop_scope="module"), append=False)
        if sys.platform != "linux":
            item.add_marker(pytest.mark.skip("full isolation is Linux's"))


@pytest.fixture(autouse=True)
def _canary(monkeypatch: pytest.MonkeyPatch) -> None:
    assert os.environ.get("CANARY") is None
    monkeypatch.setenv("CANARY", CANARY)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def run() -> AsyncIterator[Looked]:
    async with looked_after() as looked:
        yield looked


@pytest.fixture(params=["typescript", "python"])
def language(request: pytest.FixtureRequest) -> str:
    return str(request.param)
