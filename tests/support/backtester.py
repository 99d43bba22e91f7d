"""The service of backtests as a process of its own, whoever asks it, and jobs for it."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quantdeck.backtesting.engine import Metrics, run
from quantdeck.connections.grpc import Channels, place
from quantdeck.domain.candles import Bars
from quantdeck.domain.spec_reader import read
from quantdeck.domain.strategy_specs import StrategySpec
from quantdeck.domain.timeframes import MINUTE, Timeframe
from quantdeck.settings import Grpc
from quantdeck.sources.backtester import Job
from quantdeck.sources.backtester.grpc import OverGrpc
from tests.support.bars import at, every, walk
from tests.support.specs import spec

__all__ = ["BEGINS", "NAMED", "Service", "asking", "begun", "job", "minutes", "of_engine", "slow", "until", "written"]

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


NAMED: dict[str, Any] = {"numbers": {"movingAveragePeriod": 30}, "parameters": [
    {"name": "movingAveragePeriod", "type": "INTEGER", "min": 10, "max": 50, "defaultValue": 20},
    {"name": "oversoldThreshold", "type": "DOUBLE", "min": 15, "max": 30, "defaultValue": 25.5},
], "indicators": [
    {"id": "sma", "type": "SMA", "input": "close", "params": {"period": "${movingAveragePeriod}"}},
    {"id": "rsi", "type": "RSI", "input": "close", "params": {"period": 14}},
], "entry_conditions": [
    {"type": "OVER", "indicator": "close", "params": {"other": "sma"}},
    {"type": "UNDER_CONSTANT", "indicator": "rsi", "params": {"threshold": "${oversoldThreshold}"}},
]}  # fmt: skip
"""A strategy by the name and with the parameters that tradestream's service knows."""


@asynccontextmanager
async def asking(target: str, **options: Any) -> AsyncIterator[OverGrpc]:
    """The adapter, with a patience for busy machines."""
    said = Grpc(**{"connect_s": 20, **options})
    source = OverGrpc(Channels(place(f"grpc://{target}", said), said), said)
    try:
        yield source
    finally:
        await source.close()


async def until(holds: Callable[[], Any]) -> None:
    """Once this holds; it is another process's doing, which tells nobody."""
    async with asyncio.timeout(20):
        while not holds():  # noqa: ASYNC110 - see above
            await asyncio.sleep(0.01)


def of_engine(asked: Job) -> Metrics:
    """What a job comes to, whoever runs it."""
    return run(asked.spec.instantiate(asked.parameters), asked.bars, asked.terms).metrics
