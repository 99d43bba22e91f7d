"""What is kept of an agent's decision: how good its chance was, and what was asked to come to it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, Literal

import orjson

__all__ = ["Limits", "Tier", "TooMuchError", "kept", "spelt", "storable", "tier"]

Tier = Literal["HOT", "GOOD", "NEUTRAL", "LOW"]

_TIERS: tuple[tuple[float, Tier], ...] = ((80, "HOT"), (60, "GOOD"), (40, "NEUTRAL"))
_ESCAPED_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of a decision's grounds is kept."""

    reasoning_chars: int
    calls: int
    result_bytes: int
    calls_bytes: int


class TooMuchError(ValueError):
    """More than is kept. `details` say how much it is and may be."""

    def __init__(self, message: str, **details: int) -> None:
        super().__init__(message)
        self.details = details


def tier(opportunity_score: float | None) -> Tier | None:
    """What a score of 0 to 100 amounts to. No score is no tier; 0 is the lowest."""
    if opportunity_score is None:
        return None
    return next((name for least, name in _TIERS if opportunity_score >= least), "LOW")


def spelt(action: Any) -> Any:
    """An action in capitals; what is no plain text is left as it is, and is no action."""
    return action.upper() if isinstance(action, str) and action.isascii() else action


def kept(calls: Sequence[Any], limits: Limits) -> dict[str, Any]:
    """Tool calls as they are stored: `{calls, tools_called, total_latency_ms}`.

    A result that is too long is replaced by a mark that says how long it was. Tools are named once each, in the order
    in which they were first called.
    """
    if len(calls) > limits.calls:
        raise TooMuchError(
            f"tool_calls has {len(calls)} entries; at most {limits.calls} are kept",
            count=len(calls),
            max_count=limits.calls,
        )
    cut = [_cut(call, limits.result_bytes) for call in calls]
    size = len(orjson.dumps(cut))
    if size > limits.calls_bytes:
        raise TooMuchError(
            f"tool_calls has {size} bytes as JSON, long results left out; at most {limits.calls_bytes} are kept",
            size_bytes=size,
            max_bytes=limits.calls_bytes,
        )
    tools = [named for call in calls if (named := _tool(call))]
    total = sum(map(_latency_ms, calls))
    return {
        "calls": cut,
        "tools_called": list(dict.fromkeys(tools)),
        "total_latency_ms": total if isfinite(total) else None,
    }


def storable(value: Any) -> bool:
    """Whether no text in it has a NUL character, which no database of ours takes."""
    return _ESCAPED_NUL.search(orjson.dumps(value)) is None


def _cut(call: Any, most: int) -> Any:
    if not isinstance(call, Mapping) or "result" not in call:
        return call
    size = len(orjson.dumps(call["result"]))
    return {**call, "result": {"truncated": True, "size_bytes": size}} if size > most else call


def _tool(call: Any) -> str | None:
    named = (call.get("tool") or call.get("name")) if isinstance(call, Mapping) else None
    return named if isinstance(named, str) else None


def _latency_ms(call: Any) -> float:
    took = call.get("latency_ms") if isinstance(call, Mapping) else None
    return took if isinstance(took, int | float) and not isinstance(took, bool) and took > 0 else 0.0
