from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

import pytest

from quantdeck.events import Run
from tests.support.events import begin


@pytest.fixture(params=["auto"])
def era(request: pytest.FixtureRequest) -> str:
    """One era suffices: what these tools answer is carried by both alike, as the tests of strategy-mcp show."""
    return str(request.param)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the server of these tests looks for its log."""
    return tmp_path / "home" / "events.db"


@pytest.fixture
def run(path: Path) -> Callable[..., AbstractContextManager[Run]]:
    """Write a run: `with run() as one: …`."""
    return partial(begin, path)


@pytest.fixture
async def events(serve):
    """backtest-events over the log in its home."""
    return await serve("backtest-events")
