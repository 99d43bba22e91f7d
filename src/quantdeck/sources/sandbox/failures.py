"""What went wrong, in a word and with advice: deterministic, from what an engine said and how it ended."""

from __future__ import annotations

import re
import signal

from quantdeck.sources.sandbox import BUDGET_MB, Kind, Problem

__all__ = ["crashed", "excerpt", "from_python", "from_typescript", "timed_out", "violated"]

_OUT_OF_MEMORY = re.compile(r"out of memory|OOM|allocation (?:failed|of \d+ bytes failed)|MemoryExhausted", re.IGNORECASE)
_TOO_DEEP = re.compile(r"overflowed its stack|stack overflow", re.IGNORECASE)

MEMORY = f"An analysis has {BUDGET_MB} MB. Ask for fewer candles, or keep sums in place of rows."
TIME = "Ask for less, compute less, or give a larger timeout_ms (30000 at most)."

_FORBIDDEN = frozenset(
    "fetch WebSocket XMLHttpRequest EventSource Worker BroadcastChannel localStorage sessionStorage caches process "
    "Deno Bun require module exports __dirname __filename Buffer WebAssembly SharedArrayBuffer Atomics global window "
    "self navigator".split()
)
_TIMERS = frozenset("setTimeout setInterval setImmediate queueMicrotask requestAnimationFrame".split())

_NO_NETWORK = "There is no network, file system or process here: ask pyth.* for data, and return the result."
_NO_EVAL = "Code cannot be made at run time here: write it out."
_NO_IMPORT = "Nothing can be imported here: pyth, indicators and console are there already."


def timed_out(timeout_ms: int) -> Problem:
    return Problem("timeout", "TimeoutError", f"The analysis was ended after {timeout_ms} ms", hint=TIME)


def violated(why: str) -> Problem:
    return Problem("security", "ProtocolViolation", f"The engine was ended: it sent {why}")


def crashed(status: int | None, stderr: str, *, over: bool, parsing: bool = False) -> Problem:
    """An engine that ended without a result."""
    if over or _OUT_OF_MEMORY.search(stderr):
        return Problem("memory", "MemoryError", "The analysis needs more memory than it may have", hint=MEMORY)
    if _TOO_DEEP.search(stderr) or (parsing and status == -signal.SIGSEGV):
        deep = "The code is nested too deeply to be parsed"
        return Problem("syntax", "SyntaxError", deep, hint="Write fewer brackets within brackets.")
    if status in (-signal.SIGXCPU, -signal.SIGKILL):
        return Problem("timeout", "TimeoutError", "The analysis used up its processor time", hint=TIME)
    if status == -signal.SIGSYS:
        return Problem("security", "SystemCallRefused", "The engine was ended: it made a call that it may not make")
    if status in (-signal.SIGTRAP, -signal.SIGABRT):
        return Problem("memory", "MemoryError", "The engine gave up; most likely it had no memory left", hint=MEMORY)
    return Problem("runtime", "EngineError", "The engine ended without a result", hint="Try again, with simpler code.")


_FRAME = re.compile(r"^ +at .*?\buser\.ts:(\d+):(\d+)\)?$", re.MULTILINE)
_PLACE = re.compile(r"\s+at file:///\w+\.ts:(\d+):(\d+)")
BEFORE = 24
"""Characters that stand before the code in its first line while its types are taken away."""


def from_typescript(stage: str, name: str, message: str, stack: str) -> Problem:
    """What Deno said: `stage` is `syntax` or `runtime`."""
    if stage == "syntax":
        return _unparsed(message)
    found = _FRAME.search(stack)
    line, column = (int(found[1]), int(found[2])) if found else (None, None)
    kind, hint = _runtime(name, message)
    return Problem(kind, name, message, line, column, hint)


