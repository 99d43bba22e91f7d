"""storage.shared_state.get: what was left under a correlation id and key."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, NotRequired

import orjson
from pydantic import Field
from typing_extensions import TypedDict

from quantdeck.core.clock import Now
from quantdeck.dialects.catalog import catalog
from quantdeck.servers.tools_catalog.state_arguments import CorrId, Key
from quantdeck.sources.shared_state import SharedState

# Comments, for a docstring would be the schema's description, and the spec has none.


# Of one entry; `ttl_seconds` is what it has left.
class Metadata(TypedDict):
    created_at: datetime
    updated_at: datetime
    ttl_seconds: Annotated[int, Field(ge=-1)]
    access_count: Annotated[int, Field(ge=0)]


# Without a value where there is none: null is a value too.
class Found(TypedDict):
    exists: Annotated[bool, Field(description="Whether the key exists")]
    value: NotRequired[Annotated[Any, Field(description="Stored value (any valid JSON)")]]
    metadata: NotRequired[Metadata]


@catalog.tool("storage.shared_state.get", deadline_ms=50, p95_ms=20, per_minute=1000)
async def shared_state_get(state: SharedState, now: Now, corr_id: CorrId, key: Key) -> Found:
    """Retrieve shared state data by correlation ID and key."""
    entry = await state.get(corr_id, key, as_of=now)
    if entry is None:
        return {"exists": False}
    return {
        "exists": True,
        "value": orjson.Fragment(entry.value),
        "metadata": {
            "created_at": entry.created_at,
            "updated_at": entry.updated_at,
            "ttl_seconds": entry.ttl_s,
            "access_count": entry.access_count,
        },
    }
