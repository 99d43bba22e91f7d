"""Python, on Monty: a program of ours between, which owns the interpreter."""

from __future__ import annotations

import sys
import sysconfig
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from quantdeck.sources.sandbox.cage import Cage, Level, interpreter, readable
from quantdeck.sources.sandbox.failures import from_python
from quantdeck.sources.sandbox.worker import Engine

__all__ = ["engine"]

_HERE = Path(__file__).with_name("monty")


@cache
def engine(level: Level) -> Engine:
    """How it is started: the host in a cage without network and files, the interpreter in the launcher's full one."""
    spec = find_spec("pydantic_monty")
    assert spec is not None
    assert spec.origin is not None
    site = Path(spec.origin).parents[1]
    monty = str(Path(sysconfig.get_path("scripts")) / "monty")
    host = [sys.executable, "-I", "-S", "-B", str(_HERE / "host.py"), str(site), monty]
    if level == "none":
        return Engine(Cage(host, (), "none"), from_python)
    engine = readable(monty, "w:/dev/null")
    sees = (
        *interpreter(f"d:{site}", f"d:{_HERE}"),
        *readable("/bin/sh"),
        *engine,
        f"r:{_HERE.parent / 'launcher.py'}",
        "r:/proc/self/status",
    )
    return Engine(Cage([*host, "full", *engine], sees, "host"), from_python)
