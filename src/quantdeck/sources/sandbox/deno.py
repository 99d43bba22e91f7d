"""TypeScript, on Deno."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from quantdeck.sources.sandbox import Kind, Problem
from quantdeck.sources.sandbox.cage import Cage, Level, readable
from quantdeck.sources.sandbox.failures import MEMORY, NO_EVAL, NO_IMPORT, NO_NETWORK, PYTH
from quantdeck.sources.sandbox.worker import Engine

__all__ = ["engine", "explain"]

_FOLDER = Path(__file__).with_name("typescript")
_FILES = tuple(str(_FOLDER / name) for name in ("worker.js", "realm.js", "indicators.js"))

_FLAGS = (
    "--no-prompt", "--no-npm", "--no-remote", "--no-config", "--no-lock", "--cached-only",
    "--deny-read", "--deny-write", "--deny-net", "--deny-env", "--deny-run", "--deny-sys", "--deny-ffi",
    "--deny-import",
)  # fmt: skip

_V8 = (
    "--max-heap-size=128",
    "--disallow-code-generation-from-strings",
    "--enable-experimental-regexp-engine-on-excessive-backtracks",
)


@cache
def engine(level: Level) -> Engine:
    """How it is started. The engine's own permissions are denied beside what the cage denies."""
    from deno import find_deno_bin  # type: ignore[import-untyped]  # it has no types

    binary = find_deno_bin()
    flags = _V8 if level.endswith("+jit") else (*_V8, "--jitless")
    program = (binary, "run", *_FLAGS, f"--v8-flags={','.join(flags)}", _FILES[0])
    sees = readable(binary, *(f"r:{path}" for path in _FILES), "w:/dev/null")
    return Engine(Cage(program, sees, level), explain)


_FRAME = re.compile(r"^ +at .*?\buser\.ts:(\d+):(\d+)\)?$", re.MULTILINE)
_PLACE = re.compile(r"\s+at file:///\w+\.ts:(\d+):(\d+)")
_BEFORE = 24
"""Characters that stand before the code in its first line while its types are taken away."""


def explain(stage: str, name: str, message: str, stack: str) -> Problem:
    """What Deno said: `stage` is `syntax` or `runtime`."""
    if stage == "syntax":
        return _unparsed(message)
    line, column = _numbers(_FRAME.search(stack))
    kind, hint = next(
        ((kind, hint) for named, said, kind, hint in _RULES if re.fullmatch(named, name) and re.search(said, message)),
        ("runtime", ""),
    )
    return Problem(kind, name, message, line, column, hint)


def _unparsed(message: str) -> Problem:
    line, column = _numbers(_PLACE.search(message))
    if line == 1 and column is not None:
        column = max(column - _BEFORE, 1)
    said = _PLACE.sub("", message.removeprefix("SyntaxError: ").partition("\n")[0]).removeprefix("[InvalidSyntax] ")
    if "import" in said and ("module" in said or "export" in said):
        return Problem("security", "SyntaxError", said, line, column, NO_IMPORT)
    hint = next((advice for word, advice in _INSTEAD.items() if word in said), "")
    return Problem("syntax", "SyntaxError", said, line, column, hint)


def _numbers(found: re.Match[str] | None) -> tuple[int | None, int | None]:
    return (None, None) if found is None else (int(found[1]), int(found[2]))


_STRIPPED = "Types are taken away and nothing is generated for them: "

_INSTEAD = {
    "enum": f"{_STRIPPED}write `const Name = {{ A: 0, B: 1 }} as const`.",
    "namespace": f"{_STRIPPED}use a plain object.",
    "parameter property": f"{_STRIPPED}assign in the constructor.",
    "already been declared": "Give one of the two another name.",
}

_ABSENT = (
    "fetch|WebSocket|XMLHttpRequest|EventSource|Worker|BroadcastChannel|localStorage|sessionStorage|caches|process|Deno|"
    "Bun|require|module|exports|__dirname|__filename|Buffer|WebAssembly|SharedArrayBuffer|Atomics|global|window|self|"
    "navigator"
)
_NAMES = "pyth has getSymbols, getCandlestickData, getHistoricalPrice and getLatestPrice."
_TIMERS = "setTimeout|setInterval|setImmediate|queueMicrotask|requestAnimationFrame"

_RULES: tuple[tuple[str, str, Kind, str], ...] = (
    ("EvalError", "", "security", NO_EVAL),
    (".*", "Code generation from strings", "security", NO_EVAL),
    (".*", "dynamic import callback", "security", NO_IMPORT),
    ("ReferenceError", f"^(?:{_ABSENT}) is not defined", "security", NO_NETWORK),
    (
        "ReferenceError",
        f"^(?:{_TIMERS}) is not",
        "runtime",
        "There are no timers here, and only pyth to wait for.",
    ),
    ("ReferenceError", "is not defined", "runtime", "Beside the language there are pyth, indicators and console."),
    ("RangeError", "allocation failed|Invalid (?:array|typed array|string) length", "memory", MEMORY),
    ("RangeError", "call stack", "runtime", "Calls, or the data, are nested too deeply: use a loop, or flatter data."),
    ("RangeError", "characters of JSON", "runtime", "Return figures rather than rows: the last value, a mean."),
    ("TypeError", "circular structure", "runtime", "The result must be plain data, without cycles."),
    ("TypeError", "of (?:undefined|null)", "runtime", "Is an `await` missing, or a list empty?"),
    ("TypeError", r"^pyth\.\w+ is not a function", "runtime", _NAMES),
    ("PythError", "", "runtime", PYTH),
)
"""By an error's name and words: what it is, and what to do. The first that fits counts."""
