"""TypeScript, on Deno."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from quantdeck.sources.sandbox.cage import Cage, Level, readable
from quantdeck.sources.sandbox.failures import from_typescript
from quantdeck.sources.sandbox.worker import Engine

__all__ = ["engine"]

_FILES = tuple(str(Path(__file__).with_name("deno") / name) for name in ("worker.js", "realm.js", "indicators.js"))

_FLAGS = (
    "--no-prompt", "--no-npm", "--no-remote", "--no-config", "--no-lock", "--cached-only", "--deny-read", "--deny-write",
    "--deny-net", "--deny-env", "--deny-run", "--deny-sys", "--deny-ffi", "--deny-import",
)  # fmt: skip

_V8 = (
    "--max-heap-size=128",
    "--disallow-code-generation-from-strings",
    "--enable-experimental-regexp-engine-on-excessive-backtracks",
)


@cache
def engine(level: Level) -> Engine:
    """How it is started. The engine's own permissions are denied beside what the cage denies."""
    from deno import find_deno_bin

    binary = find_deno_bin()
    flags = _V8 if level.endswith("+jit") else (*_V8, "--jitless")
    program = (binary, "run", *_FLAGS, f"--v8-flags={','.join(flags)}", _FILES[0])
    sees = readable(binary, *(f"r:{path}" for path in _FILES), "w:/dev/null")
    return Engine(Cage(program, sees, level), from_typescript)
