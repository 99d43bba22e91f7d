"""A small sweep for tests, and what it comes to one point after another."""

from __future__ import annotations

from pathlib import Path

from quantdeck.backtesting.sweeps import Numbers, Outcome, Task
from quantdeck.backtesting.sweeps.journal import Journal
from quantdeck.backtesting.sweeps.points import grid, read_values
from quantdeck.backtesting.sweeps.sweeping import Runner, sweep
from quantdeck.domain.spec_reader import read
from tests.support.bars import at, every, walk

ASKED = "a" * 64
BEGINS = at("2025-03-03T00:00")

SPEC = {
    "name": "AVERAGES",
    "indicators": [
        {"id": "line", "type": "MACD", "params": {"shortPeriod": "${fast}", "longPeriod": "${slow}"}},
        {"id": "dear", "type": "CCI", "params": {"period": "${width}"}},
    ],
    "entry_conditions": [{"type": "CROSSED_UP", "indicator": "line", "params": {"value": 0}}],
    "exit_conditions": [{"type": "CROSSED_DOWN", "indicator": "line", "params": {"value": 0}}],
    "parameters": [
        {"name": "fast", "type": "INTEGER", "min": 2, "max": 20, "defaultValue": 5},
        {"name": "slow", "type": "INTEGER", "min": 4, "max": 60, "defaultValue": 30},
        {"name": "width", "type": "INTEGER", "min": 1, "max": 99999, "defaultValue": 2},
    ],
}


def task(bars: int = 2000) -> Task:
    spec = read(**SPEC).spec
    assert spec is not None
    return Task(spec, walk(every(60, BEGINS, bars)))


def points(*said: str) -> list[Numbers]:
    """Some of which are unfit: a fast average that is the slower one."""
    spec = task(2).spec
    return grid(spec, read_values(spec, said or ("fast=2:13", "slow=6:30:6")))


def serial(asked: Task, which: list[Numbers]) -> list[Outcome]:
    return asked.outcomes(list(enumerate(which)))


class Heard:
    """How many were done, each time that was said; `then` is called with each."""

    def __init__(self, then=lambda done: None) -> None:
        self.counts: list[int] = []
        self._then = then

    def __call__(self, done: int) -> None:
        self.counts.append(done)
        self._then(done)


async def swept(folder: Path, asked: Task, which: list[Numbers], runner: Runner, heard: Heard | None = None):
    """The sweep, with a journal in the folder; how far it was before, and what it came to."""
    with Journal.open(folder, ASKED) as journal:
        before = len(journal.done)
        if journal.head is None:
            journal.begin({"of": "a test"})
        return before, await sweep(asked, which, journal, runner, heard or Heard())
