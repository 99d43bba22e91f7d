"""The catalog's tools that compute, through REST under twenty clients: features, risk and simulated orders."""

import json
import tempfile
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.figures import Figure
from benchmarks.progress import say
from benchmarks.report import Report, Table
from benchmarks.rest_load import CLIENTS, flat_out, paced, serving
from quantdeck.connections.databases import Databases
from quantdeck.core.clock import Now
from quantdeck.domain.timeframes import MINUTE
from quantdeck.servers import load
from quantdeck.settings import Settings
from quantdeck.sources.candles import embedded
from tests.support import desk
from tests.support.bars import every, walk

LIMIT_MS = {"risk.position_limits_check": 10, "execution.sim_quote": 15, "features.ohlcv_window": 20}
TOOLS = {tool.name: tool.policy for tool in load("tools-catalog").tools if tool.name in LIMIT_MS}
NOON = datetime(2026, 1, 15, 12, tzinfo=UTC)
DAYS = 60
SYMBOLS = ("BTC/USD", "ETH/USD", "EUR/USD")
ABOUT = (
    f"POST /mcp/tools/call by {CLIENTS} clients with a token and a connection each, on minutes of {DAYS} days in the "
    "home. No question is asked twice, so nothing is answered from what is kept. 'At the limit' each client calls as "
    "often as the spec's rate limit lets it; 'flat out' each has one call in flight all the time. Client and server "
    "share the machine, and deadlines are off."
)


def _arguments(tool: str) -> Callable[[int], Mapping[str, Any]]:
    def arguments(number: int) -> Mapping[str, Any]:
        symbol = SYMBOLS[number % len(SYMBOLS)]
        if tool == "features.ohlcv_window":
            # 24 whole hours that end by another second each time: other questions about the same bars.
            day, second = 2 + number % 12, number // 12 % 3600
            window = {
                "start": f"2026-01-{day:02}T00:00:00Z",
                "end": f"2026-01-{day:02}T23:{second // 60:02}:{second % 60:02}Z",
            }
            return {"symbol": symbol, **window, "interval": "1h", "features": ["sma", "rsi", "macd"]}
        if tool == "execution.sim_quote":
            return {"instrument": symbol, "side": "buy", "qty": 1 + number / 1e6, "timestamp": NOON.isoformat()}
        return {"strategy": "momentum_v2", "instrument": symbol, "qty": 1 + number / 1e6, "side": "buy"}

    return arguments


async def measure(quick: bool) -> Report:
    report = Report("catalog", ABOUT, [], [], {})
    with tempfile.TemporaryDirectory() as folder:
        await _fill(Path(folder))
        settings = {"QUANTDECK_CLOCK": NOON.isoformat(), "QUANTDECK_DEADLINE_S": json.dumps(dict.fromkeys(TOOLS, 0))}
        rows = []
        async with serving(Path(folder), "tools-catalog", **settings) as connections:
            for tool, policy in sorted(TOOLS.items()):
                say(tool)
                assert policy.per_minute is not None
                await flat_out(connections, tool, _arguments(tool), 40)
                at_limit = await paced(connections, tool, _arguments(tool), policy.per_minute, 3 if quick else 15)
                fast = await flat_out(connections, tool, lambda n, t=tool: _arguments(t)(n + 50_000), 400)
                told = (at_limit.p50_ms, at_limit.p95_ms, at_limit.rps, fast.p95_ms, fast.rps)
                rows.append((tool, *(f"{number:.2f}" for number in told)))
                said = f"{tool}, p95 at the limit (the spec: {policy.p95_ms:g} ms)"
                report.figures.append(Figure(said, LIMIT_MS[tool], at_limit.p95_ms, "ms"))
                report.data[tool] = {"at_limit": vars(at_limit), "flat_out": vars(fast)}
    columns = ("tool", "p50 ms at the limit", "p95 ms at the limit", "calls/s", "p95 ms flat out", "calls/s flat out")
    report.tables.append(Table("tools", columns, rows))
    return report


async def _fill(home: Path) -> None:
    """Bars, an account, positions and the limits of a strategy."""
    settings = Settings(home=home)
    databases = Databases(settings)
    await databases.migrate()
    candles = embedded.connect("", settings, databases)
    opens = every(60, int(NOON.timestamp()) - DAYS * 86_400, DAYS * 1440)
    for number, symbol in enumerate(SYMBOLS):
        await candles.write(symbol, MINUTE, walk(opens, seed=number))
    database = databases.of("desk")
    await desk.add_account(database)
    await desk.add_limits(database, strategy_id="momentum_v2", max_position_size=1e5, max_exposure=1e6)
    for symbol in SYMBOLS:
        await desk.add_position(database, symbol, symbol)
    assert await candles.series(SYMBOLS[0], as_of=Now.of(NOON, fixed=True))
    await candles.close()
    await databases.close()
