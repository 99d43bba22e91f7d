"""The tutorial's answers are those that its commands print, at the clock and in the world of its first step."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.program import quantdeck

PAGE = (Path(__file__).parents[1] / "docs" / "tutorial.md").read_text()
CLOCK = "2026-06-01T12:00:00Z"

_PRINTED = re.compile(r"```\n([^`]*)```\n\n```json\n(.*?)\n```", re.DOTALL)
_CALL = re.compile(r"^(?:QUANTDECK_CLOCK=(\S+) )?quantdeck call (\w+) '(.*?)'", re.MULTILINE)
_ROW = re.compile(r"^\| `(?:QUANTDECK_CLOCK=(\S+) )?(get_\w+|run_backtest) (\{.*?\})` \| (.*?) \|", re.MULTILINE)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("tutorial")
    assert f"QUANTDECK_CLOCK={CLOCK}" in PAGE
    made = quantdeck("demo", "--days", "600", home=home, environment={"QUANTDECK_CLOCK": CLOCK})
    assert made.returncode == 0, made.stderr
    return home


def asked(world: Path, clock: str, tool: str, arguments: str) -> str:
    return quantdeck("call", tool, arguments, home=world, environment={"QUANTDECK_CLOCK": clock or CLOCK}).stdout


def without_time(printed: str) -> Any:
    told = json.loads(printed)
    del told["_metadata"]["latency_ms"]
    return told


PAIRS = [(_CALL.findall(commands)[-1], answer) for commands, answer in _PRINTED.findall(PAGE)]
ROWS = _ROW.findall(PAGE)
SWEPT = re.findall(r"```\nquantdeck (sweep [^`]*)\n```\n\n```text\n(.*?)```", PAGE, re.DOTALL)


def test_the_page_is_read_as_it_is_written():
    assert len(PAIRS) >= 5
    assert len(ROWS) >= 5


def test_the_sweep_comes_to_what_is_printed(world):
    ((command, printed),) = SWEPT
    assert quantdeck(*command.split(), home=world, environment={"QUANTDECK_CLOCK": CLOCK}).stdout == printed


@pytest.mark.parametrize("call, answer", PAIRS, ids=lambda value: value[1] if isinstance(value, tuple) else "")
def test_a_printed_answer_is_the_commands(world, call, answer):
    assert without_time(asked(world, *call)) == without_time(answer)


@pytest.mark.parametrize("clock, tool, arguments, said", ROWS, ids=lambda value: str(value)[:40])
def test_what_a_table_says_is_in_the_answer(world, clock, tool, arguments, said):
    printed = asked(world, clock, tool, arguments)
    for words in re.findall(r"`([^`]+)`", said):
        assert words in printed


def test_three_classic_strategies_are_told_with_their_results():
    told = [arguments for _, tool, arguments, _ in ROWS if tool == "run_backtest"]
    assert len({json.loads(arguments)["strategy_id"] for arguments in told}) >= 3
    assert all({"start_date", "end_date"} <= json.loads(arguments).keys() for arguments in told)


def test_what_the_page_says_of_the_last_month_is_so(world):
    ((clock, tool, arguments),) = [one for one in _CALL.findall(PAGE) if one[1] == "get_historical_performance"]
    data = json.loads(asked(world, clock, tool, arguments))["data"]
    assert (data["environment"], data["total_signals"], round(data["accuracy"], 2)) == ("PAPER", 34, 0.44)


def test_a_backtest_that_is_recorded_can_be_asked_about(world):
    arguments = json.dumps({"strategy_id": "BOLLINGER_REVERSION", "symbol": "BTC/USD"})
    log = {"QUANTDECK_CLOCK": CLOCK, "QUANTDECK_BACKTESTS__EVENTS": str(world / "events.db")}
    told = json.loads(quantdeck("call", "run_backtest", arguments, home=world, environment=log).stdout)["data"]
    pattern = ["OrderPlaced", "TradeExecution", "PositionUpdate"]
    question = json.dumps({"runId": told["run_id"], "sequencePattern": pattern, "pageSize": 1})
    chains = json.loads(asked(world, "", "query_event_sequence", question))
    assert chains["metadata"]["totalSequences"] in {2 * told["trades"], 2 * told["trades"] + 1}
    outside = {**log, "QUANTDECK_BACKTESTS__EVENTS": "/tmp/made-up-runs.db"}  # noqa: S108 - never made
    assert "is a demo world" in quantdeck("call", "run_backtest", arguments, home=world, environment=outside).stderr
