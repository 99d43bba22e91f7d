"""run_backtest through a client, beside a tool that does nothing: 90 days of hours, by an average and an RSI."""

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks import questions
from benchmarks.load import Pace
from benchmarks.plain_strategy import SPEC
from benchmarks.process import started
from quantdeck.app import open_app
from quantdeck.domain.candles import joined, resampled
from quantdeck.domain.demo_instruments import INSTRUMENTS
from quantdeck.domain.demo_market import DAY_S, DemoMarket
from quantdeck.domain.demo_sessions import shape_of
from quantdeck.domain.timeframes import TIMEFRAMES
from quantdeck.servers import load
from quantdeck.settings import Settings
from quantdeck.sources.candles import Candles
from tests.support.desk import add_implementation, add_spec

__all__ = ["BACKTEST", "measured"]

CLOCK, DAYS, SYMBOL, HOUR = "2026-06-01T00:00:00Z", 91, "BTC/USD", TIMEFRAMES["1h"]
BACKTEST = "run_backtest, 90 days of 1h"


async def measured(quick: bool) -> dict[str, dict[str, float]]:
    """Medians of the tool and of nothing, over stdio."""
    pace = Pace(2, 0.05, 0.05, 10) if quick else Pace(8, 0.3, 0.2, 20)
    async with _home() as (home, strategy):
        said = {"QUANTDECK_HOME": home, "QUANTDECK_CLOCK": CLOCK}
        async with started(questions.command("backtest-mcp"), **said) as process:
            client = await questions.opened(process)
            asked = {BACKTEST: ("run_backtest", {"strategy_id": strategy, "symbol": SYMBOL})}
            return await questions.timed(client, asked, pace)


@asynccontextmanager
async def _home() -> AsyncIterator[tuple[str, str]]:
    with tempfile.TemporaryDirectory() as home:
        async with open_app(Settings(home=Path(home), clock=CLOCK), (load("backtest-mcp"),)) as app:
            await app.databases.migrate()
            rows: dict[str, Any] = {key: value for key, value in SPEC.items() if key != "name"}
            desk = app.databases.of("desk")
            long_ago = {"created_at": datetime(2025, 1, 1, tzinfo=UTC), "updated_at": datetime(2025, 1, 1, tzinfo=UTC)}
            spec = await add_spec(desk, SPEC["name"], **rows, **long_ago)
            strategy = await add_implementation(desk, "one", spec, parameters={}, **long_ago)
            last = int(datetime.fromisoformat(CLOCK).timestamp()) // DAY_S
            market = DemoMarket(7, shape_of)
            minutes = joined([market.day(INSTRUMENTS[SYMBOL], day) for day in range(last - DAYS, last)])
            await app.runtime.source(Candles).write(SYMBOL, HOUR, resampled(minutes, HOUR))
        yield home, strategy
