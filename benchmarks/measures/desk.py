"""Reads of the relational servers on a large desk, on each engine: what our part adds to the SQL itself."""

import asyncio
import pickle
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

from pydantic import SecretStr

from benchmarks import bare_sql, questions
from benchmarks.desk_rows import ACCOUNT, DECISIONS, IMPLEMENTATIONS, SIGNALS, SPEC, STRATEGY, SYMBOL, fill
from benchmarks.figures import Figure
from benchmarks.load import Pace
from benchmarks.process import started
from benchmarks.report import Report, Table
from quantdeck import servers
from quantdeck.connections.databases import Databases
from quantdeck.settings import Settings
from tests.support import postgresql

SERVERS = tuple(
    name for name in ("strategy-mcp", "portfolio-mcp", "decisions-mcp", "strategy-db-mcp") if name in servers.NAMES
)
FRESH = {"force_refresh": True}
FAR = 40_000
ABOUT = (
    f"{SIGNALS:,} signals, {DECISIONS:,} decisions, {IMPLEMENTATIONS:,} implementations; over stdio, through the whole "
    "pipeline. 'bare SQL' is the tool's own statements by the bare driver on one connection, in the same run. "
    "'ours' is (tool - nothing) / bare SQL: nothing is a tool that does nothing over the same wire. 'in process' is "
    "the same call without a wire. 'floor' is what the leanest program adds to its own 'nothing' over the same wire: "
    "pipes, these statements by the bare driver, the rows as JSON, and nothing else (benchmarks/peers/sql_peer.py)."
)

_BUILT = {tool.name for name in SERVERS for tool in servers.load(name).tools}
_ASKED: dict[str, tuple[str, dict[str, Any]]] = {
    "get_top_strategies": ("get_top_strategies", {"symbol": SYMBOL, **FRESH}),
    "get_strategy_signal": ("get_strategy_signal", {"symbol": SYMBOL, "strategy_id": STRATEGY, **FRESH}),
    "get_strategy_consensus": ("get_strategy_consensus", {"symbol": SYMBOL, **FRESH}),
    "get_positions": ("get_positions", {}),
    "get_balance": ("get_balance", {}),
    "validate_trade": ("validate_trade", {"symbol": SYMBOL, "side": "BUY", "size": 0.01, "price": 100}),
    "get_recent_decisions": ("get_recent_decisions", FRESH),
    f"get_recent_decisions at {FAR:,}": ("get_recent_decisions", {"offset": FAR, **FRESH}),
    "get_top_specs": ("get_top_specs", FRESH),
    "get_implementations": ("get_implementations", {"spec_id": SPEC, **FRESH}),
}
READS = {name: (tool, arguments) for name, (tool, arguments) in _ASKED.items() if tool in _BUILT}
CACHED = {
    f"{name}, cached": (tool, {key: value for key, value in arguments.items() if key not in FRESH})
    for name, (tool, arguments) in READS.items()
    if FRESH.items() <= arguments.items()
}


@dataclass(frozen=True)
class Engine:
    """A filled desk: how a server finds it, and how the bare driver does."""

    name: str
    settings: Settings
    address: Mapping[str, str]  # by group of tables

    @property
    def environment(self) -> dict[str, str]:
        said = {"QUANTDECK_HOME": str(self.settings.home), "QUANTDECK_ACCOUNT": ACCOUNT}
        database = self.settings.database.get_secret_value()
        return {**said, "QUANTDECK_DATABASE": database} if database else said


@asynccontextmanager
async def engines() -> AsyncIterator[list[Engine]]:
    with tempfile.TemporaryDirectory() as home:
        on_files = Settings(home=Path(home))
        dsn = await postgresql.available().new_database()
        on_a_server = Settings(home=Path(home) / "nothing", database=SecretStr(dsn))
        for settings in (on_files, on_a_server):
            databases = Databases(settings)
            await databases.migrate()
            await fill(databases)
            await databases.close()
        await postgresql.available().sql("ANALYZE", dsn=dsn)
        files = {group: str(Path(home) / f"{group}.db") for group in ("desk", "decisions")}
        yield [Engine("sqlite", on_files, files), Engine("postgresql", on_a_server, dict.fromkeys(files, dsn))]


