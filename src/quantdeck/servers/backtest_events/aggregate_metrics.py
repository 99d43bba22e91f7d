"""aggregate_metrics: figures over the events of a type, without the events."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field, WithJsonSchema

from quantdeck.core.call import Caller
from quantdeck.core.clock import Now
from quantdeck.dialects.backtest_events import (
    DATABASE_ERROR,
    INVALID_JSON_PATH,
    INVALID_TIME_RANGE,
    QUERY_TIMEOUT,
    RUN_NOT_FOUND,
    backtest_events,
)
from quantdeck.domain.event_types import EventType
from quantdeck.servers.backtest_events.arguments import EndTime, RunId, StartTime, known_run, span_of
from quantdeck.servers.backtest_events.results import Stopwatch
from quantdeck.sources.events import Events, Totals

Aggregation = Literal["count", "sum", "avg", "min", "max", "stddev"]

DEFAULT: list[Aggregation] = ["count", "avg"]

_PATTERN = r"^\$\.[a-zA-Z0-9_\.]+$"
_PATH = re.compile(r"\$(?:\.[a-zA-Z0-9_]+)+")
_LONGEST_PATH = 500


@dataclass(frozen=True, slots=True)
class Aggregations:
    """What was not asked for is null, and so is what has no number to go by."""

    count: Annotated[int, Field(description="Events that match, with or without a number at the path")]
    sum: float | None
    avg: float | None
    min: float | None
    max: float | None
    stddev: Annotated[float | None, WithJsonSchema({"type": ["number", "null"], "description": "Of the population"})]


@dataclass(frozen=True, slots=True)
class AggregationMetadata:
    totalEvents: int
    valueCount: Annotated[int, Field(description="Events with a number at the path; the figures are of these")]
    queryTimeMs: int
    eventType: str
    propertyPath: str


@dataclass(frozen=True, slots=True)
class AggregationResult:
    aggregations: Aggregations
    metadata: AggregationMetadata


@backtest_events.tool(errors=(RUN_NOT_FOUND, INVALID_TIME_RANGE, INVALID_JSON_PATH, QUERY_TIMEOUT, DATABASE_ERROR))
async def aggregate_metrics(
    events: Events,
    caller: Caller,
    now: Now,
    run_id: RunId,
    event_type: Annotated[EventType, Field(description="Type of events to aggregate")],
    property_path: Annotated[
        Annotated[str, WithJsonSchema({"type": "string", "pattern": _PATTERN})],
        Field(description="JSON path to the property to aggregate (e.g., '$.Price', '$.Quantity')"),
    ],
    aggregations: Annotated[list[Aggregation] | None, Field(description="Aggregation functions to compute")] = DEFAULT,
    start_time: StartTime = None,
    end_time: EndTime = None,
) -> AggregationResult:
    """Compute statistical aggregations (count, sum, average, min, max, standard deviation) on numeric properties of events. Token-efficient for high-level analysis."""
    watch = Stopwatch()
    if len(property_path) > _LONGEST_PATH or not _PATH.fullmatch(property_path):
        raise INVALID_JSON_PATH(
            "propertyPath is invalid: it is $ and names of letters, digits and _ with one dot before each, such as "
            "$.Price or $.StateAfter.Realized; lists cannot be entered",
            propertyPath=property_path[:_LONGEST_PATH],
        )
    run = await known_run(events, caller, run_id, now)
    asked = set(aggregations or DEFAULT)
    found = await events.totals(
        run_id,
        event_type,
        property_path,
        span_of(run, now, start_time, end_time),
        deviation="stddev" in asked,
        as_of=now,
    ) or Totals(0, 0, None, None, None, None, None)
    figures: dict[Aggregation, float | None] = {
        "sum": found.sum, "avg": found.mean, "min": found.least, "max": found.most, "stddev": found.deviation,
    }  # fmt: skip
    told = {name: figure if name in asked else None for name, figure in figures.items()}
    return AggregationResult(
        Aggregations(count=found.events, **told),
        AggregationMetadata(found.events, found.values, watch.ms, event_type, property_path),
    )
