"""get_events_by_type: events of one kind, in a range of simulated time."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from quantdeck.core.call import Caller
from quantdeck.core.clock import Now
from quantdeck.dialects.backtest_events import (
    DATABASE_ERROR,
    INVALID_TIME_RANGE,
    QUERY_TIMEOUT,
    RESULT_TOO_LARGE,
    RUN_NOT_FOUND,
    backtest_events,
)
from quantdeck.domain.event_types import Category, EventType, Severity, within
from quantdeck.servers.backtest_events.arguments import (
    EndTime,
    PageIndex,
    PageSize,
    RunId,
    StartTime,
    known_run,
    slice_of,
    span_of,
)
from quantdeck.servers.backtest_events.results import EventQueryResult, Stopwatch, event_page
from quantdeck.sources.events import Events, Found


@backtest_events.tool(errors=(RUN_NOT_FOUND, INVALID_TIME_RANGE, QUERY_TIMEOUT, RESULT_TOO_LARGE, DATABASE_ERROR))
async def get_events_by_type(
    events: Events,
    caller: Caller,
    now: Now,
    run_id: RunId,
    event_type: Annotated[EventType, Field(description="Type of events to retrieve")],
    start_time: StartTime = None,
    end_time: EndTime = None,
    severity: Annotated[Severity | None, Field(description="Filter by severity level")] = None,
    category: Annotated[
        Category | None,
        Field(description="Filter by category; MarketData has Data in it, Indicators Analysis, Performance Portfolio"),
    ] = None,
    page_size: PageSize = 100,
    page_index: PageIndex = 0,
) -> EventQueryResult:
    """Retrieve backtest events of a specific type (e.g., TradeExecution, OrderRejection) within an optional time window. Supports pagination for large result sets."""
    watch, page = Stopwatch(), slice_of(page_index, page_size)
    run = await known_run(events, caller, run_id, now)
    found = await events.of_type(
        run_id,
        event_type,
        span_of(run, now, start_time, end_time),
        page,
        severity=severity,
        categories=() if category is None else within(category),
        as_of=now,
    )
    return event_page(run_id, found or Found([], 0), page, page_index, watch, events.reply_bytes)
