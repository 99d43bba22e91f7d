"""The embedded store of bars beside DuckDB over monthly Parquet, and beside bare arrays."""

import asyncio
import json
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter, process_time
from typing import Any

from benchmarks.bar_stores import MonthlyParquet, end_of, fill_arrays, fill_ours, made, ours, read_arrays, symbols
from benchmarks.figures import Figure
from benchmarks.progress import say
from benchmarks.report import Report, Table
from quantdeck.domain.timeframes import DAY, MINUTE, TIMEFRAMES

HOUR = TIMEFRAMES["1h"]
MILLION = 1_000_000
_COLUMNS = ("embedded ms", "other ms", "ratio", "embedded CPU ms", "other CPU ms", "ratio of CPU")
READERS = 3

Ask = Callable[[], Awaitable[Any]]


async def measure(quick: bool) -> Report:
    many, minutes = (2, 1_052_640) if quick else (19, 1_052_640)
    about = (
        f"{many * minutes:,} one-minute bars of {many} symbols, made on the spot; p50 of reads in turn, and the "
        "processor time that they take, which the machine's other work changes less; everything in "
        ""
        "the page cache, every answer as numpy arrays. The peer reads the Parquet files of the months that it needs, "
        "named and never looked for. The floor copies six columns out of a memory-mapped file."
    )
    with tempfile.TemporaryDirectory() as folder:
        return await _measured(Path(folder), many, minutes, Report("candles", about, [], [], {}), quick)


async def _measured(folder: Path, many: int, minutes: int, report: Report, quick: bool) -> Report:
    (folder / "parquet").mkdir()
    peer = MonthlyParquet(folder / "parquet", minutes)
    names = symbols(many)
    async with ours(folder / "home") as store:
        wrote_s = 0.0
        for seed, symbol in enumerate(names):
            bars = made(seed, minutes)
            wrote_s += await fill_ours(store, symbol, bars)
            peer.fill(symbol, bars)
            say(f"{symbol} made")
        fill_arrays(folder / "floor", bars)
        report.figures.append(Figure("writing a million bars", 1, wrote_s / (many * minutes / MILLION), "s"))
        await _reads(store, peer, folder, minutes, names, report, rounds=5 if quick else 21)
    peer.close()
    await _together(folder / "home", names, minutes, report, seconds=2 if quick else 6)
    size = sum(file.stat().st_size for file in (folder / "home").iterdir())
    report.data["bytes_per_bar"] = round(size / many / minutes, 1)
    return report


async def _reads(
    store: Any, peer: MonthlyParquet, folder: Path, minutes: int, names: list[str], report: Report, *, rounds: int
) -> None:
    as_of = end_of(minutes)
    end_s, symbol = int(as_of.timestamp()), names[-1]
    cases: dict[str, tuple[Ask, Ask, float]] = {
        "last 100": (
            lambda: store.newest(symbol, MINUTE, 100, as_of=as_of), _later(peer.last, symbol, 100, end_s), 0.1,
        ),
        "1h x 100": (
            lambda: store.newest(symbol, HOUR, 100, as_of=as_of), _later(peer.derived, symbol, 3600, 100, end_s), 0.1,
        ),
        "1d x 700": (
            lambda: store.newest(symbol, DAY, 700, as_of=as_of), _later(peer.derived, symbol, 86_400, 700, end_s), 1.5,
        ),
        "1 M bars as arrays": (
            lambda: store.newest(symbol, MINUTE, MILLION, as_of=as_of),
            _later(read_arrays, folder / "floor", minutes, MILLION), 3.0,
        ),
    }  # fmt: skip
    rows = []
    for case, (ask, other, limit) in cases.items():
        (mine, my_work), (theirs, their_work) = await _in_turn(ask, other, rounds)
        against = "a memory-mapped array" if "arrays" in case else "DuckDB over monthly Parquet"
        figures = (mine, theirs, mine / theirs, my_work, their_work, my_work / their_work)
        rows.append((case, *(f"{figure:.3f}" for figure in figures)))
        report.figures.append(Figure(f"{case}, p50 as a multiple of {against}'s", limit, mine / theirs, "x"))
        report.data[case] = dict(zip(_COLUMNS, figures, strict=True))
    report.tables.append(Table("reads, ms", ("question", *_COLUMNS), rows))


def _later(work: Callable[..., Any], *arguments: Any) -> Ask:
    async def ask() -> Any:
        return work(*arguments)

    return ask


async def _in_turn(ask: Ask, other: Ask, rounds: int) -> tuple[tuple[float, float], tuple[float, float]]:
    """Of both the medians in ms, of time and of processor time. They take turns, so that noise is shared."""
    took: tuple[list[tuple[float, float]], ...] = ([], [])
    for _ in range(rounds):
        for each, asked in zip(took, (ask, other), strict=True):
            warm, _ = await _timed(asked)
            each += [await _timed(asked) for _ in range(max(1, min(20, int(100 / warm))))]
    mine, theirs = ((median(t for t, _ in each), median(cpu for _, cpu in each)) for each in took)
    return mine, theirs


async def _timed(ask: Ask) -> tuple[float, float]:
    begun, worked = perf_counter(), process_time()
    await ask()
    return (perf_counter() - begun) * 1e3, (process_time() - worked) * 1e3


async def _together(home: Path, names: list[str], minutes: int, report: Report, *, seconds: float) -> None:
    """Readers in processes of their own, idle and then beside a writer that does nothing but write."""
    end = str(int(end_of(minutes).timestamp()))

    async def run(how: str, symbol: str) -> Any:
        program = (sys.executable, "-m", "benchmarks.bar_readers", how, str(home), symbol, str(seconds), end)
        process = await asyncio.create_subprocess_exec(*program, stdout=asyncio.subprocess.PIPE)
        told, _ = await process.communicate()
        return json.loads(told)

    read = [run("read", symbol) for symbol in (names * READERS)[:READERS]]
    idle = await asyncio.gather(*read)
    beside = await asyncio.gather(*(run("read", s) for s in (names * READERS)[:READERS]), run("write", names[0]))
    idle_p95, busy_p95 = (_p95([took for one in each for took in one]) for each in (idle, beside[:READERS]))
    rate = beside[READERS] / seconds
    rows = [("alone", f"{idle_p95:.0f}"), (f"beside a writer, {rate:,.0f} writes/s", f"{busy_p95:.0f}")]
    report.tables.append(Table(f"last 100 by {READERS} reading processes, p95 in us", ("readers", "p95"), rows))
    report.figures.append(Figure("readers beside a writer, p95 as a multiple of alone", 3, busy_p95 / idle_p95, "x"))
    report.data["together"] = {"idle_p95_us": idle_p95, "busy_p95_us": busy_p95, "writes_per_s": rate}


def _p95(took: list[float]) -> float:
    return quantiles(took, n=20)[18]
