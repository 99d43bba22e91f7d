"""get_validation_errors, through a client."""

from __future__ import annotations

import sqlite3

import pytest

from tests.support.events import RUN, at, guid
from tests.support.original import UNCHECKED


async def test_answers_the_specs_own_example(events, run):
    with run() as one:
        one.event("TradeExecution", at(1), {"OrderId": "invalid-guid", "SecuritySymbol": "AAPL", "Quantity": 100})
        one.trade(at(2), "AAPL", "Buy", 1, 10, order_id=guid("o"))
    body = await events("get_validation_errors", runId=RUN)
    (event,) = body["events"]
    assert event["validationErrors"] == [
        {"Field": "Properties.OrderId", "Error": "Invalid GUID format", "Severity": "Error"},
        {"Field": "Properties.Price", "Error": "Missing required field", "Severity": "Warning"},
    ]
    assert event["properties"] == {"OrderId": "invalid-guid", "SecuritySymbol": "AAPL", "Quantity": 100}
    assert body["metadata"]["totalCount"] == 1


async def test_filters_by_the_severity_of_the_errors_and_not_of_the_event(events, run):
    with run() as one:
        one.event("TradeExecution", at(1), {"OrderId": guid("o"), "Quantity": 1}, severity="Error")
    totals = [
        (await events("get_validation_errors", runId=RUN, severityFilter=severity))["metadata"]["totalCount"]
        for severity in ("Error", "Warning", None)
    ]
    assert totals == [0, 1, 1]


@pytest.mark.parametrize(
    "arguments", [{"severityFilter": "Info"}, {"severityFilter": "error"}, {"pageSize": 0}], ids=str
)
async def test_fails_with_a_declared_code(events, run, arguments):
    with run():
        pass
    assert (await events.refused("get_validation_errors", runId=RUN, **arguments))[0] == "INVALID_PARAMETER"


async def test_another_programs_careless_rows_break_nothing(serve, tmp_path):
    """A file without the checks of the original's schema, and with everything wrong that they would forbid."""
    path = tmp_path / "careless.db"
    careless = sqlite3.connect(path)
    careless.executescript(UNCHECKED)
    careless.execute("INSERT INTO BacktestRuns VALUES (?, 'soon', 'later', 'x', '2026-01-01 00:00:00')", (RUN.upper(),))
    rows = [
        ("{not json", None, "yesterday"),
        (
            '{\n"SecuritySymbol": "AAPL"\n}',
            '["just a sentence", {"severity": "Error"}, 3]',
            "2025-01-01T00:00:00+01:00",
        ),
        ("[1, 2]", '{"Field": "x", "Severity": "Error"}', "2025-01-01 05:00:00"),
        ("{}", "[]", "2025-01-01T00:00:00.1234567Z"),
        ("null", "also no json", "2025-01-01"),
    ]
    careless.executemany(
        "INSERT INTO Events (EventId, RunId, Properties, ValidationErrors, Timestamp, EventType, Severity, Category)"
        " VALUES (?, ?, ?, ?, ?, 'StateChange', 'Info', 'Execution')",
        [(guid(f"{number}"), RUN.upper(), *row) for number, row in enumerate(rows)],
    )
    careless.commit()
    careless.close()
    events = await serve("backtest-events", events=f"sqlite:///{path}")
    body = await events("get_events_by_type", runId=RUN, eventType="StateChange")
    told = {event["eventId"]: event for event in body["events"]}
    assert body["metadata"]["totalCount"] == 5
    assert told[guid("0")]["properties"] == {"_raw": "{not json"}
    assert told[guid("1")]["properties"] == {"SecuritySymbol": "AAPL"}
    assert told[guid("1")]["timestamp"] == "2024-12-31T23:00:00.000Z"
    assert told[guid("3")]["timestamp"] == "2025-01-01T00:00:00.123Z"
    found = await events("get_events_by_entity", runId=RUN, entityType="SecuritySymbol", entityValue="aapl")
    assert found["metadata"]["totalCount"] == 1
    figures = await events("aggregate_metrics", runId=RUN, eventType="StateChange", propertyPath="$.X")
    assert figures["metadata"]["valueCount"] == 0
    for asked in ({}, {"sequencePattern": ["OrderPlaced"]}):
        assert (await events("query_event_sequence", runId=RUN, **asked))["sequences"] == []
    state = (await events("get_state_snapshot", runId=RUN, timestamp="2025-06-01T00:00:00Z"))["state"]
    assert (state["positions"], state["activeOrders"]) == ([], [])
    wrong = {event["eventId"]: event["validationErrors"] for event in (await events(
        "get_validation_errors", runId=RUN))["events"]}  # fmt: skip
    assert wrong.keys() == {guid("1"), guid("2"), guid("4")}
    assert wrong[guid("4")] == [{"Field": "", "Error": "also no json", "Severity": "Error"}]


async def test_another_programs_words_times_and_depths_break_nothing(serve, tmp_path):
    """What a client would refuse by the published schema, what no calendar has, and what is too deep to be read."""
    path = tmp_path / "careless.db"
    careless = sqlite3.connect(path)
    careless.executescript(UNCHECKED)
    careless.execute("INSERT INTO BacktestRuns VALUES (?, '', '', 'x', '2026-01-01 00:00:00')", (RUN,))
    deep = '{"a":' * 300 + "\n  12345678901234567890.123456789" + "}" * 300
    rows = [
        ("-4000-01-01T00:00:00", "StateChange", "info", "Execution", "{}", None),
        ("2025-01-02T00:00:00", "StateChange", "Info", "Trading", deep, '[{"Field": "x", "Error": "y"}]'),
        ("2025-01-03T00:00:00", "OrderPlaced", "Info", "Execution", '{"SecuritySymbol": "AAPL"}', None),
    ]
    careless.executemany(
        "INSERT INTO Events (EventId, RunId, Timestamp, EventType, Severity, Category, Properties, ValidationErrors)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [(guid(f"{number}"), RUN, *row) for number, row in enumerate(rows)],
    )
    careless.commit()
    careless.close()
    events = await serve("backtest-events", events=f"sqlite:///{path}")
    first, second = (await events("get_events_by_type", runId=RUN, eventType="StateChange"))["events"]
    assert (first["timestamp"], first["severity"]) == ("0001-01-01T00:00:00.000Z", "Info")
    assert [entry["Field"] for entry in first["validationErrors"]] == ["Severity"]
    assert second["properties"] == {"_raw": deep}
    assert (second["category"], [entry["Field"] for entry in second["validationErrors"]]) == (
        "Execution", ["x", "Category"],
    )  # fmt: skip
    (third,) = (await events("get_events_by_entity", runId=RUN, entityType="SecuritySymbol", entityValue="AAPL"))[
        "events"
    ]
    assert (third["eventType"], third["validationErrors"][0]["Field"]) == ("StateChange", "EventType")
