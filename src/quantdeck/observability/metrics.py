"""Counts and latencies of this process since it began, fed with the event of each call."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["BOUNDS_MS", "Latency", "Metrics"]

BOUNDS_MS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 30000)
MAX_CALLERS = 100


@dataclass(slots=True)
class Latency:
    """How long one tool has taken, in buckets, and how it ended."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS_MS) + 1))
    total_ms: float = 0.0
    errors: dict[str, int] = field(default_factory=dict)

    @property
    def calls(self) -> int:
        return sum(self.counts)

    def add(self, elapsed_ms: float, error: str | None = None) -> None:
        self.counts[bisect_left(BOUNDS_MS, elapsed_ms)] += 1
        self.total_ms += elapsed_ms
        if error is not None:
            self.errors[error] = self.errors.get(error, 0) + 1

    def quantile_ms(self, share: float) -> float | None:
        """The bound under which this share of the calls stayed; None before the first call."""
        wanted, seen = share * self.calls, 0
        for bound, count in zip((*BOUNDS_MS, float("inf")), self.counts, strict=True):
            seen += count
            if count and seen >= wanted:
                return bound
        return None


@dataclass(slots=True)
class Metrics:
    tools: dict[str, Latency] = field(default_factory=dict)
    backends: dict[str, int] = field(default_factory=dict)
    """Failures by source."""
    limited: dict[str, int] = field(default_factory=dict)
    """Calls refused for coming too fast, by caller; beyond MAX_CALLERS, all the others together."""

    def count(self, event: Mapping[str, Any]) -> None:
        """Take one call into account."""
        tool = event["tool_name"]
        if tool not in self.tools:
            self.tools[tool] = Latency()
        self.tools[tool].add(event["latency_ms"], event.get("error_code"))
        if "failed_source" in event:
            source = event["failed_source"]
            self.backends[source] = self.backends.get(source, 0) + 1
        if event.get("rate_limited"):
            caller = event["caller"]
            known = caller in self.limited or len(self.limited) < MAX_CALLERS
            name = caller if known else "other"
            self.limited[name] = self.limited.get(name, 0) + 1
