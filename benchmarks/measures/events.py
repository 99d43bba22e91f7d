"""The log of backtest events: each tool by the size of the run, many at once, the writer, and tokens saved."""

import asyncio
import os
import tempfile
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from benchmarks import event_rows, event_sql, tokens
from benchmarks.absence import NotAvailable
from benchmarks.event_rows import BEGAN, RUN, STEP
from benchmarks.figures import Figure
from benchmarks.progress import say
from benchmarks.report import Report, Table
from quantdeck.app import open_app
from quantdeck.core.clock import Now
from quantdeck.core.wire import Answer, encode
from quantdeck.domain.event_times import micros
from quantdeck.servers import load
from quantdeck.servers.backtest_events.results import wire_events
from quantdeck.settings import Settings
from quantdeck.sources.events import EVER, Slice, Span
from quantdeck.sources.events.embedded import EventFile

ABOUT = (
    "Milliseconds inside the store, p50 of several, uncached; 'path' is an aggregate over a property that has no "
    "column of its own. 'seed SQL' is the original's schema and SQL without indexes, in the same run; its search for "
    "incomplete sequences is scaled up from a hundred roots. QUANTDECK_BENCH_EVENTS=10000000 adds a size."
)
SIZES, QUICK = (10_000, 100_000, 1_000_000), (10_000, 100_000)
PATTERN = ["OrderPlaced", "TradeExecution", "PositionUpdate"]
NOW = Now.of(datetime(2030, 1, 1, tzinfo=UTC), fixed=False)
PAGE = Slice(0, 100)
TIMES = 7

Questions = dict[str, Callable[[], Awaitable[Any]]]