def _unparsed(message: str) -> Problem:
    found = _PLACE.search(message)
    line, column = (int(found[1]), int(found[2])) if found else (None, None)
    if line == 1 and column is not None:
        column = max(column - BEFORE, 1)
    said = _PLACE.sub("", message.removeprefix("SyntaxError: ").partition("\n")[0])
    said = said.removeprefix("[InvalidSyntax] ")
    if "import" in said and ("module" in said or "export" in said):
        return Problem("security", "SyntaxError", said, line, column, _NO_IMPORT)
    hints = {
        "enum": "Types are taken away and nothing is generated: write `const Name = { A: 0, B: 1 } as const`.",
        "namespace": "Types are taken away and nothing is generated: use a plain object.",
        "parameter property": "Types are taken away and nothing is generated: assign in the constructor.",
        "already been declared": "Give one of the two another name.",
    }
    hint = next((advice for word, advice in hints.items() if word in said), "")
    return Problem("syntax", "SyntaxError", said, line, column, hint)


def _runtime(name: str, message: str) -> tuple[Kind, str]:
    if name == "EvalError" or "Code generation from strings" in message:
        return "security", _NO_EVAL
    if "dynamic import callback" in message:
        return "security", _NO_IMPORT
    if name == "ReferenceError" and (found := re.match(r"([\w$]+) is not defined", message)):
        if found[1] in _FORBIDDEN:
            return "security", _NO_NETWORK
        if found[1] in _TIMERS:
            return "runtime", "There are no timers here, and nothing to wait for but pyth.*."
        return "runtime", "Beside the language there are pyth, indicators and console."
    if name == "RangeError" and re.search("allocation failed|Invalid (?:array|typed array|string) length", message):
        return "memory", MEMORY
    if name == "RangeError" and "call stack" in message:
        return "runtime", "A function calls itself too often: use a loop."
    if "circular structure" in message:
        return "runtime", "The result must be plain data: numbers, texts, lists and objects without cycles."
    if name == "RangeError" and "characters of JSON" in message:
        return "runtime", "Return figures rather than rows: the last value, a mean, the few that matter."
    if name == "PythError":
        return "runtime", "The call to pyth failed: catch the error, or ask for something else."
    if name == "TypeError" and "then" not in message and ("undefined" in message or "null" in message):
        return "runtime", "Is an `await` missing, or a list empty?"
    return "runtime", ""


def from_python(stage: str, name: str, message: str, line: int | None, column: int | None) -> Problem:
    """What Monty said."""
    kind: Kind = "syntax" if stage == "syntax" else "runtime"
    hint = ""
    if name == "MemoryError":
        kind, hint = "memory", MEMORY
    elif name == "TimeoutError" and "time limit" in message:
        kind, hint = "timeout", TIME
    elif name == "PermissionError":
        kind = "security"
        hint = _NO_EVAL if "eval" in message or "exec" in message or "__import__" in message else _NO_NETWORK
    elif name in ("ModuleNotFoundError", "ImportError"):
        hint = _MODULES
    elif name == "NotImplementedError" or "does not yet support" in message or "not supported" in message:
        kind = "syntax"
        hint = next((advice for word, advice in _INSTEAD.items() if word in message), _SUBSET)
    elif name == "NameError" and (found := re.search(r"name '(\w+)'", message)):
        hint = f"Beside the language there are pyth and indicators; {found[1]} is none of it."
    elif name == "PythError":
        hint = "The call to pyth failed: catch the error, or ask for something else."
    return Problem(kind, name, message, line, column, hint)


_SUBSET = "This is a subset of Python: functions, plain classes, comprehensions, async and await, and a few modules."
_INSTEAD = {
    "inheritance": "Classes have no bases here: write functions, or one class that holds another.",
    "yield": "There are no generators here: build a list, or use a comprehension.",
    "del": "There is no `del` here: build a new list or dict without the item.",
    "with": "There is no `with` here, and nothing to open.",
}
_MODULES = (
    "There are math, datetime, json, re, collections, itertools, functools, random, decimal, bisect, csv, asyncio and "
    "typing; for moving averages, deviations and the like use indicators."
)


def excerpt(code: str, line: int | None, column: int | None) -> str:
    """The line and its neighbours, with a mark under the column."""
    lines = code.split("\n")
    if line is None or not 1 <= line <= len(lines):
        return ""
    out = []
    for number in range(max(line - 1, 1), min(line + 1, len(lines)) + 1):
        out.append(f"{'>' if number == line else ' '} {number:4} | {lines[number - 1][:200]}")
        if number == line and column is not None and 1 <= column <= 200:
            out.append(f"       | {' ' * (column - 1)}^")
    return "\n".join(out)
