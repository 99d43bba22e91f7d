"""Python, on Monty: a program of ours between, which owns the interpreter."""

from __future__ import annotations

import re
import sys
import sysconfig
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from quantdeck.sources.sandbox import Kind, Problem
from quantdeck.sources.sandbox.cage import Cage, Level, interpreter, readable
from quantdeck.sources.sandbox.failures import MEMORY, NO_EVAL, NO_NETWORK, PYTH
from quantdeck.sources.sandbox.worker import Engine

__all__ = ["engine", "explain"]

_FOLDER = Path(__file__).with_name("python")


@cache
def engine(level: Level) -> Engine:
    """How it is started: the host in a cage without network and files, the interpreter in the launcher's full one."""
    spec = find_spec("pydantic_monty")
    assert spec is not None
    assert spec.origin is not None
    site = Path(spec.origin).parents[1]
    monty = _program()
    host = (sys.executable, "-I", "-S", "-B", str(_FOLDER / "host.py"), str(site), monty)
    if level == "none":
        return Engine(Cage(host, (), "none"), explain)
    inner = readable(monty, "w:/dev/null")
    launcher = _FOLDER.with_name("launcher.py")
    ours = interpreter(f"d:{site}", f"d:{_FOLDER}", f"r:{launcher}", "r:/proc/self/status")
    return Engine(Cage((*host, "full", *inner), (*ours, *readable("/bin/sh"), *inner), "host"), explain)


def _program() -> str:
    """Where the wheel has put it: with this interpreter's own programs, or the user's."""
    for scheme in (sysconfig.get_default_scheme(), sysconfig.get_preferred_scheme("user")):
        if (found := Path(sysconfig.get_path("scripts", scheme)) / "monty").is_file():
            return str(found)
    raise FileNotFoundError("monty")


def explain(stage: str, name: str, message: str, line: int | None, column: int | None) -> Problem:
    """What Monty said: `stage` is `syntax` or `runtime`."""
    kind, hint = next(
        ((kind, hint) for named, said, kind, hint in _RULES if re.fullmatch(named, name) and re.search(said, message)),
        ("syntax" if stage == "syntax" else "runtime", ""),
    )
    return Problem(kind, name, message, line, column, hint)


_MODULES = (
    "There are math, datetime, json, re, collections, itertools, functools, random, decimal, bisect, csv, asyncio and "
    "typing; for moving averages, deviations and the like use indicators."
)
_NAMES = "pyth has get_symbols, get_candlestick_data, get_historical_price and get_latest_price; see indicators too."
_SUBSET = "This is a subset of Python: functions, plain classes, comprehensions, async and await, and a few modules."

_RULES: tuple[tuple[str, str, Kind, str], ...] = (
    ("MemoryError", "", "memory", MEMORY),
    ("PermissionError", r"^(?:eval|exec|compile|__import__) ", "security", NO_EVAL),
    ("PermissionError", "", "security", NO_NETWORK),
    ("AttributeError", "'_(?:Pyth|Indicators)' object", "runtime", _NAMES),
    ("RuntimeError", "^'[a-z.]+' is not supported in this environment", "security", NO_NETWORK),
    ("ModuleNotFoundError|ImportError", "", "runtime", _MODULES),
    ("NotImplementedError", "inheritance", "syntax", "Classes have no bases here: hold one object in another."),
    ("NotImplementedError", "yield", "syntax", "There are no generators here: build a list, or use a comprehension."),
    ("NotImplementedError", "del", "syntax", "There is no `del` here: build a new list or dict without the item."),
    ("NotImplementedError", "", "syntax", _SUBSET),
    ("NameError", "", "runtime", "Beside the language there are pyth and indicators."),
    ("RecursionError", "", "runtime", "A function calls itself too often: use a loop."),
    ("ResultError", "", "runtime", "Return figures rather than rows: the last value, a mean."),
    ("RuntimeError", "^[a-z_]+: ", "runtime", PYTH),
    ("TypeError", "coroutine", "runtime", "Write `await` before the call to pyth."),
)  # fmt: skip
"""As in `deno`."""