def questions(source: EventFile, events: int) -> Questions:
    """One for each tool, aggregates twice."""
    middle = micros(BEGAN + events // 2 * STEP)
    half = Span(EVER.start, middle)
    return {
        "runs": lambda: source.runs(PAGE, as_of=NOW),
        "by type": lambda: source.of_type(RUN, "TradeExecution", EVER, PAGE, as_of=NOW),
        "by type, half": lambda: source.of_type(RUN, "TradeExecution", half, PAGE, as_of=NOW),
        "by symbol": lambda: source.of_entity(RUN, "SecuritySymbol", "AAPL", [], PAGE, as_of=NOW),
        "by indicator": lambda: source.of_entity(RUN, "IndicatorName", "SMA_10", [], PAGE, as_of=NOW),
        "aggregate": lambda: source.totals(RUN, "IndicatorCalculation", "$.Value", EVER, as_of=NOW),
        "aggregate path": lambda: source.totals(RUN, "IndicatorCalculation", "$.Parameters.Period", EVER, as_of=NOW),
        "snapshot": lambda: source.state(RUN, middle, as_of=NOW),
        "incomplete": lambda: source.chains(RUN, PATTERN, 10, Slice(0, 50), incomplete=True, as_of=NOW),
        "all chains": lambda: source.chains(RUN, [], 10, Slice(0, 50), as_of=NOW),
        "validation": lambda: source.invalid(RUN, "Warning", PAGE, as_of=NOW),
    }


async def measure(quick: bool) -> Report:
    report = Report("events", ABOUT, [], [], {})
    sizes = [*(QUICK if quick else SIZES), *map(int, filter(None, [os.environ.get("QUANTDECK_BENCH_EVENTS")]))]
    took: dict[int, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for size in sizes:
            took[size] = await _size(folder / f"{size}.db", size, report)
            if size == 100_000:
                await _against_seed(folder, took[size], report)
                await _at_once(folder / f"{size}.db", size, report)
                _writer(folder, report)
                await _tokens(folder / f"{size}.db", report)
            (folder / f"{size}.db").unlink()
    rows = [(name, *(f"{took[size][name]:.2f}" for size in sizes)) for name in took[sizes[0]]]
    report.tables.insert(0, Table("ms by events in the run", ("question", *(f"{size:,}" for size in sizes)), rows))
    report.data["ms"] = took
    return report


async def _size(path: Path, size: int, report: Report) -> dict[str, float]:
    begun = perf_counter()
    event_rows.write(path, size, batch=1000 if size <= 100_000 else 10_000)
    say(f"{size:,} events written in {perf_counter() - begun:.1f} s")
    source = EventFile(path)
    try:
        took = {name: await _p50_ms(ask) for name, ask in questions(source, size).items()}
        root = (await source.chains(RUN, PATTERN, 10, Slice(0, 1), as_of=NOW) or ([], 0))[0][0].root
        took["chain"] = await _p50_ms(lambda: source.chain(RUN, root, PATTERN, 10, as_of=NOW))
    finally:
        await source.close()
    limits = {10_000: dict.fromkeys(took, 20.0), 100_000: {**dict.fromkeys(took, 50.0), "aggregate path": 150.0}}
    large = {"snapshot": 20.0, "chain": 20.0, "aggregate": 2000.0}
    for name, limit in limits.get(size, large if size >= 10_000_000 else {}).items():
        report.figures.append(Figure(f"{size:,} events, {name}", limit, took[name], "ms", strictly_below=True))
    return took


async def _p50_ms(ask: Callable[[], Awaitable[Any]]) -> float:
    await ask()
    took = []
    for _ in range(TIMES):
        begun = perf_counter()
        await ask()
        took.append(perf_counter() - begun)
        if sum(took) > 10:
            break
    return median(took) * 1000


async def _against_seed(folder: Path, took: dict[str, float], report: Report) -> None:
    seed = await asyncio.to_thread(event_sql.original, folder / "100000.db", folder)
    rows = []
    for name, limit in (("aggregate", 0.25), ("incomplete", 0.01)):
        ratio = took[name] / 1000 / seed[name]
        rows.append((name, f"{took[name]:.1f}", f"{seed[name] * 1000:.0f}", f"{ratio:.4f}"))
        report.figures.append(Figure(f"100,000 events, {name}: ours / seed SQL without indexes", limit, ratio, "x"))
    report.tables.append(Table("Against the seed's own SQL, ms", ("question", "ours", "seed SQL", "ratio"), rows))


async def _at_once(path: Path, size: int, report: Report) -> None:
    source = EventFile(path)
    asked = list(questions(source, size).values())
    rates: dict[int, float] = {}
    try:
        for width in (4, 100, 1000, 4, 100, 1000):
            rates[width] = max(rates.get(width, 0.0), await _rate(asked, width))
    finally:
        await source.close()
    rows = [(f"{width}", f"{rate:.0f}", f"{rate / rates[4]:.2f}") for width, rate in rates.items()]
    report.tables.append(Table("Many at once, a mix of all questions", ("at once", "per second", "x 4 at once"), rows))
    for width in (100, 1000):
        text = f"{width} at once: 4 at once / {width} at once, throughput with the queue (1.11 is 0.9 the other way)"
        report.figures.append(Figure(text, 1.11, rates[4] / rates[width], "x"))


async def _rate(asked: list[Callable[[], Awaitable[Any]]], width: int, many: int = 1100) -> float:
    left = iter(range(many))

    async def work() -> None:
        for number in left:
            await asked[number % len(asked)]()

    begun = perf_counter()
    async with asyncio.TaskGroup() as group:
        for _ in range(width):
            group.create_task(work())
    return many / (perf_counter() - begun)


def _writer(folder: Path, report: Report) -> None:
    ours, bare = [], []
    for turn in range(3):
        path = folder / f"written{turn}.db"
        begun = perf_counter()
        event_rows.write(path, 100_000)
        ours.append(perf_counter() - begun)
        bare.append(event_sql.bare(path, folder / f"bare{turn}.db"))
    ratio = median(one / other for one, other in zip(ours, bare, strict=True))
    rows = [("EventLog", f"{1e5 / min(ours):.0f}"), ("executemany", f"{1e5 / min(bare):.0f}")]
    report.tables.append(Table("Writing 100,000 events", ("writer", "events per second"), rows))
    text = "writer: seconds / those of a bare executemany of the same rows (2 is 0.5 the other way)"
    report.figures.append(Figure(text, 2.0, ratio, "x"))


async def _tokens(path: Path, report: Report) -> None:
    """Each tool's answer against the rows that it stands for: an agent without it would have to read them."""
    try:
        rows = await _saved(path)
    except NotAvailable as why:
        report.tables.append(Table("Tokens", ("tool",), [(f"not available: {why}",)]))
        return
    told = [(name, f"{answer:,}", f"{read:,}", f"{1 - answer / read:.2%}") for name, answer, read in rows]
    columns = ("tool", "tokens of the answer", "tokens of the rows", "saved")
    report.tables.append(Table("Tokens (o200k), 100,000 events", columns, told))
    for name, answer, read in rows:
        report.figures.append(Figure(f"tokens, {name}: answer / rows as JSON lines", 0.3, answer / read, "x"))


async def _saved(path: Path) -> list[tuple[str, int, int]]:
    source = EventFile(path)
    try:
        sample = wire_events(RUN, await source.written(RUN, 0, 2000, as_of=NOW))
    finally:
        await source.close()
    per_row = sum(tokens.count([row.decode() for row in sample])) / len(sample)
    answers = {name: (arguments, *await _asked(path, name, arguments)) for name, arguments in TOOLS.items()}
    counted = tokens.count([text for _, text, _ in answers.values()])
    return [
        (name, tokens_of, round(per_row * rows))
        for (name, (_, _, rows)), tokens_of in zip(answers.items(), counted, strict=True)
    ]


TOOLS: dict[str, dict[str, Any]] = {
    "get_events_by_type": {"eventType": "TradeExecution"},
    "get_events_by_entity": {"entityType": "SecuritySymbol", "entityValue": "AAPL"},
    "aggregate_metrics": {"eventType": "TradeExecution", "propertyPath": "$.Price"},
    "get_state_snapshot": {"timestamp": (BEGAN + 50_000 * STEP).isoformat()},
    "query_event_sequence": {"sequencePattern": PATTERN, "findIncomplete": True},
    "get_validation_errors": {},
}


async def _asked(path: Path, tool: str, arguments: dict[str, Any]) -> tuple[str, int]:
    """A tool's answer as text, and how many rows it stands for: those that match, or had to be looked through."""
    settings = Settings(events=f"sqlite:///{path}")
    async with open_app(settings, (load("backtest-events"),)) as app:
        contract = app.tool(tool)
        assert contract is not None
        answer = await app.call(contract, {"runId": RUN, **arguments})
    assert isinstance(answer, Answer)
    assert not answer.is_error, answer.encoded
    body = answer.body
    match tool:
        case "get_events_by_type" | "get_events_by_entity":
            rows = body.metadata.totalCount
        case "aggregate_metrics":
            rows = body.metadata.totalEvents
        case "get_state_snapshot":
            rows = 50_000
        case _:
            rows = 100_000
    return encode(body).decode(), rows
