"""The program as its users run it: a demo home, and a process that serves over HTTP."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.support.node import environment

__all__ = ["QUANTDECK", "make_demo", "serving"]

QUANTDECK = str(Path(sys.executable).with_name("quantdeck"))
PATIENCE_S = 20.0
_ADDRESS = re.compile(r"http://\S+/mcp\b")


def make_demo(home: Path) -> dict[str, str]:
    """Make a small demo world; the environment in which the program finds it."""
    env = environment(home, QUANTDECK_HOME=str(home / "world"), QUANTDECK_LOG_LEVEL="error")
    subprocess.run([QUANTDECK, "demo", "--days", "7", "--quiet"], env=env, check=True, timeout=PATIENCE_S)
    return env


@contextmanager
def serving(command: Sequence[str], env: dict[str, str]) -> Iterator[str]:
    """The address on which a program says that it serves. It must end well when it is asked to."""
    process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        yield _address(process)
        process.terminate()
        said, _ = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0, said
    finally:
        process.kill()
        process.communicate()


def _address(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    heard = []
    impatient = threading.Timer(PATIENCE_S, process.kill)
    impatient.start()
    try:
        for line in process.stdout:
            heard.append(line)
            if found := _ADDRESS.search(line):
                return found[0]
    finally:
        impatient.cancel()
    raise AssertionError(f"{process.args!r} ended without serving: {''.join(heard)}")
