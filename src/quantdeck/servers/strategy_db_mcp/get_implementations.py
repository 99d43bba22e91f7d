"""get_implementations: a spec's parameters on each symbol, and how they did."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from quantdeck.core.clock import Now
from quantdeck.core.errors import ErrorCode, Rejects
from quantdeck.dialects.tradestream import DATABASE_ERROR, Clamp, Offset, Page, tradestream
from quantdeck.sources.sql.specs import Implementation, Specs, Status

SPEC_NOT_FOUND = ErrorCode("SPEC_NOT_FOUND", "Strategy spec with specified ID does not exist", 404)
INVALID_STATUS = ErrorCode("INVALID_STATUS", "Status filter is not valid", 400)


@tradestream.tool(cache_s=30, revised=True, errors=(SPEC_NOT_FOUND, INVALID_STATUS, DATABASE_ERROR))
async def get_implementations(
    specs: Specs,
    now: Now,
    spec_id: Annotated[str, Field(description="From get_top_specs")],
    status: Annotated[Status, Rejects(INVALID_STATUS), Field(description="How far they have come")] = "VALIDATED",
    limit: Annotated[int, Clamp(1, 100), Field(description="Implementations per page")] = 10,
    offset: Offset = 0,
) -> Page[Implementation]:
    """Get implementations for a strategy spec"""
    found = await specs.implementations(spec_id, status, offset=offset, limit=limit, as_of=now)
    if found is None:
        said = f"Spec {spec_id[:80]!r} not found; get_top_specs lists the ids there are"
        raise SPEC_NOT_FOUND(said, spec_id=spec_id[:80])
    best, total = found
    return Page.of(best, offset, limit, total)
