"""The figures that the spec promises of all its tools, measured as it says: by `queryTimeMs`, and by size."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from quantdeck.app import open_app
from quantdeck.core.wire import Answer
from quantdeck.events import EventLog
from quantdeck.servers import load
from quantdeck.settings import Settings
from tests.support.contracts import contract_of
from tests.support.events import KNOWN, RUN, at
from tests.support.tokens import count

TARGETS = contract_of("backtest_events")["targets"]
SYMBOLS = ("AAPL", "MSFT", "NVDA")
QUESTIONS: dict[str, dict[str, Any]] = {
    "get_events_by_type": {"eventType": "TradeExecution"},
    "get_events_by_entity": {"entityType": "SecuritySymbol", "entityValue": "AAPL"},
    "aggregate_metrics": {
        "eventType": "IndicatorCalculation", "propertyPath": "$.Parameters.Period", "aggregations": ["avg", "stddev"],
    },
    "get_state_snapshot": {"timestamp": at(50).isoformat()},
    "query_event_sequence": {"sequencePattern": ["OrderPlaced", "TradeExecution"], "findIncomplete": True},
    "get_validation_errors": {},
}  # fmt: skip


def write(path: Path, events: int) -> None:
    """More than half indicators, some orders, their executions and positions."""
    random = Random(7)
    with EventLog.open(path) as log, log.run(run_id=RUN, created_at=KNOWN) as run:
        for number in range(events // 5):
            when, symbol = at(number / 60), SYMBOLS[number % 3]
            for period in (10, 20):
                run.indicator(when, symbol, f"SMA_{period}", random.random() * 100, {"Period": period})
            order = run.order(when, symbol, "Buy", 100, random.random() * 100)
            trade = run.trade(when, symbol, "Buy", 100, 5 if number % 50 else None, order_id=order, parent=order)
            run.position(when, symbol, 100, 5, parent=trade)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log of ten thousand events."""
    made = tmp_path_factory.mktemp("targets")
    write(made / "events.db", 10_000)
    return made


@pytest.fixture
async def ask(home):
    async with open_app(Settings(home=home), (load("backtest-events"),)) as app:

        async def asked(tool: str, **arguments: Any) -> Any:
            contract = app.tool(tool)
            assert contract is not None
            answer = await app.call(contract, {"runId": RUN, **QUESTIONS[tool], **arguments})
            assert isinstance(answer, Answer)
            return json.loads(answer.encoded)

        yield asked


@pytest.mark.parametrize("tool", QUESTIONS)
async def test_every_tool_answers_for_ten_thousand_events_within_two_seconds(ask, tool):
    body = await ask(tool)
    assert body["metadata"]["queryTimeMs"] < TARGETS["query_10k_events_s"] * 1000


async def test_an_aggregate_of_a_hundred_thousand_events_takes_less_than_half_a_second(tmp_path):
    write(tmp_path / "events.db", 100_000)
    async with open_app(Settings(home=tmp_path), (load("backtest-events"),)) as app:
        contract = app.tool("aggregate_metrics")
        assert contract is not None
        answer = await app.call(contract, {"runId": RUN, **QUESTIONS["aggregate_metrics"]})
    assert isinstance(answer, Answer)
    body = json.loads(answer.encoded)
    assert body["aggregations"]["avg"] == 15
    assert body["metadata"]["queryTimeMs"] < TARGETS["aggregate_100k_events_ms"]


@pytest.mark.parametrize("tool", QUESTIONS)
async def test_an_answer_has_at_most_three_tenths_of_the_tokens_of_the_rows_it_stands_for(ask, home, tool):
    """Against what an agent would have to read without the tool: the whole run. A tenth of it is enough to see."""
    rows = json.dumps((await ask("get_events_by_entity", pageSize=1000))["events"])
    answer = json.dumps(await ask(tool))
    (read, _), (whole, _) = count([answer]), count([rows])
    assert read <= (1 - TARGETS["token_reduction_vs_jsonl"]) * whole


async def test_a_hundred_questions_at_once_are_all_answered(ask):
    tools = [tool for _ in range(TARGETS["concurrent_queries"] // len(QUESTIONS) + 1) for tool in QUESTIONS]
    answers = await asyncio.gather(*(ask(tool) for tool in tools))
    assert len(answers) >= TARGETS["concurrent_queries"]
    alone = {tool: await ask(tool) for tool in QUESTIONS}
    for tool, answer in zip(tools, answers, strict=True):
        assert without_time(answer) == without_time(alone[tool])


def without_time(answer: dict[str, Any]) -> dict[str, Any]:
    assert "error" not in answer
    return {**answer, "metadata": {**answer["metadata"], "queryTimeMs": 0}}


def test_these_questions_stand_for_all_tools():
    promised = {tool["name"] for tool in contract_of("backtest_events")["tools"]}
    assert QUESTIONS.keys() == promised
