"""Decisions, with everything said that a test does not care about."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from quantdeck.core.clock import Now
from quantdeck.sources.sql.decisions import Decisions

__all__ = ["save"]


async def save(decisions: Decisions, at: datetime, **said: Any) -> str:
    """A decision of an instant, and its id."""
    row = {
        "symbol": "BTC/USD", "action": "BUY", "confidence": 0.5, "opportunity_score": None, "reasoning": "why",
        "tool_calls": {"calls": []}, "caller": "tests", **said,
    }  # fmt: skip
    return await decisions.save(at=at if isinstance(at, Now) else Now.of(at, fixed=True), **row)
