"""`import events` and `export events`, as a person uses them."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import orjson
import pytest

from quantdeck.events import EventLog
from quantdeck.events.importing import import_lines
from tests.support.events import RUN, at, begin, guid
from tests.support.program import quantdeck

MS = 1_735_689_600_000  # 2025-01-01T00:00:00Z


def line(kind: str, **data: Any) -> str:
    return json.dumps({"type": kind, "data": data})


DEBUG_EXPORT = [
    line("candle", time=MS, open=100, high="102.5", low=99, close=101, volume=5, sequenceNumber=1, securityId="AAPL"),
    line("indicator_SMA_10", time=MS, value=100.5, sequenceNumber=2, isUp=True),
    line("trade", time=MS + 60_000, price="101.20", volume=10, side="Buy", pnL=1.5, sequenceNumber=3, orderId=17),
    line("state", time=MS + 60_000, position=10, pnL=3, unrealizedPnL=-2, processState="Started", sequenceNumber=4),
    line("state", time=MS + 120_000, position=0, pnL=5, unrealizedPnL=0, processState="Stopped", sequenceNumber=5),
]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "run.jsonl"


def bring(home: Path, file: Path, *more: str) -> str:
    done = quantdeck("import", "events", str(file), *more, home=home)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()[1].rstrip(":")


def ask(home: Path, tool: str, **arguments: Any) -> Any:
    return json.loads(quantdeck("call", tool, json.dumps(arguments), home=home).stdout)


def told(home: Path) -> list[dict[str, Any]]:
    """Every event as exported, without what is the file's alone."""
    done = quantdeck("export", "events", home=home)
    assert done.returncode == 0, done.stderr
    return [json.loads(one) for one in done.stdout.splitlines()][1:]


def test_the_originals_debug_export_becomes_events_in_the_contracts_words(home, file):
    file.write_text("\n".join(DEBUG_EXPORT))
    run = bring(home, file, "--strategy", "SMA_CROSS")
    candle, indicator, trade, held, flat = told(home)
    assert [(one["eventType"], one["severity"], one["category"]) for one in (candle, indicator, trade, held, flat)] == [
        ("MarketDataEvent", "Debug", "Data"), ("IndicatorCalculation", "Debug", "Analysis"),
        ("TradeExecution", "Info", "Execution"), ("PositionUpdate", "Info", "Portfolio"),
        ("StateChange", "Warning", "Portfolio"),
    ]  # fmt: skip
    assert candle["timestamp"] == "2025-01-01T00:00:00.000Z"
    assert candle["properties"]["Data"] == {"Open": 100, "High": 102.5, "Low": 99, "Close": 101, "Volume": 5}
    assert (indicator["properties"]["IndicatorName"], indicator["properties"]["Value"]) == ("SMA_10", 100.5)
    names = ("OrderId", "Direction", "Quantity", "Price", "RealizedPnL")
    assert {name: trade["properties"][name] for name in names} == {
        "OrderId": 17, "Direction": "Buy", "Quantity": 10, "Price": 101.2, "RealizedPnL": 1.5,
    }  # fmt: skip
    assert trade["properties"]["SecuritySymbol"] == "AAPL"
    assert held["properties"]["PositionId"] == f"pos-{run}-{MS + 60_000}"
    assert (held["properties"]["RealizedPnL"], held["properties"]["UnrealizedPnL"]) == (5, -2)
    assert all(one["validationErrors"] is None for one in (candle, indicator, trade, held, flat))
    found = ask(home, "get_events_by_entity", runId=run, entityType="OrderId", entityValue="17")
    assert found["metadata"]["totalCount"] == 1
    state = ask(home, "get_state_snapshot", runId=run, timestamp="2025-01-01T00:01:30Z")["state"]
    assert (state["positions"][0]["quantity"], state["pnl"]) == (10, {"total": 3, "realized": 5, "unrealized": -2})
    state = ask(home, "get_state_snapshot", runId=run, timestamp="2025-01-01T01:00:00Z")["state"]
    assert state["pnl"] == {"total": 5, "realized": 5, "unrealized": 0}


