"""Sweeps on a real Ray cluster of two nodes."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex

import pytest

from quantdeck.backtesting.engine import run
from quantdeck.backtesting.sweeps import SweepFailedError
from quantdeck.backtesting.sweeps.cluster import Cluster, is_installed
from quantdeck.connections.databases import Databases
from quantdeck.core.errors import Unreachable
from quantdeck.domain.strategy_specs import UnfitParametersError
from quantdeck.domain.timeframes import MINUTE
from quantdeck.settings import MisconfiguredError, Settings
from quantdeck.sources.backtester import Job
from quantdeck.sources.backtester.ray import connect
from tests.backtesting.swept import BEGINS, Heard, points, serial, swept, task
from tests.support.bars import FAR, now
from tests.support.ray_cluster import RayCluster, ray_cluster
from tests.support.services import missing

SLOW = 400_000  # bars, of which an indicator looks through a thousand at each


@pytest.fixture(scope="module")
def cluster() -> Iterator[RayCluster]:
    if not is_installed():
        raise missing("Ray")
    with (
        pytest.MonkeyPatch.context() as environment,
        tempfile.TemporaryDirectory(prefix="ray", dir="/tmp") as folder,  # short, as its sockets want it
        _cluster(Path(folder), environment) as started,
    ):
        yield started


@contextmanager
def _cluster(folder: Path, environment: pytest.MonkeyPatch) -> Iterator[RayCluster]:
    """With a token of its own, whatever Ray finds on this machine; nobody else may run code in it."""
    environment.setenv("RAY_AUTH_MODE", "token")
    environment.setenv("RAY_AUTH_TOKEN", token_hex(32))
    with ray_cluster(folder) as started:
        yield started


@pytest.mark.services
@pytest.mark.timeout(180)
async def test_a_node_that_is_killed_meanwhile_costs_no_point(cluster, tmp_path):
    asked, which = task(150_000), points("fast=2:13", "slow=20:50:5")
    at: list[int] = []

    def kill(done: int) -> None:
        if done >= 8 and not at:
            at.append(done)
            cluster.kill_a_node()

    _, found = await swept(tmp_path, asked, which, Cluster(cluster.address), Heard(kill))
    assert 8 <= at[0] < len(which) / 2
    assert found == serial(asked, which)


async def test_where_no_cluster_answers_it_is_said(tmp_path):
    with pytest.raises(SweepFailedError, match=r"No Ray cluster answers at .*: connection failed"):
        await swept(tmp_path, task(), points(), Cluster("127.0.0.1:1"))


def test_nobody_but_the_process_for_it_imports_ray():
    program = "import sys; import quantdeck.commands.sweep, quantdeck.app; print('ray' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
    assert told == "False\n"


def job(many: int, **parameters: int) -> Job:
    asked = task(many)
    return Job(asked.spec, parameters, "BTC/USD", MINUTE, asked.bars, asked.terms)


@pytest.mark.services
@pytest.mark.timeout(180)
async def test_the_port_runs_a_backtest_there_and_connects_again_where_its_process_ended(cluster):
    source = connect(f"ray:{cluster.address}", Settings(), Databases(Settings()))
    asked, as_of = job(2000, fast=7), now(BEGINS + 60 * 1500)
    whole = run(asked.spec.instantiate({"fast": 7}), asked.bars[:1500]).metrics
    try:
        await source.ping()
        assert await source.run(asked, as_of=as_of) == whole  # and no bar after the clock
        with pytest.raises(UnfitParametersError, match="above longPeriod"):
            await source.run(job(2000, fast=40), as_of=as_of)
        together = [job(SLOW, fast=fast) for fast in (4, 5, 6)]
        each = await asyncio.gather(*(source.run(one, as_of=FAR) for one in together))
        assert each == [run(one.spec.instantiate(one.parameters), one.bars).metrics for one in together]
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.02):
                await source.run(job(SLOW, width=9999), as_of=FAR)
        (pid,) = children()
        waiting = asyncio.ensure_future(source.run(job(SLOW, width=9999), as_of=FAR))
        await asyncio.wait([waiting], timeout=0.2)
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(Unreachable, match="connection to the Ray cluster was lost"):
            await waiting
        assert await source.run(asked, as_of=as_of) == whole
    finally:
        await source.close()
    assert children() == []


def children() -> list[int]:
    """Our processes that speak with a cluster."""
    told = subprocess.run(
        ["pgrep", "-P", str(os.getpid()), "-f", "ray_driver"], capture_output=True, text=True, check=False
    )
    return [int(pid) for pid in told.stdout.split()]


async def test_the_port_says_that_nobody_answers(tmp_path):
    source = connect("ray:127.0.0.1:1", Settings(), Databases(Settings()))
    with pytest.raises(Unreachable, match="No Ray cluster answers"):
        await source.run(job(100), as_of=FAR)
    await source.close()
    with pytest.raises(MisconfiguredError, match="names no cluster"):
        connect("ray://", Settings(), Databases(Settings()))
