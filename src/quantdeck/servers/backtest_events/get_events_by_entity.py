"""get_events_by_entity: everything about one order, security, position or indicator."""

from __future__ import annotations

from typing import Annotated

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
from quantdeck.domain.event_types import Entity, EventType
from quantdeck.servers.backtest_events.arguments import PageIndex, PageSize, RunId, known_run, slice_of
from quantdeck.servers.backtest_events.results import EventQueryResult, Stopwatch, event_page
from quantdeck.sources.events import Events, Found


@backtest_events.tool(errors=(RUN_NOT_FOUND, QUERY_TIMEOUT, RESULT_TOO_LARGE, DATABASE_ERROR))
async def get_events_by_entity(
    events: Events,
    caller: Caller,
    now: Now,
    run_id: RunId,
    entity_type: Annotated[Entity, Field(description="Type of entity to query")],
    entity_value: Annotated[str, Field(description="Value of the entity identifier")],
    event_types: Annotated[
        list[EventType] | None, Field(description="Filter by event types (empty = all types)")
    ] = None,
    page_size: PageSize = 100,
    page_index: PageIndex = 0,
) -> EventQueryResult:
    """Retrieve all events associated with a particular entity reference (e.g., all events for a specific order ID or security symbol). Useful for tracing entity lifecycle."""
    watch, page = Stopwatch(), slice_of(page_index, page_size)
    await known_run(events, caller, run_id, now)
    kinds = list(dict.fromkeys(event_types or ()))
    found = await events.of_entity(run_id, entity_type, entity_value, kinds, page, as_of=now)
    return event_page(run_id, found or Found([], 0), page, page_index, watch, events.reply_bytes)
