"""Sweeps on a real Ray cluster of two nodes."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from quantdeck.backtesting.sweeps import SweepFailedError
from quantdeck.backtesting.sweeps.cluster import Cluster, is_installed
from tests.backtesting.swept import Heard, points, serial, swept, task
from tests.support.ray_cluster import RayCluster, ray_cluster
from tests.support.services import missing


@pytest.fixture
def cluster() -> Iterator[RayCluster]:
    if not is_installed():
        raise missing("Ray")
    with tempfile.TemporaryDirectory(prefix="ray", dir="/tmp") as folder:  # short, as its sockets want it
        with ray_cluster(Path(folder)) as started:
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
    with pytest.raises(SweepFailedError, match="No Ray cluster answers at .*: connection failed"):
        await swept(tmp_path, task(), points(), Cluster("127.0.0.1:1"))


def test_nobody_but_the_process_for_it_imports_ray():
    program = "import sys; import quantdeck.commands.sweep, quantdeck.app; print('ray' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
    assert told == "False\n"
