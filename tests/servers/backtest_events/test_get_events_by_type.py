"""get_events_by_type, through a client; and what all six tools refuse alike."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path

import orjson
import pytest

from quantdeck.core.call import Caller
from quantdeck.settings import EventLog as Limits
from tests.support.contracts import contract_of
from tests.support.events import RUN, at, guid

ASK = {"runId": RUN, "eventType": "TradeExecution"}
EVERY_TOOL = {
    "get_events_by_type": ASK,
    "get_events_by_entity": {"runId": RUN, "entityType": "OrderId", "entityValue": "1"},
    "aggregate_metrics": {**ASK, "propertyPath": "$.Price"},
    "get_state_snapshot": {"runId": RUN, "timestamp": "2025-06-01T00:00:00Z"},
    "query_event_sequence": {"runId": RUN},
    "get_validation_errors": {"runId": RUN},
}
ENDLESS = "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"
every_tool = pytest.mark.parametrize("tool", EVERY_TOOL)


def altered(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


async def test_answers_the_events_in_the_specs_shape(events, run):
    with run() as one:
        order = one.order(at(14), "AAPL", "Buy", 100, 175.5, order_id=guid("o"))
        trade = one.trade("2025-01-01T14:30:45.123", "AAPL", "Buy", 100, 175.50, order_id=guid("o"), parent=order)
    body = await events("get_events_by_type", **ASK, pageSize=50)
    promised = contract_of("backtest_events")["results"]["EventQueryResult"]
    (event,) = body["events"]
    assert event == {
        "eventId": trade,
        "runId": RUN,
        "timestamp": "2025-01-01T14:30:45.123Z",
        "eventType": "TradeExecution",
        "severity": "Info",
        "category": "Execution",
        "properties": {
            "OrderId": guid("o"), "SecuritySymbol": "AAPL", "Direction": "Buy", "Quantity": 100, "Price": 175.5,
            "Commission": 0.0, "Slippage": 0.0,
        },
        "parentEventId": order,
        "validationErrors": None,
    }  # fmt: skip
    assert event.keys() == promised["events"][0].keys()
    assert body["metadata"].pop("queryTimeMs") >= 0
    assert body["metadata"] == {
        "totalCount": 1, "returnedCount": 1, "pageIndex": 0, "pageSize": 50, "hasMore": False, "truncated": False,
    }  # fmt: skip


async def test_pages_say_whether_there_is_more(events, run):
    with run() as one:
        for number in range(25):
            one.trade(at(number), "AAPL", "Buy", 1, 10, order_id=guid("o"))
    pages = [(await events("get_events_by_type", **ASK, pageSize=10, pageIndex=n))["metadata"] for n in range(4)]
    assert [(page["returnedCount"], page["hasMore"]) for page in pages] == [
        (10, True), (10, True), (5, False), (0, False),
    ]  # fmt: skip
    far = await events("get_events_by_type", **ASK, pageSize=1000, pageIndex=2**62)
    assert (far["events"], far["metadata"]["totalCount"]) == ([], 25)


async def test_a_page_has_at_most_a_thousand_events(events, run):
    with run() as one:
        for _ in range(1001):
            one.trade(at(1), "AAPL", "Buy", 1, 10, order_id=guid("o"))
    body = await events("get_events_by_type", **ASK, pageSize=1000)
    assert (len(body["events"]), body["metadata"]["hasMore"]) == (1000, True)
    assert (await events.refused("get_events_by_type", **ASK, pageSize=1001))[0] == "INVALID_PARAMETER"


@pytest.mark.parametrize(
    "start, end, many",
    [
        ("2025-01-01T01:00:00Z", "2025-01-01T02:00:00Z", 2),
        ("2025-01-01T01:00:00", "2025-01-01T02:00:00", 2),
        ("2025-01-01T06:30:00+05:30", "2025-01-01T02:00:00+00:00", 2),
        ("2025-01-01 01:00:00.0000001Z", None, 3),
        ("20250101T020000Z", None, 2),
        (None, "2024-12-31T20:00:00-05:00", 1),
        ("2025-01-01T01:30:00Z", "2025-01-01T01:30:00Z", 0),
        (None, "2999-01-01T00:00:00Z", 3),
    ],
)
async def test_a_time_without_an_offset_is_utc_wherever_the_machine_stands(events, run, monkeypatch, start, end, many):
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        with run() as one:
            for hour in (1, 2, 3):
                one.trade(at(hour).replace(tzinfo=None), "AAPL", "Buy", 1, 10, order_id=guid("o"))
        said = {name: told for name, told in (("startTime", start), ("endTime", end)) if told is not None}
        found = (await events("get_events_by_type", **ASK, **said))["events"]
    finally:
        monkeypatch.undo()
        time.tzset()
    assert len(found) == many
    assert all(event["timestamp"].endswith(":00:00.000Z") for event in found)


@pytest.mark.parametrize(
    "arguments, code",
    [
        ({"runId": "42"}, "INVALID_PARAMETER"),
        ({"runId": ""}, "INVALID_PARAMETER"),
        ({"runId": None}, "INVALID_PARAMETER"),
        ({"runId": "' OR 1=1 --"}, "INVALID_PARAMETER"),
        ({"eventType": "tradeexecution"}, "INVALID_PARAMETER"),
        ({"eventType": "OrderPlaced"}, "INVALID_PARAMETER"),
        ({"eventType": "'; DROP TABLE events; --"}, "INVALID_PARAMETER"),
        ({"severity": "Fatal"}, "INVALID_PARAMETER"),
        ({"category": "Other"}, "INVALID_PARAMETER"),
        ({"pageSize": 0}, "INVALID_PARAMETER"),
        ({"pageSize": "7"}, "INVALID_PARAMETER"),
        ({"pageSize": True}, "INVALID_PARAMETER"),
        ({"pageIndex": -1}, "INVALID_PARAMETER"),
        ({"pageIndex": 0.5}, "INVALID_PARAMETER"),
        ({"startTime": "yesterday"}, "INVALID_PARAMETER"),
        ({"startTime": "2025-01-01"}, "INVALID_PARAMETER"),
        ({"startTime": 1735689600}, "INVALID_PARAMETER"),
        ({"endTime": "0001-01-01T00:00:00+05:00"}, "INVALID_PARAMETER"),
        ({"sort": "desc"}, "INVALID_PARAMETER"),
        ({"startTime": "2025-01-02T00:00:00Z", "endTime": "2025-01-01T00:00:00Z"}, "INVALID_TIME_RANGE"),
        ({"startTime": "2030-01-01T00:00:00Z"}, "INVALID_TIME_RANGE"),
        ({"runId": guid("nobody's")}, "RUN_NOT_FOUND"),
    ],
    ids=str,
)
async def test_fails_with_a_declared_code(events, run, arguments, code):
    with run() as one:
        one.trade(at(1), "AAPL", "Buy", 1, 10)
    assert (await events.refused("get_events_by_type", **{**ASK, **arguments}))[0] == code
    assert (await events("get_events_by_type", **ASK))["metadata"]["totalCount"] == 1  # nothing came of it


async def test_a_run_id_may_be_written_in_capitals(events, run):
    with run():
        pass
    assert (await events("get_events_by_type", **{**ASK, "runId": RUN.upper()}))["metadata"]["totalCount"] == 0


async def test_a_start_before_the_end_of_a_run_in_the_clocks_future_is_none_of_the_future(events, run):
    with run(end="2031-01-01T00:00:00Z") as one:
        one.trade("2030-06-01T00:00:00Z", "AAPL", "Buy", 1, 10)
    body = await events("get_events_by_type", **ASK, startTime="2030-01-01T00:00:00Z")
    assert body["metadata"]["totalCount"] == 1


async def test_an_answer_is_cut_to_its_limit_and_says_so(serve, run):
    with run() as one:
        for _ in range(20):
            one.trade(at(1), "AAPL", "Buy", 1, 10, order_id=guid("o"), Note="x" * 900)
    events = await serve("backtest-events", event_log=Limits(reply_kb=8))
    body = await events("get_events_by_type", **ASK)
    metadata = body["metadata"]
    assert (metadata["truncated"], metadata["hasMore"], metadata["totalCount"]) == (True, True, 20)
    assert 0 < metadata["returnedCount"] == len(body["events"]) < 8
    assert len(orjson.dumps(body)) <= 8 * 1024
    whole = await events("get_events_by_type", **ASK, pageSize=metadata["returnedCount"])
    assert not whole["metadata"]["truncated"]


async def test_one_event_too_large_for_an_answer_is_said_with_its_size(serve, run):
    with run() as one:
        one.trade(at(1), "AAPL", "Buy", 1, 10, Note="x" * 4000)
    events = await serve("backtest-events", event_log=Limits(reply_kb=2))
    error = (await events("get_events_by_type", **ASK))["error"]
    assert (error["code"], error["details"]["bytes"] > 4000) == ("RESULT_TOO_LARGE", True)


async def test_what_is_stored_is_told_to_the_last_digit(serve, path, run):
    with run() as one:
        one.event("RiskEvent", at(1), {"RiskType": "x"})
    with sqlite3.connect(path) as connection:
        exact = '{"RiskType":"x","Threshold":0.12345678901234567890123,"Big":123456789012345678901234567890}'
        connection.execute("UPDATE events SET properties = ?", (exact,))
    connection.close()
    events = await serve("backtest-events")
    answer = await events.app.call(events.app.tool("get_events_by_type"), {"runId": RUN, "eventType": "RiskEvent"})
    assert exact.encode() in answer.encoded


@every_tool
async def test_every_tool_says_that_there_is_no_such_run(events, run, tool):
    with run():
        pass
    code, message = await events.refused(tool, **{**EVERY_TOOL[tool], "runId": guid("nobody's")})
    assert (code, "not found" in message) == ("RUN_NOT_FOUND", True)


@every_tool
async def test_a_run_that_became_known_later_is_not_found(events, run, tool):
    with run(created_at="2026-01-15T12:00:01Z") as one:
        one.trade(at(1), "AAPL", "Buy", 1, 10)
    assert (await events.refused(tool, **EVERY_TOOL[tool]))[0] == "RUN_NOT_FOUND"


@every_tool
async def test_no_log_is_a_database_error_that_says_what_to_do(serve, tool):
    events = await serve("backtest-events")
    code, message = await events.refused(tool, **EVERY_TOOL[tool])
    assert code == "DATABASE_ERROR"
    assert "quantdeck import events" in message
    assert "quantdeck demo" in message


@every_tool
async def test_a_token_for_one_run_sees_no_other(events, run, tool):
    for name in ("run", "other"):
        with run(name) as one:
            one.trade(at(1), "AAPL", "Buy", 1, 10)
    app = events.app
    asked = app.tool(tool)
    bearers = {name: Caller("bearer", frozenset({"read", f"run:{guid(name)}"})) for name in ("run", "other")}
    mine = await app.call(asked, EVERY_TOOL[tool], caller=bearers["run"])
    theirs = await app.call(asked, EVERY_TOOL[tool], caller=bearers["other"])
    assert (mine.code, theirs.code) == (None, "RUN_NOT_FOUND")


@every_tool
async def test_a_damaged_file_is_told_and_a_mended_one_answered_from(events, run, path, tool):
    with run():
        pass
    whole = path.read_bytes()
    path.write_bytes(b"SQLite format 3\0" + b"rubbish " * 4000)
    code, message = await events.refused(tool, **EVERY_TOOL[tool])
    assert (code, "damaged" in message, str(path) in message) == ("DATABASE_ERROR", True, False)
    path.unlink()
    for left in path.parent.glob("events.db-*"):
        left.unlink()
    path.write_bytes(whole)
    assert "error" not in await events(tool, **EVERY_TOOL[tool])


@every_tool
async def test_a_file_that_goes_while_it_is_open_is_missed_and_a_new_one_found(events, run, path, tool):
    with run():
        pass
    assert "error" not in await events(tool, **EVERY_TOOL[tool])
    for file in path.parent.glob("events.db*"):
        file.unlink()
    code, message = await events.refused(tool, **EVERY_TOOL[tool])
    assert (code, "removed" in message) == ("DATABASE_ERROR", True)
    with run():
        pass
    assert "error" not in await events(tool, **EVERY_TOOL[tool])


@every_tool
async def test_readers_do_not_wait_for_a_writer(events, run, path, tool):
    with run():
        pass
    writer = sqlite3.connect(path, isolation_level=None)
    try:
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("UPDATE runs SET strategy = 'x'")
        assert "error" not in await events(tool, **EVERY_TOOL[tool])
    finally:
        writer.close()


async def test_a_file_that_is_locked_altogether_is_a_database_error_to_retry(events, run, path):
    with run():
        pass
    writer = sqlite3.connect(path, isolation_level=None)
    try:
        writer.execute("PRAGMA journal_mode = DELETE")
        writer.execute("BEGIN EXCLUSIVE")
        code, message = await events.refused("get_events_by_type", **ASK)
    finally:
        writer.close()
    assert (code, "busy" in message) == ("DATABASE_ERROR", True)
    assert "error" not in await events("get_events_by_type", **ASK)


@every_tool
async def test_a_question_without_end_is_given_up_and_its_connection_is_free_again(serve, run, path, tool):
    with run():
        pass
    altered(path, "ALTER TABLE runs RENAME TO kept", f"CREATE VIEW runs AS SELECT kept.* FROM kept, ({ENDLESS})")
    events = await serve("backtest-events", deadline_s={tool: 0.05}, event_log=Limits(connections=1))
    code, message = await events.refused(tool, **EVERY_TOOL[tool])
    assert (code, "kept" in message) == ("QUERY_TIMEOUT", False)
    altered(path, "DROP VIEW runs", "ALTER TABLE kept RENAME TO runs")
    assert "error" not in await events("list_backtest_runs")


@pytest.mark.parametrize("content", [b"", b"not a database at all, though long enough to be read as one" * 40])
async def test_a_file_that_is_no_log_is_a_database_error(events, path, content):
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    assert (await events.refused("get_events_by_type", **ASK))[0] == "DATABASE_ERROR"


def test_a_log_is_its_owners_alone(run, path):
    with run():
        pass
    assert path.stat().st_mode & 0o777 == 0o600
