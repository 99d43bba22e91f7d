"""What went wrong, in a word and with advice: deterministic, from what an engine said and how it ended."""

from __future__ import annotations

import re
import signal

from quantdeck.sources.sandbox import BUDGET_MB, Problem

__all__ = ["MEMORY", "NO_EVAL", "NO_IMPORT", "NO_NETWORK", "PYTH", "crashed", "excerpt", "timed_out", "violated"]

MEMORY = f"An analysis has {BUDGET_MB} MB. Ask for fewer candles, or keep sums in place of rows."
NO_EVAL = "Code cannot be made at run time here: write it out."
NO_IMPORT = "Nothing can be imported here: pyth, indicators and console are there already."
NO_NETWORK = "There is no network, file system or process here: ask pyth for data, and return the result."
PYTH = "The call to pyth failed: catch the error, or ask for something else."

_TIME = "Ask for less, compute less, or give a larger timeout_ms (30000 at most)."
_OUT_OF_MEMORY = re.compile(r"out of memory|OOM|allocation (?:failed|of \d+ bytes (?:failed|exceeds))", re.IGNORECASE)
_TOO_DEEP = re.compile(r"overflowed its stack|stack overflow", re.IGNORECASE)
_WIDEST = 200


def timed_out(timeout_ms: int) -> Problem:
    return Problem("timeout", "TimeoutError", f"The analysis was ended after {timeout_ms} ms", hint=_TIME)


def violated(why: str) -> Problem:
    return Problem("security", "ProtocolViolation", f"The engine was ended: it sent {why}")


def crashed(status: int | None, stderr: str, *, over: bool) -> Problem:
    """An engine that ended without a result. `over` says that it was killed for its memory."""
    if over or _OUT_OF_MEMORY.search(stderr):
        return Problem("memory", "MemoryError", "The analysis needs more memory than it may have", hint=MEMORY)
    if _TOO_DEEP.search(stderr):
        deep = "The code is nested too deeply to be parsed"
        return Problem("syntax", "SyntaxError", deep, hint="Write fewer brackets within brackets.")
    return _BY_SIGNAL.get(status or 0, _ENDED)


_ENDED = Problem("runtime", "EngineError", "The engine ended without a result", hint="Try again, with simpler code.")
_USED_UP = Problem("timeout", "TimeoutError", "The analysis used up its processor time", hint=_TIME)
_GAVE_UP = Problem("memory", "MemoryError", "The engine gave up; most likely no memory was left", hint=MEMORY)

_BY_SIGNAL = {
    -signal.SIGXCPU: _USED_UP,
    -signal.SIGTRAP: _GAVE_UP,
    -signal.SIGABRT: _GAVE_UP,
    -signal.SIGILL: _GAVE_UP,
    -signal.SIGSYS: Problem("security", "SystemCallRefused", "The engine was ended: it made a call that it may not"),
}


def excerpt(code: str, line: int | None, column: int | None) -> str:
    """The line and its neighbours, with a mark under the column."""
    lines = code.split("\n")
    if line is None or not 1 <= line <= len(lines):
        return ""
    out = []
    for number in range(max(line - 1, 1), min(line + 1, len(lines)) + 1):
        out.append(f"{'>' if number == line else ' '} {number:4} | {lines[number - 1][:_WIDEST]}".rstrip())
        if number == line and column is not None and 1 <= column <= _WIDEST:
            out.append(f"       | {' ' * (column - 1)}^")
    return "\n".join(out)
