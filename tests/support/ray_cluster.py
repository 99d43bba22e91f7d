"""A Ray cluster of two nodes on this machine, as a process of its own: Ray changes whatever imports it.

It prints the address, kills its second node when it is told a line, says so, and ends with its input.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = ["RayCluster", "ray_cluster"]


class RayCluster:
    """`address` is what its drivers are told."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.address = self._hear()

    def kill_a_node(self) -> None:
        """Without a word to it; it is gone when this returns."""
        assert self._process.stdin is not None
        self._process.stdin.write("kill\n")
        self._process.stdin.flush()
        assert self._hear() == "killed"

    def _hear(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


@contextmanager
def ray_cluster(folder: Path) -> Iterator[RayCluster]:
    """Two processors, one in each node; its files are in the folder."""
    program = (sys.executable, str(Path(__file__)), str(folder))
    with subprocess.Popen(
        program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:  # whose input is closed, and which is waited for, when this is left
        yield RayCluster(process)


def main() -> None:
    import os

    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "1"}
    from ray.cluster_utils import Cluster

    told = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what Ray prints is no answer
    small: dict[str, Any] = {"num_cpus": 1, "object_store_memory": 80 * 2**20, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args={**small, "temp_dir": sys.argv[1]})
    try:
        node = cluster.add_node(**small)
        told.write(f"{cluster.address}\n")
        for _ in sys.stdin:
            cluster.remove_node(node, allow_graceful=False)
            told.write("killed\n")
    finally:
        cluster.shutdown()


if __name__ == "__main__":
    main()
