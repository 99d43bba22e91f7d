"""get_top_specs: the specs whose implementations do best."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from quantdeck.core.clock import Now
from quantdeck.core.errors import ErrorCode, Rejects
from quantdeck.dialects.tradestream import DATABASE_ERROR, Clamp, Offset, Page, tradestream
from quantdeck.sources.sql.specs import Origin, RankedSpec, Specs

INVALID_SOURCE = ErrorCode("INVALID_SOURCE", "Source filter must be CANONICAL, LLM_GENERATED, or ALL", 400)


@tradestream.tool(cache_s=60, revised=True, errors=(INVALID_SOURCE, DATABASE_ERROR))
async def get_top_specs(
    specs: Specs,
    now: Now,
    limit: Annotated[int, Clamp(1, 100), Field(description="Specs per page")] = 10,
    offset: Offset = 0,
    source: Annotated[Origin, Rejects(INVALID_SOURCE), Field(description="Who made them")] = "ALL",
) -> Page[RankedSpec]:
    """Get top performing strategy specs"""
    best, total = await specs.ranked(source, offset=offset, limit=limit, as_of=now)
    return Page.of(best, offset, limit, total)
