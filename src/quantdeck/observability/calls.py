"""What is told of each call: one flat event, counted by `metrics` and written down by `logs`; and a span."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from quantdeck.core.call import Call
from quantdeck.core.wire import Answer, RpcFailure, digest

__all__ = ["Event", "event_of", "span", "to"]

Event = dict[str, Any]

_KINDS = {401: "auth", 403: "auth", 404: "not_found", 408: "timeout", 499: "timeout", 504: "timeout"}


def to(*listeners: Callable[[Event], None]) -> Callable[[Call, Answer | RpcFailure], None]:
    """What an observer tells: each of these is given the event of each call."""

    def tell(call: Call, outcome: Answer | RpcFailure) -> None:
        event = event_of(call, outcome)
        for listener in listeners:
            listener(event)

    return tell


def event_of(call: Call, outcome: Answer | RpcFailure) -> Event:
    """Field names as the Pyth spec has them; tools and stages add to it by `call.notes`."""
    event: Event = {
        "request_id": call.request_id,
        "session_id": call.session_id,
        "transport": call.transport,
        "tool_name": call.contract.name,
        "mcp_method": call.method,
        "caller": _hashed(call.peer) if call.peer == call.caller.id else call.caller.id,
        "request_size_bytes": call.request_bytes,
        "has_token": call.upstream_token is not None,
        "token_hash": digest(call.upstream_token)[:8] if call.upstream_token else "",
        "status": "success",
        "response_size_bytes": len(outcome.encoded) if isinstance(outcome, Answer) else 0,
        "latency_ms": round(call.elapsed_ms, 3),
        "cached": call.cached,
    }
    if isinstance(outcome, RpcFailure):
        event |= _failure(call, outcome.status, outcome.code or str(outcome.number), outcome.message)
    elif outcome.is_error and outcome.code is not None:
        event |= _failure(call, outcome.status, outcome.code, _sentence(outcome))
    if call.correlation_id:
        event["correlation_id"] = call.correlation_id
    if call.user_agent:
        event["user_agent"] = call.user_agent
    if call.peer:
        event["client_ip_hash"] = _hashed(call.peer)
    if call.replayed:
        event["replayed"] = True
    return event | call.notes


def _hashed(peer: str) -> str:
    """An address as the log has it, also where it is all that is known of a caller."""
    return digest(peer)[:8]


def _failure(call: Call, status: int, code: str, message: str) -> Event:
    is_theirs = status >= 500 or (status == 429 and "failed_source" in call.notes)
    kind = _KINDS.get(status) or ("upstream" if is_theirs else "invalid_input")
    return {"status": "error", "error_type": kind, "error_code": code, "error_message": message}


def _sentence(answer: Answer) -> str:
    """What went wrong, without the envelope: every spec has it as `message`, in `error` or at the top."""
    body = answer.body if isinstance(answer.body, dict) else {}
    told = body["error"] if isinstance(body.get("error"), dict) else body
    return str(answer.text or told.get("message") or answer.encoded.decode())[:300]


def span(call: Call) -> AbstractContextManager[Any]:
    """An OpenTelemetry span, where somebody has installed a tracer; costs nothing elsewhere."""
    if "opentelemetry.sdk.trace" not in sys.modules:
        return nullcontext()
    from opentelemetry import trace

    named = {"mcp.tool.name": call.contract.name, "mcp.transport": call.transport}
    tracer = trace.get_tracer("quantdeck")
    return tracer.start_as_current_span(f"tools/call {call.contract.name}", attributes=named)
