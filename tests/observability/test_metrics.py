"""Counts and latencies, from the event of each call."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from pydantic import Field

from quantdeck.core.errors import Unreachable
from quantdeck.dialects.catalog import catalog
from quantdeck.dialects.tradestream import tradestream
from quantdeck.observability.metrics import BOUNDS_MS, MAX_CALLERS, Latency, Metrics
from tests.support.runtime import Desk, Program


@tradestream.tool(errors=(), cache_s=30)
async def rank(desk: Desk, number: Annotated[int, Field(description="A number")] = 0) -> dict[str, Any]:
    """Rank."""
    return {"asked": await desk.ask(), "number": number}


@catalog.tool("rare", deadline_ms=5000, p95_ms=7, per_minute=1)
async def rare(desk: Desk) -> dict[str, Any]:
    """Look, once a minute."""
    return {"asked": await desk.ask()}


async def test_latencies_and_errors_are_counted_by_tool():
    program = Program()
    await program.call(rank)
    await program.call(rank, {"force_refresh": True})
    await program.call(rank, {"x": 1})
    await program.call(rare)
    tools = program.metrics.tools
    assert (tools["rank"].calls, tools["rank"].errors) == (3, {"INVALID_PARAMETER": 1})
    assert (tools["rare"].calls, tools["rare"].errors) == (1, {})
    assert tools["rank"].total_ms > 0


async def test_what_came_too_fast_is_counted_by_caller():
    program = Program()
    for _ in range(3):
        await program.call(rare)
    assert program.metrics.limited == {"alice": 2}


async def test_failures_of_sources_are_counted_by_source():
    program = Program()
    program.desk.failure = Unreachable("gone", source="desk")
    await program.call(rank)
    await program.call(rank, {"number": 1})
    assert program.metrics.backends == {"desk": 2}


def test_callers_beyond_a_number_are_counted_together():
    metrics = Metrics()
    for number in range(MAX_CALLERS + 5):
        metrics.count({"tool_name": "t", "latency_ms": 1.0, "caller": f"c{number}", "rate_limited": True})
    metrics.count({"tool_name": "t", "latency_ms": 1.0, "caller": "c0", "rate_limited": True})
    assert len(metrics.limited) == MAX_CALLERS + 1
    assert (metrics.limited["c0"], metrics.limited["other"]) == (2, 5)


def test_quantiles_are_the_bounds_under_which_a_share_of_calls_stayed():
    latency = Latency()
    assert latency.quantile_ms(0.5) is None
    for elapsed_ms in [3] * 90 + [40] * 9 + [10**6]:
        latency.add(elapsed_ms)
    assert [latency.quantile_ms(share) for share in (0.5, 0.9, 0.95, 0.99, 1.0)] == [5, 5, 50, 50, float("inf")]


@pytest.mark.parametrize("bound", BOUNDS_MS)
def test_a_latency_on_a_bound_belongs_under_it(bound):
    latency = Latency()
    latency.add(bound)
    assert latency.quantile_ms(0.5) == bound
