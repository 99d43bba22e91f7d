"""One event per call, and counts and latencies that anyone may ask for.

Where the events' lines go, and why they cannot stop the server, is `quantdeck.logs`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from quantdeck.core.wire import Answer, RpcFailure

if TYPE_CHECKING:
    from quantdeck.core.call import Call, Proceed
    from quantdeck.core.contract import Contract

__all__ = ["BOUNDS_MS", "Latency", "Observer", "observe"]

calls = logging.getLogger("quantdeck.calls")


def _log(event: dict[str, Any]) -> None:
    calls.info("call", extra={"fields": event})


BOUNDS_MS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 30000)
MAX_CALLERS = 100


@dataclass(slots=True)
class Latency:
    """How long one tool has taken, in buckets, and how it ended."""

    slo_ms: float | None = None
    counts: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS_MS) + 1))
    total_ms: float = 0.0
    errors: dict[str, int] = field(default_factory=dict)

    @property
    def calls(self) -> int:
        return sum(self.counts)

    def add(self, elapsed_ms: float) -> None:
        self.counts[bisect_left(BOUNDS_MS, elapsed_ms)] += 1
        self.total_ms += elapsed_ms

    def quantile_ms(self, share: float) -> float | None:
        """The bound under which this share of the calls stayed; None before the first call."""
        wanted, seen = share * self.calls, 0
        for bound, count in zip((*BOUNDS_MS, float("inf")), self.counts, strict=True):
            seen += count
            if count and seen >= wanted:
                return bound
        return None


@dataclass(slots=True)
class Observer:
    """What the running process knows of its own work."""

    tools: dict[str, Latency] = field(default_factory=dict)
    in_flight: int = 0
    emit: Callable[[dict[str, Any]], None] = _log
    idle: asyncio.Event = field(default_factory=asyncio.Event)
    backends: dict[str, int] = field(default_factory=dict)
    """Failures by source."""
    limited: dict[str, int] = field(default_factory=dict)
    """Calls refused for coming too fast, by caller; beyond MAX_CALLERS, all the others together."""

    def __post_init__(self) -> None:
        self.idle.set()

    def of(self, contract: Contract) -> Latency:
        """The latencies of one tool."""
        found = self.tools.get(contract.name)
        if found is None:
            found = self.tools[contract.name] = Latency(contract.policy.p95_ms)
        return found

    def limit(self, caller: str) -> None:
        """Count a call that came too fast."""
        known = caller in self.limited or len(self.limited) < MAX_CALLERS
        name = caller if known else "other"
        self.limited[name] = self.limited.get(name, 0) + 1

    @contextlib.contextmanager
    def busy(self) -> Iterator[None]:
        """While a call is being answered."""
        self.in_flight += 1
        self.idle.clear()
        try:
            yield
        finally:
            self.in_flight -= 1
            if not self.in_flight:
                self.idle.set()


def observe(contract: Contract) -> Callable[[Proceed], Proceed]:
    """Measure and tell of every call, however it ends."""

    def wrap(proceed: Proceed) -> Proceed:
        async def observed(call: Call) -> Any:
            observer = call.runtime.observer
            outcome: Answer | RpcFailure | None = None
            with observer.busy(), _span(call):
                try:
                    outcome = await proceed(call)
                    return outcome
                finally:
                    latency = observer.of(contract)
                    elapsed_ms = call.elapsed_ms
                    latency.add(elapsed_ms)
                    if (code := _code(outcome)) is not None:
                        latency.errors[code] = latency.errors.get(code, 0) + 1
                    if call.grant is not None and not call.grant.granted:
                        observer.limit(call.caller.id)
                    with contextlib.suppress(Exception):  # telling must not cost the caller its answer
                        observer.emit(_event(call, outcome, elapsed_ms))

        return observed

    return wrap


def _code(outcome: Answer | RpcFailure | None) -> str | None:
    if outcome is None:
        return "cancelled"
    if isinstance(outcome, RpcFailure):
        return outcome.code or str(outcome.number)
    return outcome.code if outcome.is_error else None


def _event(call: Call, outcome: Answer | RpcFailure | None, elapsed_ms: float) -> dict[str, Any]:
    """Field names as the Pyth spec has them; tools add to it by `call.notes`."""
    code = _code(outcome)
    event: dict[str, Any] = {
        "request_id": call.request_id,
        "session_id": call.session_id,
        "transport": call.transport,
        "tool_name": call.contract.name,
        "mcp_method": call.method,
        "caller": call.caller.id,
        "request_size_bytes": call.request_bytes,
        "has_token": call.upstream_token is not None,
        "token_hash": sha256(call.upstream_token.encode()).hexdigest()[:8] if call.upstream_token else "",
        "status": "success" if code is None else "error",
        "response_size_bytes": len(outcome.encoded) if isinstance(outcome, Answer) else 0,
        "latency_ms": round(elapsed_ms, 3),
        "cached": call.cached,
    }
    if code is not None:
        event |= {"error_type": _kind(outcome), "error_code": code, "error_message": _message(outcome)}
    if call.correlation_id:
        event["correlation_id"] = call.correlation_id
    if call.user_agent:
        event["user_agent"] = call.user_agent
    if call.peer:
        event["client_ip_hash"] = sha256(call.peer.encode()).hexdigest()[:8]
    if call.replayed:
        event["replayed"] = True
    return event | call.notes


def _kind(outcome: Answer | RpcFailure | None) -> str:
    status = 499 if outcome is None else outcome.status
    if status in (401, 403):
        return "auth"
    if status == 404:
        return "not_found"
    if status in (408, 504):
        return "timeout"
    return "invalid_input" if status < 500 else "upstream"


def _message(outcome: Answer | RpcFailure | None) -> str:
    if outcome is None:
        return "cancelled by the caller"
    if isinstance(outcome, RpcFailure):
        return outcome.message
    return (outcome.text or outcome.encoded.decode())[:300]


def _span(call: Call) -> Any:
    """An OpenTelemetry span, where somebody has installed a tracer; costs nothing elsewhere."""
    if "opentelemetry.sdk.trace" not in sys.modules:
        return contextlib.nullcontext()
    from opentelemetry import trace  # noqa: PLC0415 - only with a tracer installed

    named = {"mcp.tool.name": call.contract.name, "mcp.transport": call.transport}
    return trace.get_tracer("quantdeck").start_as_current_span(
        f"tools/call {call.contract.name}", attributes=named
    )
