"""The service of backtests as a process of its own, and jobs for it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quantdeck.domain.candles import Bars
from quantdeck.domain.spec_reader import read
from quantdeck.domain.strategy_specs import StrategySpec
from quantdeck.domain.timeframes import MINUTE, Timeframe
from quantdeck.sources.backtester import Job
from tests.support.bars import at, every, walk
from tests.support.specs import spec

__all__ = ["BEGINS", "Service", "begun", "job", "minutes", "slow", "written"]

BEGINS = at("2025-03-03T00:00")
PATIENCE_S = 20.0
_ADDRESS = re.compile(r"grpc://(\S+)")


@dataclass(frozen=True, slots=True)
class Service:
    target: str
    process: subprocess.Popen[str]

    def workers(self) -> list[int]:
        """The processes that it has started and that are still there."""
        said = subprocess.run(
            ["ps", "-o", "pid=,stat=", "--ppid", str(self.process.pid)], capture_output=True, text=True, check=False
        ).stdout
        return [int(line.split()[0]) for line in said.splitlines() if not line.split()[1].startswith("Z")]

    def end(self, number: int = signal.SIGTERM) -> None:
        self.process.send_signal(number)

    def ended(self) -> int:
        """Its exit status, once it has ended."""
        return self.process.wait(PATIENCE_S)


@contextmanager
def begun(home: Path, *arguments: str, port: int = 0, **settings: str) -> Iterator[Service]:
    """A service that says where it is; it is gone in the end."""
    inherited = {name: os.environ[name] for name in ("PATH", "TMPDIR") if name in os.environ}
    environment = {**inherited, "QUANTDECK_HOME": str(home), "QUANTDECK_LOG_LEVEL": "error", **settings}
    process = subprocess.Popen(
        [sys.executable, "-m", "quantdeck", "backtester", "--port", str(port), *arguments],
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield Service(_address(process), process)
    finally:
        process.kill()
        process.communicate()


def _address(process: subprocess.Popen[str]) -> str:
    assert process.stderr is not None
    heard = []
    impatient = threading.Timer(PATIENCE_S, process.kill)
    impatient.start()
    try:
        for line in process.stderr:
            heard.append(line)
            if found := _ADDRESS.search(line):
                return found[1]
    finally:
        impatient.cancel()
    raise AssertionError(f"it ended without serving: {''.join(heard)}")


def written(**said: Any) -> StrategySpec:
    """A spec of which only what matters is said."""
    found = read(**spec(**said)).spec
    assert found is not None
    return found


def job(bars: Bars, numbers: dict[str, Any] | None = None, timeframe: Timeframe = MINUTE, **said: Any) -> Job:
    """Of BTC/USD."""
    return Job(written(**said), numbers or {}, "BTC/USD", timeframe, bars)


def minutes(many: int, seed: int = 7) -> Bars:
    return walk(every(60, BEGINS, many), seed)


def slow(bars: Bars | None = None) -> Job:
    """One that takes its process far longer than any test waits."""
    indicators = [{"id": f"cci{n}", "type": "CCI", "input": "close", "params": {"period": 4000 + n}} for n in range(20)]
    over = [{"type": "OVER_CONSTANT", "indicator": one["id"], "params": {"threshold": 0}} for one in indicators]
    return job(
        bars or minutes(200_000), indicators=indicators, entry_conditions=over, exit_conditions=over, parameters=[]
    )
