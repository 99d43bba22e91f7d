"""save_decision: keep what was decided, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from quantdeck.core.call import Call, Caller
from quantdeck.core.clock import Now
from quantdeck.core.errors import ErrorCode, Rejects
from quantdeck.dialects.tradestream import DATABASE_ERROR, INVALID_PARAMETER, INVALID_SYMBOL, Symbol, tradestream
from quantdeck.domain import decisions as domain
from quantdeck.domain.consensus import Action
from quantdeck.domain.decisions import TooMuchError, kept, spelt, storable
from quantdeck.sources.sql.decisions import Decisions

INVALID_ACTION = ErrorCode("INVALID_ACTION", "Action must be BUY, SELL, or HOLD", 400)
INVALID_CONFIDENCE = ErrorCode("INVALID_CONFIDENCE", "Confidence must be between 0 and 1", 400)
REASONING_TOO_LONG = ErrorCode("REASONING_TOO_LONG", "Reasoning exceeds maximum length", 422)


class Limits(domain.Limits):
    """The limits that this program is set to."""

    @classmethod
    def from_call(cls, call: Call) -> Limits:
        return cls(**dict(call.runtime.options["decisions"]))


@dataclass(frozen=True, slots=True)
class Saved:
    decision_id: str
    saved: bool


@tradestream.tool(
    effect=True,
    forgets=("get_recent_decisions",),
    errors=(INVALID_SYMBOL, INVALID_ACTION, INVALID_CONFIDENCE, REASONING_TOO_LONG, DATABASE_ERROR),
)
async def save_decision(
    decisions: Decisions,
    now: Now,
    caller: Caller,
    limits: Limits,
    symbol: Symbol,
    action: Annotated[
        Action, BeforeValidator(spelt), Rejects(INVALID_ACTION), Field(description="What was decided to do")
    ],
    confidence: Annotated[float, Rejects(INVALID_CONFIDENCE), Field(ge=0, le=1, description="How sure, from 0 to 1")],
    reasoning: Annotated[str, Field(description="Why, in words")],
    opportunity_score: Annotated[
        float | None, Field(ge=0, le=100, description="How good the chance is, from 0 to 100")
    ] = None,
    tool_calls: Annotated[
        list[Any] | None,
        Field(description="What was asked on the way: objects with tool, parameters, result, latency_ms"),
    ] = None,
) -> Saved:
    """Save an agent decision to the database"""
    reasoning = reasoning.strip()
    if not reasoning:
        raise INVALID_PARAMETER(
            "Invalid arguments: reasoning is empty; say why it was decided so", argument="reasoning"
        )
    if len(reasoning) > limits.reasoning_chars:
        raise REASONING_TOO_LONG(
            f"Invalid reasoning: it has {len(reasoning)} characters, and at most {limits.reasoning_chars} are kept; "
            "shorten it",
            length=len(reasoning),
            max=limits.reasoning_chars,
        )
    try:
        calls = kept(tool_calls or [], limits)
    except TooMuchError as error:
        raise INVALID_PARAMETER(f"Invalid arguments: {error}", argument="tool_calls", **error.details) from None
    if not storable([reasoning, calls]):
        raise INVALID_PARAMETER(r"Invalid arguments: a text in them has a NUL character (\u0000); leave it out")
    decision_id = await decisions.save(
        symbol=symbol,
        action=action,
        confidence=confidence,
        opportunity_score=opportunity_score,
        reasoning=reasoning,
        tool_calls=calls,
        caller=caller.id,
        at=now,
    )
    return Saved(decision_id, saved=True)
