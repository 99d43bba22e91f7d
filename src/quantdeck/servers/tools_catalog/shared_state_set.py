"""storage.shared_state.set: leave a value for whoever shares the correlation id."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from quantdeck.core.clock import Now
from quantdeck.core.wire import encode
from quantdeck.dialects.catalog import INVALID_ARGS, QUOTA_EXCEEDED, catalog
from quantdeck.servers.tools_catalog.state_arguments import CorrId, Key
from quantdeck.sources.shared_state import QuotaExceeded, SharedState

MAX_VALUE_BYTES = 2**20


@dataclass(frozen=True, slots=True)
class Stored:
    stored: Annotated[bool, Field(description="Whether the value was stored successfully")]
    expires_at: Annotated[datetime, Field(description="When the stored value will expire")]
    size_bytes: Annotated[int, Field(description="Size of stored value in bytes")]


@catalog.tool(
    "storage.shared_state.set", deadline_ms=100, p95_ms=30, per_minute=500, effect=True, errors=(QUOTA_EXCEEDED,)
)
async def shared_state_set(
    state: SharedState,
    now: Now,
    corr_id: CorrId,
    key: Key,
    value: Annotated[Any, Field(description="Value to store (any valid JSON, max 1MB)")],
    ttl_seconds: Annotated[int, Field(ge=1, le=86_400, description="Time-to-live in seconds (max 24 hours)")] = 300,
) -> Stored:
    """Store shared state data with TTL."""
    data = encode(value)
    if len(data) > MAX_VALUE_BYTES:
        raise INVALID_ARGS(
            f"Invalid arguments: value is {len(data)} bytes of JSON, and at most {MAX_VALUE_BYTES} are stored; shorten "
            "it, or keep its parts under keys of their own",
            size_bytes=len(data),
            max_bytes=MAX_VALUE_BYTES,
        )
    try:
        expires_at = await state.set(corr_id, key, data, ttl_s=ttl_seconds, at=now)
    except QuotaExceeded as full:
        raise QUOTA_EXCEEDED(
            f"Storage quota exceeded: {corr_id} has {full.used} of {full.most} {full.what}; wait for some of it to "
            "expire, or use another corr_id",
            quota=full.what,
            used=full.used,
            max=full.most,
        ) from None
    return Stored(stored=True, expires_at=expires_at, size_bytes=len(data))
