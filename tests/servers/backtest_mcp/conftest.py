"""backtest-mcp over a desk and bars of its own, and a strategy that is too much for a thread."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, date, datetime
from typing import Any

import pytest

from quantdeck.connections.database import Database
from quantdeck.domain.candles import Bars
from quantdeck.domain.timeframes import TIMEFRAMES, Timeframe
from quantdeck.sources.candles import Candles
from tests.servers.conftest import Served
from tests.support.bars import every, walk
from tests.support.desk import NOON, add_implementation, add_spec
from tests.support.specs import spec

HOUR = TIMEFRAMES["1h"]
NOON_S = int(NOON.timestamp())
MOVING: dict[str, Any] = {
    "indicators": [
        {"id": "fast", "type": "SMA", "input": "close", "params": {"period": "${fast}"}},
        {"id": "slow", "type": "SMA", "input": "close", "params": {"period": 20}},
    ],
    "entry_conditions": [{"type": "CROSSED_UP", "indicator": "fast", "params": {"crosses": "slow"}}],
    "exit_conditions": [{"type": "CROSSED_DOWN", "indicator": "fast", "params": {"crosses": "slow"}}],
    "parameters": [{"name": "fast", "type": "INTEGER", "min": 2, "max": 15, "defaultValue": 5}],
}
SLOW: dict[str, Any] = {
    "indicators": [
        {"id": f"cci{number}", "type": "CCI", "params": {"period": 50_000 + number}} for number in range(50)
    ],
    "entry_conditions": [{"type": "ABOVE", "indicator": "cci0", "params": {"value": 0}}],
    "exit_conditions": [{"type": "BELOW", "indicator": "cci0", "params": {"value": 0}}],
    "parameters": [],
}  # fmt: skip
"""Minutes of work on 90 days of minutes: nobody waits for its end."""
LARGE: dict[str, Any] = {
    **MOVING,
    "indicators": [
        *({"id": f"sma{number}", "type": "SMA", "params": {"period": 5 + number}} for number in range(20)),
        *MOVING["indicators"],
    ],
}
"""More than a thread is given on that, and done in no time."""


def stored(name: str, rules: dict[str, Any]) -> dict[str, Any]:
    """A spec's columns."""
    return {"name": name, **{part: spec(**rules)[part] for part in MOVING}}


async def fill(served: Served, symbol: str, bars: Bars, base: Timeframe = HOUR) -> Bars:
    await served.app.runtime.source(Candles).write(symbol, base, bars)
    return bars


def hours(many: int, until_s: int = NOON_S) -> Bars:
    """So many hours up to an instant."""
    return walk(every(3600, until_s - many * 3600, many))


def day(text: str) -> int:
    return int(datetime.combine(date.fromisoformat(text), datetime.min.time(), UTC).timestamp())


async def add_strategies(desk: Database) -> str:
    """A spec MOVING with an implementation, one that is slow, and one that is large; the id of the first's."""
    moving = await add_spec(desk, **stored("MOVING", MOVING))
    await add_spec(desk, **stored("SLOW", SLOW))
    await add_spec(desk, **stored("LARGE", LARGE))
    return await add_implementation(desk, "moving", moving, parameters={"fast": 4})


@pytest.fixture
def backtests(serve: Callable[..., Awaitable[Served]]) -> Callable[..., Awaitable[Served]]:
    """The server with settings, its strategies stored."""

    async def opened(**said: Any) -> Served:
        served = await serve("backtest-mcp", **said)
        await add_strategies(served.desk)
        return served

    return opened