async def measure(quick: bool) -> Report:
    pace = Pace(2, 0.05, 0.03, 10) if quick else Pace(8, 0.2, 0.2, 20)
    report = Report("desk", ABOUT, [], [], {})
    async with engines() as filled:
        for engine in filled:
            await _engine(engine, pace, report)
    return report


async def _engine(engine: Engine, pace: Pace, report: Report) -> None:
    bare = {name: await _bare(engine, *asked) for name, asked in READS.items()}
    async with started(questions.command(*SERVERS), **engine.environment) as process:
        client = await questions.opened(process)
        medians = await questions.timed(client, {**READS, **CACHED}, pace)
    floor = await _floor(engine, pace)
    again = {name: await _bare(engine, *asked) for name, asked in READS.items()}
    bare = {name: tuple(map(mean, zip(before, again[name], strict=True))) for name, before in bare.items()}
    nothing = medians[questions.NOTHING]["p50_us"]
    rows = [(questions.NOTHING, f"{nothing:.0f}", "-", "-", "-", "-")]
    for name in (*READS, *CACHED):
        took = medians[name]["p50_us"]
        if name in bare:
            by_driver, in_process = bare[name]
            ours = (took - nothing) / by_driver
            rows.append((
                name, f"{took:.0f}", f"{by_driver:.0f}", f"{ours:.2f}", f"{floor[name]:.0f}", f"{in_process:.0f}"
            ))  # fmt: skip
            report.figures.append(Figure(f"{engine.name} {name}: (tool - nothing) / bare SQL", 1.3, ours, "x"))
        else:
            rows.append((name, f"{took:.0f}", "-", f"{took / nothing:.2f} x nothing", "-", "-"))
            report.figures.append(Figure(f"{engine.name} {name} / nothing", 1.5, took / nothing, "x"))
    far = medians[f"get_recent_decisions at {FAR:,}"]["p50_us"] / medians["get_recent_decisions"]["p50_us"]
    report.figures.append(Figure(f"{engine.name} get_recent_decisions at offset {FAR:,} / at 0", 5, far, "x"))
    report.tables.append(
        Table(engine.name, ("question", "p50 us", "bare SQL us", "ours", "floor us", "in process us"), rows)
    )
    report.data[engine.name] = {"medians": medians, "bare_sql_and_in_process_us": bare}


async def _floor(engine: Engine, pace: Pace) -> dict[str, float]:
    """Microseconds that the floor with SQL takes for each read, less what it takes for nothing."""
    asked = {}
    for name, (tool, arguments) in READS.items():
        found = await bare_sql.recorded(engine.settings, tool, arguments)
        asked[name] = (engine.address[_group(tool)], (found.statements, found.together))
    with tempfile.NamedTemporaryFile() as file:
        file.write(pickle.dumps(asked))
        file.flush()
        async with started([sys.executable, "-m", "benchmarks.peers.sql_peer", file.name]) as process:
            client = await questions.opened(process)
            medians = await questions.timed(client, {name: (name, {}) for name in asked}, pace)
    nothing = medians[questions.NOTHING]["p50_us"]
    return {name: medians[name]["p50_us"] - nothing for name in asked}


def _group(tool: str) -> str:
    return "decisions" if "decisions" in tool else "desk"


async def _bare(engine: Engine, tool: str, arguments: Mapping[str, Any]) -> tuple[float, ...]:
    """By the bare driver, and by us in this process."""
    asked = await bare_sql.recorded(engine.settings, tool, arguments)
    await asyncio.sleep(0)
    return await bare_sql.timed(asked, engine.address[_group(tool)]), asked.in_process_us
