"""The demo world's two backtests: what is planted in them is there, and the tutorial's answers are right."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pytest

from quantdeck.app import open_app
from quantdeck.core.clock import Now
from quantdeck.core.wire import Answer
from quantdeck.demo import make
from quantdeck.demo.runs import run_id, write_runs
from quantdeck.demo.world import World
from quantdeck.servers import load
from quantdeck.settings import Settings
from quantdeck.sources.events.embedded import EventFile

TUTORIAL = (Path(__file__).parents[1] / "docs" / "tutorial.md").read_text()
A, B = run_id(World(7), 0), run_id(World(7), 1)
PATTERN = ["OrderPlaced", "TradeExecution", "PositionUpdate"]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo")


@pytest.fixture
async def ask(home):
    """Call a tool in the tutorial's world, at the tutorial's clock or another."""
    if not (home / "demo.json").exists():
        await make(Settings(home=home, clock="2026-06-01T12:00:00Z"), seed=7, days=1)

    async def asked(tool: str, clock: str = "2026-06-01T12:00:00Z", **arguments: Any) -> Any:
        async with open_app(Settings(home=home, clock=clock), (load("backtest-events"),)) as app:
            contract = app.tool(tool)
            assert contract is not None
            answer = await app.call(contract, arguments)
            assert isinstance(answer, Answer)
            assert answer.is_error or answer.meta["quantdeck/source"] == "demo"
            return orjson.loads(answer.encoded)

    return asked


def row(beginning: str) -> list[str]:
    """The cells of a row of the tutorial's table, without its first."""
    (found,) = [line for line in TUTORIAL.splitlines() if line.startswith(f"| {beginning}")]
    return [cell.strip() for cell in found.split("|")[2:-1]]


async def test_the_tutorial_names_the_two_runs_and_what_tells_them_apart(ask):
    assert f"A={A} B={B}" in TUTORIAL
    runs = {run["id"]: run for run in (await ask("list_backtest_runs"))["runs"]}
    assert runs.keys() == {A, B}
    told = [f"`fast` {runs[one]['parameters']['fast']}, `slow` 48, {runs[one]['eventCount']} events" for one in (A, B)]
    assert row("`list_backtest_runs`")[:2] == told
    assert runs[A]["parameters"]["slow"] == runs[B]["parameters"]["slow"] == 48
    assert {run["strategy"] for run in runs.values()} == {"SMA_CROSS"}
    assert {run["status"] for run in runs.values()} <= {"open", "complete"}


@pytest.mark.parametrize("run, cell", [(A, 0), (B, 1)])
async def test_the_tutorials_answers_are_right(ask, run, cell):
    asked = {"runId": run, "eventType": "TradeExecution", "propertyPath": "$.RealizedPnL", "aggregations": ["sum"]}
    sums = await ask("aggregate_metrics", **asked)
    earned = row("sum of")[cell]
    assert earned.startswith(f"{sums['aggregations']['sum']} over {sums['metadata']['totalEvents']} events")
    assert (f"{sums['metadata']['valueCount']} with a number" in earned) is (run == A)
    found = await ask("query_event_sequence", runId=run, sequencePattern=PATTERN, findIncomplete=True)
    (sequence,) = found["sequences"]
    assert f"`{sequence['events'][0]['properties']['OrderId']}`" in row("sequences of")[cell]
    rejected = (await ask("get_events_by_type", runId=run, eventType="OrderRejection"))["events"]
    said = [
        f"one at {one['timestamp'].replace('.000Z', 'Z')}, {one['properties']['RejectionReason']}" for one in rejected
    ]
    assert row("events of type OrderRejection")[cell] == ("".join(said) or "none")
    wrong = [
        (await ask("get_validation_errors", runId=run, **more))["metadata"]["totalCount"]
        for more in ({}, {"severityFilter": "Error"})
    ]
    assert row("`get_validation_errors`")[cell].startswith(
        f"{wrong[0]}, of which {wrong[1]} have an Error" if wrong[0] else "none"
    )
    orders = (await ask("get_state_snapshot", runId=run, timestamp="2025-03-30T23:00:00Z"))["state"]["activeOrders"]
    said = [f"one: {order['direction']} {order['quantity']} at {order['price']}" for order in orders]
    assert row("active orders")[cell] == ("".join(said) or "none")


@pytest.mark.parametrize(
    "clock, known",
    [("2025-04-02T08:59:59Z", []), ("2025-04-02T09:30:00Z", [A]), ("2025-04-02T10:00:00Z", [B, A])],
)
async def test_each_run_is_there_from_when_it_became_known(ask, clock, known):
    assert [run["id"] for run in (await ask("list_backtest_runs", clock))["runs"]] == known
    assert clock.startswith("2025-04-02")
    assert re.search(r"became known on 2025-04-02, A at 9 and B at 10", TUTORIAL)


@pytest.mark.parametrize("seed", [0, 1, 8, 2**62])
async def test_the_faults_are_planted_in_every_world_and_the_same_seed_is_the_same_world(tmp_path, seed):
    told = []
    for name in ("one", "two"):
        write_runs(tmp_path / name, World(seed))
        source = EventFile(tmp_path / name)
        told.append([await written(source, run_id(World(seed), number)) for number in range(2)])
        await source.close()
    assert told[0] == told[1]
    first, second = told[0]
    assert sum(event.errors is not None for event in first) == 3
    assert sum(event.kind == "OrderRejection" for event in second) == 1
    assert sum(event.errors is not None for event in second) == 0


async def written(source, run):
    return await source.written(run, 0, 10_000, as_of=Now.of(datetime(2026, 1, 1, tzinfo=UTC), fixed=True))
