"""get_validation_errors: events that were malformed when they were written."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from quantdeck.core.call import Caller
from quantdeck.core.clock import Now
from quantdeck.dialects.backtest_events import (
    DATABASE_ERROR,
    QUERY_TIMEOUT,
    RESULT_TOO_LARGE,
    RUN_NOT_FOUND,
    backtest_events,
)
from quantdeck.servers.backtest_events.arguments import PageIndex, PageSize, RunId, known_run, slice_of
from quantdeck.servers.backtest_events.results import EventQueryResult, Stopwatch, event_page
from quantdeck.sources.events import Events, Found


@backtest_events.tool(errors=(RUN_NOT_FOUND, QUERY_TIMEOUT, RESULT_TOO_LARGE, DATABASE_ERROR))
async def get_validation_errors(
    events: Events,
    caller: Caller,
    now: Now,
    run_id: RunId,
    severity_filter: Annotated[
        Literal["Error", "Warning"] | None, Field(description="Filter by error severity")
    ] = None,
    page_size: PageSize = 100,
    page_index: PageIndex = 0,
) -> EventQueryResult:
    """Retrieve events that failed validation during write operations. Useful for debugging data pipeline issues and identifying malformed events."""
    watch, page = Stopwatch(), slice_of(page_index, page_size)
    await known_run(events, caller, run_id, now)
    found = await events.invalid(run_id, severity_filter, page, as_of=now)
    return event_page(run_id, found or Found([], 0), page, page_index, watch, events.reply_bytes)
