"""A sweep on all processors beside the same points one after another."""

import os
import tempfile
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
from time import perf_counter

from benchmarks.figures import Figure
from benchmarks.measures.backtest import made
from benchmarks.progress import say
from benchmarks.report import Report, Table
from quantdeck.backtesting.sweeps import Numbers, Outcome, Task
from quantdeck.backtesting.sweeps.journal import Journal
from quantdeck.backtesting.sweeps.points import grid, read_values
from quantdeck.backtesting.sweeps.pool import Pool
from quantdeck.backtesting.sweeps.sweeping import sweep
from quantdeck.domain.spec_reader import read

BARS = 100_000
SPEC = {
    "name": "SMA_RSI",
    "indicators": [
        {"id": "sma", "type": "SMA", "params": {"period": "${period}"}},
        {"id": "rsi", "type": "RSI", "params": {"period": "${rsi}"}},
    ],
    "entry_conditions": [
        {"type": "UNDER", "indicator": "close", "params": {"other": "sma"}},
        {"type": "UNDER_CONSTANT", "indicator": "rsi", "params": {"threshold": "${low}"}},
    ],
    "exit_conditions": [{"type": "OVER_CONSTANT", "indicator": "rsi", "params": {"threshold": 70}}],
    "parameters": [
        {"name": "period", "type": "INTEGER", "min": 5, "max": 200, "defaultValue": 20},
        {"name": "rsi", "type": "INTEGER", "min": 5, "max": 40, "defaultValue": 14},
        {"name": "low", "type": "DOUBLE", "min": 15, "max": 40, "defaultValue": 30},
    ],
}


async def measure(quick: bool) -> Report:
    spec = read(**SPEC).spec
    assert spec is not None
    task = Task(spec, made(BARS))
    points = grid(spec, read_values(spec, ("period=10:100:10", "rsi=8:26:2", "low=22:40:2")))
    processes = len(os.sched_getaffinity(0))
    names = ("one after another", f"on {processes} processes")
    took: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
    for number in range(2 if quick else 4):  # in turn, so that what else the machine does is shared
        say(f"round {number + 1}")
        begun, worked = perf_counter(), _worked()
        serial = task.outcomes(list(enumerate(points)))
        took[names[0]].append((perf_counter() - begun, _worked() - worked))
        begun, worked = perf_counter(), _worked()
        swept = await _swept(task, points, processes)
        took[names[1]].append((perf_counter() - begun, _worked() - worked))
        if swept != serial:
            raise SystemExit("the sweep and the points one after another differ: one of them is wrong")
    wall, work = ({name: min(one[which] for one in each) for name, each in took.items()} for which in (0, 1))
    alone_s, together_s = wall.values()
    about = (
        f"{len(points):,} points over {BARS:,} one-minute bars, a strategy of an SMA and an RSI; starting the "
        "processes, sending them the bars and the journal are part of it. Both come to the same, to the last bit, "
        "before anything is told. The fastest round of each; processor time is "
        "what the machine's other work changes less."
    )
    rows = [(name, f"{wall[name]:.2f}", f"{work[name]:.2f}", f"{alone_s / wall[name]:.2f}") for name in names]
    table = Table("a thousand points", ("how", "s", "CPU s", "times as fast"), rows)
    text = "a thousand points, as a multiple of one after another (1.7 times as fast)"
    return Report(
        "sweep", about, [table], [Figure(text, 1 / 1.7, together_s / alone_s, "x")], {"wall_s": wall, "cpu_s": work}
    )


def _worked() -> float:
    """Processor time of this process and of those that it started and that have ended."""
    return sum(one.ru_utime + one.ru_stime for one in map(getrusage, (RUSAGE_SELF, RUSAGE_CHILDREN)))


async def _swept(task: Task, points: list[Numbers], processes: int) -> list[Outcome]:
    with tempfile.TemporaryDirectory() as folder, Journal.open(Path(folder), "measured") as journal:
        journal.begin({"of": "a measure"})
        return await sweep(task, points, journal, Pool(processes), lambda done: None)
