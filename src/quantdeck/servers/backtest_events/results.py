"""What the tools answer, in the spec's spelling, and never larger than an answer may be."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Annotated, Any

import orjson
from pydantic import Field, WithJsonSchema

from quantdeck.core.wire import encode
from quantdeck.dialects.backtest_events import RESULT_TOO_LARGE
from quantdeck.domain.event_times import text
from quantdeck.domain.event_types import Category, EventType, Severity
from quantdeck.sources.events import Event as Stored
from quantdeck.sources.events import Found, Slice

__all__ = [
    "Event",
    "EventQueryResult",
    "GuidText",
    "Moment",
    "MomentOrNull",
    "PageMetadata",
    "Stopwatch",
    "check_size",
    "event_page",
    "fitting",
    "wire_events",
]

_ENVELOPE_BYTES = 1024
"""Kept free for what stands around the items of an answer."""

Moment = Annotated[str, WithJsonSchema({"type": "string", "format": "date-time"})]
MomentOrNull = Annotated[str | None, WithJsonSchema({"type": ["string", "null"], "format": "date-time"})]
GuidText = Annotated[str, WithJsonSchema({"type": "string", "format": "uuid"})]
GuidOrNull = Annotated[str | None, WithJsonSchema({"type": ["string", "null"], "format": "uuid"})]
Problems = Annotated[
    list[dict[str, str]] | None,
    WithJsonSchema(
        {
            "type": ["array", "null"],
            "items": {
                "type": "object",
                "properties": {name: {"type": "string"} for name in ("Field", "Error", "Severity")},
            },
        }
    ),
]


@dataclass(frozen=True, slots=True)
class Event:
    """One event of the log."""

    eventId: GuidText
    runId: GuidText
    timestamp: Moment
    eventType: EventType
    severity: Severity
    category: Category
    properties: dict[str, Any]
    parentEventId: GuidOrNull
    validationErrors: Problems


@dataclass(frozen=True, slots=True)
class PageMetadata:
    """Where a page of events stands."""

    totalCount: int
    returnedCount: int
    pageIndex: int
    pageSize: int
    hasMore: bool
    queryTimeMs: int
    truncated: Annotated[bool, Field(description="The page was cut to the size limit; ask with a smaller pageSize")]


@dataclass(frozen=True, slots=True)
class EventQueryResult:
    events: list[Event]
    metadata: PageMetadata


class Stopwatch:
    """How long a question took, for `queryTimeMs`."""

    def __init__(self) -> None:
        self._begun = perf_counter()

    @property
    def ms(self) -> int:
        return round((perf_counter() - self._begun) * 1000)


def event_page(
    run_id: str, found: Found, page: Slice, page_index: int, watch: Stopwatch, most: int
) -> EventQueryResult:
    """A page of the contract's shape, with as many of its events as fit."""
    encoded = wire_events(run_id, found.events)
    kept = fitting(encoded, most, "event")
    return EventQueryResult(
        kept,
        PageMetadata(
            totalCount=found.total,
            returnedCount=len(kept),
            pageIndex=page_index,
            pageSize=page.limit,
            hasMore=page.offset + len(kept) < found.total,
            queryTimeMs=watch.ms,
            truncated=len(kept) < len(encoded),
        ),
    )


def wire_events(run_id: str, events: Iterable[Stored]) -> list[bytes]:
    """Each as JSON already: what is stored is passed on as it was written, to the last digit."""
    return [
        encode(
            {
                "eventId": event.event_id,
                "runId": run_id,
                "timestamp": text(event.at),
                "eventType": event.kind,
                "severity": event.severity,
                "category": event.category,
                "properties": _object(event.properties),
                "parentEventId": event.parent,
                "validationErrors": None if event.errors is None else _list(event.errors),
            }
        )
        for event in events
    ]


def fitting(encoded: Sequence[bytes], most: int, item: str) -> list[Any]:
    """As many from the first on as an answer has room for; RESULT_TOO_LARGE where that is none at all."""
    room, kept = max(most - _ENVELOPE_BYTES, 0), list[Any]()
    for one in encoded:
        room -= len(one) + 1
        if room < 0:
            break
        kept.append(orjson.Fragment(one))
    if encoded and not kept:
        size = len(encoded[0])
        raise RESULT_TOO_LARGE(
            f"The first {item} alone has {size:,} bytes, and an answer may have {most:,}", bytes=size, limit=most
        )
    return kept


def check_size(answer: Any, most: int, advice: str) -> None:
    """Refuse an answer that cannot be cut."""
    if (size := len(encode(answer))) > most:
        raise RESULT_TOO_LARGE(
            f"The answer has {size:,} bytes, and may have {most:,}; {advice}", bytes=size, limit=most
        )


def _object(stored: str) -> Any:
    """As it is stored, unless it would break the wire: other programs' files hold what they like."""
    try:
        read = orjson.loads(stored)
    except orjson.JSONDecodeError:
        return {"_raw": stored}
    if not isinstance(read, dict):
        return {"_raw": stored}
    return read if "\n" in stored or "\r" in stored else orjson.Fragment(stored)


def _list(stored: str) -> Any:
    try:
        read = orjson.loads(stored)
    except orjson.JSONDecodeError:
        read = stored
    return [
        entry if isinstance(entry, dict) else _problem(entry) for entry in (read if isinstance(read, list) else [read])
    ]


def _problem(entry: Any) -> dict[str, str]:
    return {"Field": "", "Error": entry if isinstance(entry, str) else encode(entry).decode(), "Severity": "Error"}
