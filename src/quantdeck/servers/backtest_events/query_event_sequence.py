"""query_event_sequence: chains of events, and what one of them lacks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field, WithJsonSchema

from quantdeck.core.call import Caller
from quantdeck.core.clock import Now
from quantdeck.core.wire import encode
from quantdeck.dialects.backtest_events import (
    DATABASE_ERROR,
    EVENT_NOT_FOUND,
    INVALID_PARAMETER,
    QUERY_TIMEOUT,
    RESULT_TOO_LARGE,
    RUN_NOT_FOUND,
    backtest_events,
)
from quantdeck.domain.event_chains import PLACED
from quantdeck.domain.event_types import EventType
from quantdeck.servers.backtest_events.arguments import (
    ENUM_OF_TYPES,
    EventId,
    PageIndex,
    RunId,
    known_run,
    slice_of,
)
from quantdeck.servers.backtest_events.results import Event, GuidText, Stopwatch, fitting, wire_events
from quantdeck.sources.events import Chain, Events

Word = Annotated[
    Literal[
        "TradeExecution", "OrderRejection", "IndicatorCalculation", "PositionUpdate", "StateChange",
        "MarketDataEvent", "RiskEvent", "OrderPlaced",
    ],
    WithJsonSchema(ENUM_OF_TYPES),
]  # fmt: skip
"""A type; or OrderPlaced, which the spec's own example has and its list has not."""


@dataclass(frozen=True, slots=True)
class Sequence:
    rootEventId: GuidText
    events: list[Event]
    complete: bool
    missingEventTypes: Annotated[
        list[EventType] | None, WithJsonSchema({"type": ["array", "null"], "items": ENUM_OF_TYPES})
    ]


@dataclass(frozen=True, slots=True)
class SequenceMetadata:
    totalSequences: int
    returnedCount: int
    pageIndex: int
    pageSize: int
    hasMore: bool
    queryTimeMs: int
    truncated: Annotated[bool, Field(description="The page was cut to the size limit; ask with a smaller pageSize")]


@dataclass(frozen=True, slots=True)
class EventSequenceResult:
    sequences: list[Sequence]
    metadata: SequenceMetadata


@backtest_events.tool(
    errors=(RUN_NOT_FOUND, EVENT_NOT_FOUND, INVALID_PARAMETER, QUERY_TIMEOUT, RESULT_TOO_LARGE, DATABASE_ERROR)
)
async def query_event_sequence(
    events: Events,
    caller: Caller,
    now: Now,
    run_id: RunId,
    root_event_id: EventId = None,
    sequence_pattern: Annotated[
        list[Word] | None,
        Field(
            max_length=100,
            description="Expected event type sequence to match (e.g., ['OrderPlaced', 'TradeExecution', 'PositionUpdate'])",
        ),
    ] = None,
    find_incomplete: Annotated[
        bool, Field(description="Find sequences missing expected events (e.g., order without execution)")
    ] = False,
    max_depth: Annotated[int, Field(ge=1, le=50, description="Maximum depth of event chain to traverse")] = 10,
    page_size: Annotated[int, Field(ge=1, le=100, description="Number of sequences per page")] = 50,
    page_index: PageIndex = 0,
) -> EventSequenceResult:
    """Query event chains by following ParentEventId relationships. Useful for debugging trading logic failures and identifying missing events."""
    watch, page, pattern = Stopwatch(), slice_of(page_index, page_size), sequence_pattern or []
    if find_incomplete and not pattern:
        raise INVALID_PARAMETER("findIncomplete needs a sequencePattern: without one nothing is missing")
    await known_run(events, caller, run_id, now)
    if root_event_id is None:
        found, total = await events.chains(run_id, pattern, max_depth, page, incomplete=find_incomplete, as_of=now) or (
            [],
            0,
        )
    else:
        chain = await events.chain(run_id, root_event_id, pattern, max_depth, as_of=now)
        if chain is None:
            raise EVENT_NOT_FOUND(f"Event {root_event_id} not found in this run", rootEventId=root_event_id)
        found, total = [chain][page.offset : page.offset + page.limit], 1
    encoded = [encode(_wire(run_id, chain)) for chain in found]
    kept = fitting(encoded, events.reply_bytes, "sequence")
    return EventSequenceResult(
        kept,
        SequenceMetadata(
            totalSequences=total,
            returnedCount=len(kept),
            pageIndex=page_index,
            pageSize=page_size,
            hasMore=page.offset + len(kept) < total,
            queryTimeMs=watch.ms,
            truncated=len(kept) < len(encoded),
        ),
    )


def _wire(run_id: str, chain: Chain) -> dict[str, Any]:
    """As a Sequence; its events are JSON already."""
    return {
        "rootEventId": chain.root,
        "events": fitting(wire_events(run_id, chain.events), 2**40, "event"),
        "complete": not chain.missing,
        "missingEventTypes": ["StateChange" if word == PLACED else word for word in chain.missing] or None,
    }
