"""list_backtest_runs: which runs there are; without it nobody could know a runId."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field, WithJsonSchema

from quantdeck.core.call import Caller
from quantdeck.core.clock import Now
from quantdeck.dialects.backtest_events import DATABASE_ERROR, RESULT_TOO_LARGE, backtest_events
from quantdeck.domain.event_times import text
from quantdeck.servers.backtest_events.arguments import PageIndex, PageSize, allowed_runs, slice_of
from quantdeck.servers.backtest_events.results import GuidText, MomentOrNull, Stopwatch, check_size, object_or_text
from quantdeck.sources.events import Events, Run, Slice


@dataclass(frozen=True, slots=True)
class BacktestRun:
    id: GuidText
    strategy: str | None
    parameters: Annotated[dict[str, Any] | None, WithJsonSchema({"type": ["object", "null"]})]
    startTime: MomentOrNull
    endTime: MomentOrNull
    strategyConfigHash: Annotated[str, Field(description="Equal for equal strategies with equal parameters")]
    createdAt: MomentOrNull
    status: Annotated[
        Literal["open", "complete", "failed"] | None,
        WithJsonSchema(
            {
                "type": ["string", "null"],
                "enum": ["open", "complete", "failed", None],
                "description": "open: still written, or its writer was killed; null: the log does not say",
            }
        ),
    ]
    eventCount: int


@dataclass(frozen=True, slots=True)
class RunsMetadata:
    returnedCount: int
    pageIndex: int
    pageSize: int
    hasMore: bool
    queryTimeMs: int


@dataclass(frozen=True, slots=True)
class RunList:
    runs: list[BacktestRun]
    totalCount: int
    metadata: RunsMetadata


@backtest_events.tool(errors=(RESULT_TOO_LARGE, DATABASE_ERROR))
async def list_backtest_runs(
    events: Events,
    caller: Caller,
    now: Now,
    page_size: Annotated[PageSize, Field(description="Number of runs per page")] = 50,
    page_index: PageIndex = 0,
) -> RunList:
    """List the backtest runs of the event log, newest first, with strategy, parameters, time range and status."""
    watch, page = Stopwatch(), slice_of(page_index, page_size)
    found, total = await _found(events, allowed_runs(caller), page, now)
    metadata = RunsMetadata(len(found), page_index, page_size, page.offset + len(found) < total, watch.ms)
    answer = RunList([wire_run(run) for run in found], total, metadata)
    check_size(answer, events.reply_bytes, "ask with a smaller pageSize")
    return answer


async def _found(events: Events, allowed: frozenset[str] | None, page: Slice, now: Now) -> tuple[list[Run], int]:
    if allowed is None:
        return await events.runs(page, as_of=now)
    known = [run for run_id in allowed if (run := await events.run(run_id, as_of=now)) is not None]
    known.sort(key=lambda run: (run.created, run.run_id), reverse=True)
    return known[page.offset : page.offset + page.limit], len(known)


def wire_run(run: Run) -> BacktestRun:
    return BacktestRun(
        id=run.run_id,
        strategy=run.strategy,
        parameters=None if run.parameters is None else object_or_text(run.parameters),
        startTime=None if run.started is None else text(run.started),
        endTime=None if run.ended is None else text(run.ended),
        strategyConfigHash=run.config_hash,
        createdAt=text(run.created),
        status=run.status,
        eventCount=run.events,
    )
