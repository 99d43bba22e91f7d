"""The port `sandbox`: who runs code that nobody here has read.

An adapter gives each analysis an engine of its own, and the code nothing but the language, `pyth`, `indicators` and a
console. What the code asks of `pyth` is asked by whoever calls this, through `Ask`; the adapter counts and bounds it.
Nothing that comes back from an engine is believed: a report's value, its texts and its positions are the code's own
words, and the rest was measured from outside.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, Literal

from quantdeck.core.contract import Source

__all__ = [
    "BUDGET_MB",
    "LONGEST_CODE",
    "MOST_CALLS",
    "Analysis",
    "Ask",
    "Kind",
    "Language",
    "Problem",
    "RefusedError",
    "Report",
    "Sandbox",
    "installed",
]

Language = Literal["typescript", "python"]
Kind = Literal["timeout", "memory", "syntax", "runtime", "security"]

Ask = Callable[[str, list[Any]], Awaitable[bytes]]
"""A method of `pyth` by its name in the spec, and its arguments; answers JSON or raises RefusedError."""

BUDGET_MB = 128
LONGEST_CODE = 65_536
MOST_CALLS = 100


class RefusedError(Exception):
    """A call that the code may know the failure of: one of our own sentences, and a short word for its kind."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


@dataclass(frozen=True, slots=True)
class Analysis:
    code: str
    language: Language = "typescript"
    timeout_ms: int = 10_000
    now_ms: int | None = None  # where the world stands still


@dataclass(frozen=True, slots=True)
class Problem:
    """What went wrong; lines and columns count from 1, in the code as it was submitted."""

    kind: Kind
    name: str
    message: str
    line: int | None = None
    column: int | None = None
    hint: str = ""


@dataclass(slots=True)
class Report:
    """What came of an analysis: a value, or a problem."""

    value: Any = None
    problem: Problem | None = None
    console: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    isolation: str = ""
    duration_ms: float = 0.0  # from the code's being sent to its end
    boot_ms: float = 0.0  # waiting for an engine
    host_wait_ms: float = 0.0  # in which at least one call was being answered
    cpu_ms: float = 0.0
    memory_mb: float = 0.0  # the most that was resident beyond what the engine holds when it is idle
    process_mb: float = 0.0  # the most that was resident in all
    memory_exact: bool = True  # not where the engine died of it: then it is the newest that was seen
    calls: dict[str, int] = field(default_factory=lambda: {"ok": 0, "failed": 0, "refused": 0})


class Sandbox(Source):
    """See the module."""

    port = "sandbox"

    @abstractmethod
    async def run(self, analysis: Analysis, ask: Ask, *, full: bool) -> Report:
        """Run it. Where `full` isolation is asked and cannot be had, nothing is run: it raises a SourceError.

        Whoever stops waiting ends the engine.
        """


def installed() -> bool:
    """Whether the engines are there: they are an extra of the package."""
    return all(find_spec(module) is not None for module in ("deno", "pydantic_monty"))
