"""What the tools take, in the spec's words; and the checks that need the run."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import AfterValidator, Field, WithJsonSchema

from quantdeck.core.call import Caller
from quantdeck.core.clock import Now, iso
from quantdeck.core.errors import RejectedValue
from quantdeck.dialects.backtest_events import INVALID_TIME_RANGE, RUN_NOT_FOUND
from quantdeck.domain import event_times
from quantdeck.domain.event_types import EVENT_TYPES
from quantdeck.sources.events import Events, Run, Slice, Span

__all__ = [
    "EndTime",
    "EventId",
    "PageIndex",
    "PageSize",
    "RunId",
    "StartTime",
    "Time",
    "allowed_runs",
    "known_run",
    "slice_of",
    "span_of",
]


def _guid(text: str) -> str:
    try:
        return str(UUID(text))
    except ValueError:
        raise RejectedValue("must be a GUID such as a1b2c3d4-e5f6-7890-abcd-ef1234567890") from None


def _time(text: str) -> str:
    try:
        event_times.micros(event_times.instant(text))
    except ValueError as error:
        raise RejectedValue(str(error)) from None
    return text


Guid = Annotated[str, AfterValidator(_guid), WithJsonSchema({"type": "string", "format": "uuid"})]
Time = Annotated[str, AfterValidator(_time), WithJsonSchema({"type": "string", "format": "date-time"})]

RunId = Annotated[Guid, Field(description="Unique identifier of the backtest run")]
EventId = Annotated[Guid | None, Field(description="Starting event ID for the sequence")]
StartTime = Annotated[Time | None, Field(description="Start of time range (inclusive)")]
EndTime = Annotated[Time | None, Field(description="End of time range (inclusive)")]
PageSize = Annotated[int, Field(ge=1, le=1000, description="Number of events per page")]
PageIndex = Annotated[int, Field(ge=0, description="Zero-based page index")]

ENUM_OF_TYPES: dict[str, Any] = {"type": "string", "enum": list(EVENT_TYPES)}


def slice_of(page_index: int, page_size: int) -> Slice:
    """No page is so far away that it could not be asked for; it is empty."""
    return Slice(min(page_index * page_size, 2**62), page_size)


def allowed_runs(caller: Caller) -> frozenset[str] | None:
    """The runs that a token's scopes name (`run:<id>`), or None where they name none and all are meant."""
    if "*" in caller.scopes:
        return None
    named = frozenset(scope.removeprefix("run:").lower() for scope in caller.scopes if scope.startswith("run:"))
    return named or None


async def known_run(events: Events, caller: Caller, run_id: str, now: Now) -> Run:
    """The run, or RUN_NOT_FOUND, also where the caller may not see it."""
    allowed = allowed_runs(caller)
    run = await events.run(run_id, as_of=now) if allowed is None or run_id in allowed else None
    if run is None:
        raise RUN_NOT_FOUND(f"Run {run_id} not found; list_backtest_runs lists those there are", runId=run_id)
    return run


def span_of(run: Run, now: Now, start_time: str | None, end_time: str | None) -> Span:
    """The asked range, or INVALID_TIME_RANGE where nothing can be in it."""
    start = None if start_time is None else event_times.instant(start_time)
    end = None if end_time is None else event_times.instant(end_time)
    told = {"startTime": start and iso(start), "endTime": end and iso(end)}
    if start is not None and end is not None and start > end:
        raise INVALID_TIME_RANGE("startTime must be before or equal to endTime", **told)
    if start is not None:
        check_not_ahead(run, now, start, "startTime", told)
    ever = Span()
    return Span(
        ever.start if start is None else event_times.micros(start), ever.end if end is None else event_times.micros(end)
    )


def check_not_ahead(run: Run, now: Now, at: datetime, name: str, told: dict[str, Any]) -> None:
    """A time that neither the clock nor the run has reached is no time to ask for."""
    if at > now and (run.ended is None or event_times.micros(at) > run.ended):
        ends = None if run.ended is None else event_times.text(run.ended)
        raise INVALID_TIME_RANGE(f"{name} is in the future, and after the end of the run", **told, runEndTime=ends)
