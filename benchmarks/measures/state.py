"""Shared state through REST under twenty clients, embedded and in Redis, and what Redis itself takes."""

import json
import tempfile
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from redis.asyncio import Redis as Driver

from benchmarks.figures import Figure
from benchmarks.progress import say
from benchmarks.report import Report, Table
from benchmarks.rest_load import CLIENTS, flat_out, paced, serving
from quantdeck.connections.redis import Redis
from quantdeck.core.clock import Now
from quantdeck.servers import load
from quantdeck.settings import Redis as Settings
from quantdeck.sources.shared_state import Quota
from quantdeck.sources.shared_state.redis import RedisSharedState
from tests.support import redis

VALUE = {"trend_direction": "bullish", "strength": 0.78, "confidence": 0.85, "notes": "x" * 200}
LIMIT_MS = {"storage.shared_state.set": 8, "storage.shared_state.get": 5}
TOOLS = {tool.name: tool.policy for tool in load("tools-catalog").tools if tool.name in LIMIT_MS}
ABOUT = (
    f"POST /mcp/tools/call by {CLIENTS} clients with a token and a connection each, values of about 270 bytes. 'At the "
    "limit' each client calls as often as the spec's rate limit lets it; 'flat out' each has one call in flight all "
    "the time, which is a measure of the server's throughput. Client and server share the machine, and deadlines are "
    "off: a busy machine is measured, not refused. 'raw GET' is the driver alone on a string of the same size."
)


def _arguments(tool: str) -> Callable[[int], dict[str, Any]]:
    def arguments(number: int) -> dict[str, Any]:
        place = {"corr_id": f"c{number % 50}", "key": f"k{number % 7}"}
        return {**place, "value": VALUE} if tool.endswith("set") else place

    return arguments


async def measure(quick: bool) -> Report:
    report = Report("state", ABOUT, [], [], {})
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as other:
        await _store("embedded", Path(folder), {}, report, quick=quick)
        in_redis = {"QUANTDECK_STATE": redis.available().url, "QUANTDECK_REDIS__PREFIX": redis.keyed().prefix}
        await _store("redis", Path(other), in_redis, report, quick=quick)
    await _raw(report, 200 if quick else 4000)
    return report


async def _store(name: str, home: Path, settings: dict[str, str], report: Report, *, quick: bool) -> None:
    rows, settings = [], {**settings, "QUANTDECK_DEADLINE_S": json.dumps(dict.fromkeys(TOOLS, 0))}
    async with serving(home, "tools-catalog", **settings) as connections:
        for tool, policy in sorted(TOOLS.items(), reverse=True):  # set before get
            say(f"{name} {tool}")
            assert policy.per_minute is not None
            warm, arguments = 60, _arguments(tool)
            await flat_out(connections, tool, arguments, warm)
            at_limit = await paced(connections, tool, arguments, policy.per_minute, 2 if quick else 15)
            fast = await flat_out(connections, tool, arguments, 200 if quick else 2000)
            told = (at_limit.p50_ms, at_limit.p95_ms, at_limit.rps, fast.p95_ms, fast.rps)
            rows.append((tool, *(f"{number:.2f}" for number in told)))
            said = f"{name} {tool}, p95 at the limit (the spec: {policy.p95_ms:g} ms)"
            report.figures.append(Figure(said, LIMIT_MS[tool], at_limit.p95_ms, "ms"))
            report.data[f"{name} {tool}"] = {"at_limit": vars(at_limit), "flat_out": vars(fast)}
    columns = ("tool", "p50 ms at the limit", "p95 ms at the limit", "calls/s", "p95 ms flat out", "calls/s flat out")
    report.tables.append(Table(name, columns, rows))


async def _raw(report: Report, rounds: int) -> None:
    """Our read of an entry, script, count and all, beside the driver's GET of a string as large."""
    url, settings, now = (
        redis.available().url,
        Settings(prefix=redis.keyed().prefix),
        Now.of(datetime.now(UTC), fixed=False),
    )
    connection, driver = Redis(url, settings), Driver.from_url(url)
    state, value = RedisSharedState(connection, Quota(2**24, 10_000)), b"x" * 270
    await state.set("c", "k", value, ttl_s=3600, at=now)
    await driver.set("raw", value)
    took: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for each, ask in zip(took, (lambda: state.get("c", "k", as_of=now), lambda: driver.get("raw")), strict=True):
            each.append(await _timed(ask))
    ours, raw = median(took[0]), median(took[1])
    report.figures.append(Figure("Redis: our get / raw GET, p50", 2, ours / raw, "x"))
    report.data["raw"] = {"ours_us": ours, "raw_us": raw}
    await connection.close()
    await driver.aclose()


async def _timed(ask: Callable[[], Awaitable[Any]]) -> float:
    begun = perf_counter()
    await ask()
    return (perf_counter() - begun) * 1e6
