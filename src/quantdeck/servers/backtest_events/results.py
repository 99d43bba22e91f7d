"""What the tools answer, in the spec's spelling, and never larger than an answer may be."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Annotated, Any, TypeVar

import orjson
from pydantic import Field, WithJsonSchema

from quantdeck.core.wire import encode
from quantdeck.dialects.backtest_events import RESULT_TOO_LARGE
from quantdeck.domain.event_rules import Problem
from quantdeck.domain.event_times import text
from quantdeck.domain.event_types import (
    CATEGORIES,
    CATEGORY_OF,
    EVENT_TYPES,
    SEVERITIES,
    SEVERITY_OF,
    Category,
    EventType,
    Severity,
)
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
    "object_or_text",
    "wire_events",
]

T = TypeVar("T")

_BREAK = re.compile(r"[\r\n]\s*")
_DEEPEST = 100
"""Levels of stored JSON. A client that gives up reading at two hundred, as the SDK's does, never hears an answer."""
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
    return [encode(_wire(run_id, event)) for event in events]


def _wire(run_id: str, event: Stored) -> dict[str, Any]:
    """Words that the contract does not have are told as the writer would store them, with what is wrong."""
    wrong: list[dict[str, str]] = []
    kind: EventType = _word("EventType", event.kind, EVENT_TYPES, "StateChange", wrong)
    severity = _word("Severity", event.severity, SEVERITIES, SEVERITY_OF[kind], wrong)
    category = _word("Category", event.category, CATEGORIES, CATEGORY_OF[kind], wrong)
    errors = None if event.errors is None else _list(event.errors)
    return {
        "eventId": event.event_id,
        "runId": run_id,
        "timestamp": text(event.at),
        "eventType": kind,
        "severity": severity,
        "category": category,
        "properties": _object(event.properties),
        "parentEventId": event.parent,
        "validationErrors": [*(errors or ()), *wrong] if wrong else errors,
    }


def _word(field: str, said: Any, known: Sequence[T], otherwise: T, wrong: list[dict[str, str]]) -> T:
    if said in known:
        return said  # type: ignore[no-any-return]
    wrong.append(Problem(field, f"Unknown {field.lower()} {str(said)[:100]!r}").entry())
    return otherwise


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
    if not isinstance(read, dict) or _is_deep(stored, read):
        return {"_raw": stored}
    # No line may break on the wire. Where JSON has a break, and spaces after it, they are between its tokens.
    return orjson.Fragment(_BREAK.sub("", stored))


def object_or_text(read: dict[str, Any]) -> dict[str, Any]:
    """An object, as text where it is too deep for clients."""
    return read if _depth_within(read, _DEEPEST) else {"_raw": json.dumps(read, ensure_ascii=False)}


def _is_deep(stored: str, read: Any) -> bool:
    return stored.count("{") + stored.count("[") > _DEEPEST and not _depth_within(read, _DEEPEST)


def _depth_within(read: Any, most: int) -> bool:
    if not isinstance(read, (dict, list)):
        return True
    inner = read.values() if isinstance(read, dict) else read
    return most > 0 and all(_depth_within(one, most - 1) for one in inner)


def _list(stored: str) -> Any:
    try:
        read = orjson.loads(stored)
    except orjson.JSONDecodeError:
        read = stored
    if _is_deep(stored, read):
        read = stored
    return [
        entry if isinstance(entry, dict) else _problem(entry) for entry in (read if isinstance(read, list) else [read])
    ]


def _problem(entry: Any) -> dict[str, str]:
    return {"Field": "", "Error": entry if isinstance(entry, str) else encode(entry).decode(), "Severity": "Error"}