@pytest.mark.parametrize("time", [MS, MS // 1000, str(MS), "2025-01-01T00:00:00Z", MS * 1000, MS * 1_000_000])
def test_a_time_may_be_in_any_unit_that_the_original_has_used(home, file, time):
    file.write_text(line("candle", time=time, close=1, securityId={"securityCode": "AAPL", "boardCode": "NASDAQ"}))
    bring(home, file)
    (event,) = told(home)
    assert event["timestamp"] == "2025-01-01T00:00:00.000Z"
    assert event["properties"]["SecuritySymbol"] == "AAPL@NASDAQ"


def test_events_of_the_live_logger_get_the_contracts_names_numbers_and_times(home, file):
    logged = {
        "EventId": guid("e"), "RunId": guid("theirs"), "Timestamp": "2026-01-01T10:00:00Z",
        "EventType": "TradeExecution", "Severity": "Info", "Category": "Execution",
        "Properties": json.dumps({"time": MS, "price": "175.50", "volume": "100", "side": "Sell", "pnL": "-1.25",
                                  "orderId": 3, "Extra": "kept"}),
        "ParentEventId": guid("p"), "ValidationErrors": None,
    }  # fmt: skip
    file.write_text(json.dumps(logged))
    bring(home, file, "--symbol", "AAPL")
    (event,) = told(home)
    assert (event["timestamp"], event["eventId"], event["parentEventId"]) == (
        "2025-01-01T00:00:00.000Z", guid("e"), guid("p"),
    )  # fmt: skip
    assert event["properties"] == {
        "Price": 175.5, "Quantity": 100, "Direction": "Sell", "RealizedPnL": -1.25, "OrderId": 3, "Extra": "kept",
        "SecuritySymbol": "AAPL",
    }  # fmt: skip


def test_what_is_no_event_goes_to_the_rejects_with_why_and_the_rest_goes_in(home, file):
    bad = ["not json", "[1]", '{"a":1}', line("candle2", time=1), '"text"']
    file.write_text("\n".join([DEBUG_EXPORT[0], *bad, "", DEBUG_EXPORT[2]]))
    bring(home, file)
    assert len(told(home)) == 2
    rejects = [json.loads(one) for one in Path(f"{file}.rejects.jsonl").read_text().splitlines()]
    assert [(one["line"], one["text"]) for one in rejects] == list(enumerate(bad, start=2))
    assert all(one["why"] for one in rejects)


def test_a_malformed_event_goes_in_with_its_errors(home, file):
    file.write_text(
        "\n".join([line("indicator_X", time=MS, value=None), line("trade"), '{"eventType":"Foo","timestamp":"?"}'])
    )
    run = bring(home, file)
    found = ask(home, "get_validation_errors", runId=run)
    assert found["metadata"]["totalCount"] == 3
    assert not Path(f"{file}.rejects.jsonl").exists()


def test_a_file_is_imported_once(home, file):
    file.write_text("\n".join(DEBUG_EXPORT))
    first = bring(home, file)
    again = quantdeck("import", "events", str(file), home=home)
    assert (again.returncode, first in again.stdout, "already" in again.stdout) == (0, True, True)
    assert len(told(home)) == 5


class BrokenOff(Exception):
    """Where a test breaks an import off."""


def test_an_import_that_was_broken_off_goes_on_where_it_stopped(tmp_path, file):
    log_path, rejects = tmp_path / "events.db", tmp_path / "rejects.jsonl"
    lines = [line("candle", time=MS + number, close=number) if number % 7 else "bad" for number in range(12_000)]
    file.write_text("\n".join(lines))
    heard: list[int] = []

    def stop(done: int, size: int) -> None:
        heard.append(done)
        if len(heard) == 2:
            raise BrokenOff

    with pytest.raises(BrokenOff), EventLog.open(log_path, batch=100_000) as log:
        import_lines(log, file, rejects, progress=stop)
    with rejects.open("a") as torn:
        torn.write('{"line": 10001, "why": "written, and then killed before the batch was"}\n')
    with EventLog.open(log_path, batch=100_000) as log:
        done = import_lines(log, file, rejects, progress=lambda done, _: heard.append(done))
    assert (done.resumed, done.lines, done.rejected) == (True, 12_000, len(range(0, 12_000, 7)))
    assert heard == sorted(heard)
    with closing(sqlite3.connect(log_path)) as connection:
        (found,) = connection.execute("SELECT count(*) FROM events").fetchone()
        (times,) = connection.execute("SELECT count(DISTINCT at) FROM events").fetchone()
    assert found == times == 12_000 - done.rejected
    assert [json.loads(one)["line"] for one in rejects.read_text().splitlines()] == [*range(1, 12_001, 7)]


def test_lines_that_tell_no_security_have_the_same_one_after_an_interruption(tmp_path, file):
    log_path = tmp_path / "events.db"
    lines = [line("candle", time=MS, close=1, securityId="AAPL")]
    lines += [line("trade", time=MS + number, price=1, volume=1, side="Buy", orderId=1) for number in range(7_000)]
    file.write_text("\n".join(lines))

    def stop(done: int, size: int) -> None:
        raise BrokenOff

    with pytest.raises(BrokenOff), EventLog.open(log_path, batch=100_000) as log:
        import_lines(log, file, tmp_path / "rejects.jsonl", progress=stop)
    with EventLog.open(log_path, batch=100_000) as log:
        assert import_lines(log, file, tmp_path / "rejects.jsonl").resumed
    with closing(sqlite3.connect(log_path)) as connection:
        assert connection.execute("SELECT symbol, count(*) FROM events GROUP BY symbol").fetchall() == [("AAPL", 7001)]


def test_numbers_come_in_to_the_last_digit(home, file):
    digits = "123456789.12345678901234567890"
    trade = {"time": MS, "price": digits, "volume": 0.1, "side": "Buy", "orderId": 2**63 + 1}
    candle = line("candle", time=MS, close=0).replace(
        '"close": 0', f'"close": {digits}, "volume": 18446744073709551617'
    )
    file.write_text("\n".join([line("trade", **trade), candle]))
    bring(home, file)
    text = quantdeck("export", "events", home=home).stdout
    assert f'"Price":{digits},' in text
    assert f'"Close":{digits},"Volume":18446744073709551617' in text
    assert '"Quantity":0.1,' in text
    assert f'"OrderId":{2**63 + 1},' in text
    (home / "events.db").unlink()
    again = file.with_name("again.jsonl")
    again.write_text(text)
    bring(home, again)
    assert quantdeck("export", "events", home=home).stdout == text


def test_a_mark_of_utf8_before_the_first_line_is_no_part_of_it(home, file):
    file.write_text("\n".join(DEBUG_EXPORT), encoding="utf-8-sig")
    bring(home, file)
    assert len(told(home)) == 5


def test_what_is_exported_can_be_imported_and_is_the_same(home, tmp_path):
    with begin(home / "events.db", strategy="S", parameters={"fast": 10}) as run:
        order = run.order(at(1), "AAPL", "Buy", "0.30", 1, order_id="17")
        run.trade(at(1), "AAPL", "Buy", 1, 1, order_id="17", parent=order)
        run.event("RiskEvent", at(1), cast("Any", "no object"), severity="Error")
    out, other = tmp_path / "out.jsonl", tmp_path / "other"
    assert quantdeck("export", "events", RUN, str(out), home=home).returncode == 0
    assert out.stat().st_mode & 0o777 == 0o600
    assert bring(other, out) == RUN
    again = quantdeck("export", "events", home=other).stdout
    assert again == out.read_text()
    first = orjson.loads(out.read_text().splitlines()[0])["run"]
    assert (first["strategy"], first["parameters"], first["createdAt"]) == (
        "S",
        {"fast": 10},
        "2026-01-14T12:00:00.000Z",
    )


@pytest.mark.parametrize(
    "arguments, said",
    [
        (("import", "events"), "--example"),
        (("import", "events", "/nonexistent"), "No such file"),
        (("export", "events", guid("x")), "no connection to an event log"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(home, arguments, said):
    done = quantdeck(*arguments, home=home)
    assert (done.returncode, said in done.stderr, len(done.stderr.splitlines())) == (2, True, 1)
    assert not home.exists()


def test_a_file_is_never_written_over(home, tmp_path):
    with begin(home / "events.db"):
        pass
    (tmp_path / "there").write_text("precious")
    done = quantdeck("export", "events", RUN, str(tmp_path / "there"), home=home)
    assert (done.returncode, "there already" in done.stderr) == (2, True)
    assert (tmp_path / "there").read_text() == "precious"
    assert quantdeck("export", "events", guid("x"), str(tmp_path / "new"), home=home).returncode == 2
    assert not (tmp_path / "new").exists()


def test_real_and_made_up_runs_are_kept_apart(home, file, tmp_path):
    demo = tmp_path / "demo"
    assert quantdeck("demo", "--days", "1", home=demo).returncode == 0
    file.write_text("\n".join(DEBUG_EXPORT))
    refused = quantdeck("import", "events", str(file), home=demo)
    assert (refused.returncode, "--into-demo" in refused.stderr) == (2, True)
    bring(demo, file, "--into-demo")
    made = tmp_path / "made.jsonl"
    assert quantdeck("export", "events", "", str(made), home=demo).returncode == 2
    runs = ask(demo, "list_backtest_runs")["runs"]
    assert quantdeck("export", "events", runs[0]["id"], str(made), home=demo).returncode == 0
    refused = quantdeck("import", "events", str(made), home=home)
    assert (refused.returncode, "--from-demo" in refused.stderr, home.exists()) == (2, True, False)
    bring(home, made, "--from-demo")
