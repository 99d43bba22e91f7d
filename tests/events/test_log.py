"""`EventLog`: what a program writes is in the file, whatever becomes of the program."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
import time
from contextlib import closing, suppress
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import Any
from uuid import RFC_4122, UUID, uuid4

import numpy as np
import orjson
import pytest

from quantdeck.domain.event_types import EVENT_TYPES
from quantdeck.events import EventLog, EventLogError
from tests.support.events import RUN, at, begin, guid
from tests.support.original import SCHEMA

PATIENCE_S = 20


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "events.db"


def ask(path: Path, sql: str, *values: object) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(sql, values).fetchall()


def events(path: Path) -> int:
    (row,) = ask(path, "SELECT count(*) FROM events")
    assert isinstance(row[0], int)
    return row[0]


def stored(path: Path) -> list[tuple[dict[str, object], list[dict[str, str]]]]:
    """Properties and errors of every event."""
    rows = ask(path, "SELECT properties, errors FROM events ORDER BY id")
    return [(orjson.loads(str(text)), orjson.loads(str(wrong or "[]"))) for text, wrong in rows]


def errors_of(path: Path) -> list[tuple[str, str]]:
    return [(entry["Field"], entry["Severity"]) for _, wrong in stored(path) for entry in wrong]


def test_each_helper_writes_an_event_of_its_type_that_is_valid(path):
    with begin(path) as run:
        order = run.order(at(1), "AAPL", "Buy", 100, 175.5)
        trade = run.trade(at(1), "AAPL", "Buy", 100, 175.5, order_id=order, parent=order)
        run.position(at(1), "AAPL", 100, 175.5, parent=trade)
        run.order_ended(at(1), order, "Cancelled", symbol="AAPL")
        run.rejection(at(1), "AAPL", "No margin", order_id=order, quantity=1, price=2)
        run.indicator(at(1), "AAPL", "SMA_10", 176.2, {"Period": 10})
        run.pnl(at(1), realized=1, unrealized=2)
        run.state(at(1), "Indicator", {"x": 1}, reason="warm")
        run.market_data(at(1), "AAPL", {"Close": 1})
        run.risk(at(1), "Drawdown", threshold=0.1, current_value=0.2, action="Stop")
        run.event("RiskEvent", at(1), {"RiskType": "Other"}, severity="Error", category="Analysis")
    kinds = ask(path, "SELECT type FROM events ORDER BY id")
    assert [EVENT_TYPES[int(str(kind))] for (kind,) in kinds] == [
        "StateChange", "TradeExecution", "PositionUpdate", "StateChange", "OrderRejection", "IndicatorCalculation",
        "StateChange", "StateChange", "MarketDataEvent", "RiskEvent", "RiskEvent",
    ]  # fmt: skip
    assert errors_of(path) == []
    assert ask(path, "SELECT sum(events) FROM counts") == [(11,)]


@pytest.mark.parametrize(
    "kind, properties, wrong",
    [
        ("TradeExecution", {}, [("OrderId", "Error"), ("Quantity", "Warning"), ("Price", "Warning")]),
        ("TradeExecution", {"OrderId": "x", "Quantity": "a", "Price": float("nan")},
         [("OrderId", "Error"), ("Quantity", "Warning"), ("Price", "Warning")]),
        ("TradeExecution", {"OrderId": guid("o"), "Quantity": "1.5", "Price": Decimal(2)}, []),
        ("TradeExecution", {"OrderId": UUID(guid("o")), "Quantity": 0, "Price": 0}, []),
        ("OrderRejection", {}, [("OrderId", "Error"), ("RejectionReason", "Error")]),
        ("IndicatorCalculation", {"Value": True}, [("IndicatorName", "Error"), ("Value", "Error")]),
        ("PositionUpdate", {"SecuritySymbol": 5}, [("SecuritySymbol", "Error")]),
        ("RiskEvent", {"RiskType": ""}, [("RiskType", "Error")]),
        ("StateChange", {}, []),
        ("MarketDataEvent", {}, []),
    ],
)  # fmt: skip
def test_a_malformed_event_is_kept_with_what_is_wrong_with_it(path, kind, properties, wrong):
    with begin(path) as run:
        run.event(kind, at(1), properties)
    assert events(path) == 1
    assert errors_of(path) == [(f"Properties.{field}", severity) for field, severity in wrong]


class Odd:
    def __str__(self) -> str:
        return "odd"


class Side(Enum):
    BUY = 1


class OwnTime(datetime):
    """As pandas' Timestamp is one."""


class NoTime(datetime):
    """As pandas' NaT is one."""

    def date(self) -> date:
        raise ValueError("NaT has no date")


def nested(depth: int) -> dict[str, Any]:
    inner: dict[str, Any] = {}
    for _ in range(depth):
        inner = {"a": inner}
    return inner


@pytest.mark.parametrize(
    "given, kept, wrong",
    [
        ({"a": Odd()}, {"_raw": "{'a': "}, ["Properties"]),
        ({"a": "\ud800"}, {"_raw": ""}, ["Properties"]),
        ({"a": {"b": [2**70, (1,)]}}, {"a": {"b": [2**70, [1]]}}, []),
        ({"a": 10**5000}, {"_raw": ""}, ["Properties"]),
        ({"a": OwnTime(2025, 1, 1, tzinfo=UTC), "b": OwnTime(2025, 1, 1)},
         {"a": "2025-01-01T00:00:00Z", "b": "2025-01-01T00:00:00Z"}, []),
        (nested(5000), {"_raw": ""}, ["Properties"]),
        ("{not json", {"_raw": "{not json"}, ["Properties"]),
        (b"\xff", {"_raw": "\ufffd"}, ["Properties"]),
        (None, {"_raw": "None"}, ["Properties"]),
        ([1], {"_raw": "[1]"}, ["Properties"]),
        ({"a": "x" * 1_000_001}, {"_raw": '{"a":"xxx'}, ["Properties"]),
        ({"a": Decimal("0.1000"), "b": float("inf")}, {"a": 0.1, "b": None}, []),
        ({"a": Side.BUY, "b": {3, 1}, "c": datetime(2025, 1, 1, tzinfo=UTC)},
         {"a": 1, "b": [1, 3], "c": "2025-01-01T00:00:00Z"}, []),
        (MappingProxyType({"a": 1, 2: "b"}), {"a": 1, "2": "b"}, []),
    ],
    ids=range(14),
)  # fmt: skip
def test_whatever_is_handed_over_is_kept_as_far_as_it_can_be(path, given, kept, wrong):
    with begin(path) as run:
        run.event("StateChange", at(1), given)
    ((properties, found),) = stored(path)
    assert [entry["Field"] for entry in found] == wrong
    if wrong:
        assert str(properties["_raw"]).startswith(str(kept["_raw"])) or properties == kept
        assert len(str(properties["_raw"])) <= 10_000
    else:
        assert properties == kept


def test_decimals_keep_every_digit(path):
    with begin(path) as run:
        run.event("RiskEvent", at(1), {"RiskType": "x", "Threshold": Decimal("0.10000000000000000000001")})
    assert ask(path, "SELECT properties FROM events") == [('{"RiskType":"x","Threshold":0.10000000000000000000001}',)]


@pytest.mark.parametrize(
    "said, wrong",
    [
        ({"kind": "OrderPlaced"}, "EventType"),
        ({"severity": "Fatal"}, "Severity"),
        ({"category": "Other"}, "Category"),
        ({"at": "yesterday"}, "Timestamp"),
        ({"at": None}, "Timestamp"),
        ({"at": 5}, "Timestamp"),
        ({"at": True}, "Timestamp"),
        ({"at": 2**200}, "Timestamp"),
        ({"at": float("nan")}, "Timestamp"),
        ({"at": NoTime(2025, 1, 1)}, "Timestamp"),
        ({"at": at(-1)}, "Timestamp"),
        ({"event_id": "x"}, "EventId"),
        ({"parent": "x"}, "ParentEventId"),
        ({"parent": guid("me"), "event_id": guid("me")}, "ParentEventId"),
    ],
    ids=str,
)
def test_an_event_is_kept_whatever_else_is_wrong_with_it(path, said, wrong):
    with begin(path) as run:
        run.event("RiskEvent", at(2), {"RiskType": "x"})
        run.event(**{"kind": "RiskEvent", "at": at(3), "properties": {"RiskType": "x"}, **said})
    assert [field for field, _ in errors_of(path)] == [wrong]
    assert events(path) == 2


@pytest.mark.parametrize(
    "when",
    [
        1_735_689_600, 1_735_689_600.0, 1_735_689_600_123, 1_735_689_600_123_456_789,
        np.int64(1_735_689_600_123_456_789), np.datetime64("2025-01-01T00:00:00.123456789"), OwnTime(2025, 1, 1),
        np.datetime64("2025-01-01T00:00:00", "s"),
    ],
    ids=repr,
)  # fmt: skip
def test_a_time_may_be_told_as_other_engines_have_it(path, when):
    with begin(path, start=when, end=when, created_at=when) as run:
        run.event("RiskEvent", when, {"RiskType": "x"})
    ((moment,),) = ask(path, "SELECT at FROM events")
    assert ask(path, "SELECT started, ended, created FROM runs") == [(moment, moment, moment)]
    assert moment in (1_735_689_600_000_000, 1_735_689_600_123_000, 1_735_689_600_123_456)
    assert errors_of(path) == []


def test_parameters_may_hold_what_engines_have(path):
    said = {"fee": Decimal("0.0010"), "since": datetime(2025, 1, 1, tzinfo=UTC), "side": Side.BUY, "n": np.int64(3)}
    with EventLog.open(path) as log:
        log.run("S", said)
        log.run("S", dict(reversed(said.items())))
        with pytest.raises(EventLogError, match="parameters"):
            log.run("S", {"odd": Odd()})
    rows = ask(path, "SELECT parameters, config_hash FROM runs")
    assert rows[0] == rows[1]
    assert rows[0][0] == '{"fee":0.0010,"n":3,"side":1,"since":"2025-01-01T00:00:00Z"}'


def test_a_name_that_is_no_guid_still_joins_parent_and_child(path):
    with begin(path) as run:
        run.event("StateChange", at(1), {}, event_id="order 1")
        run.event("StateChange", at(2), {}, parent="order 1")
    assert ask(path, "SELECT count(*) FROM events c JOIN events p ON p.event_id = c.parent") == [(1,)]


def test_the_check_of_order_ids_can_be_switched_off(path):
    with begin(path, guids=False) as run:
        run.trade(at(1), "AAPL", "Buy", 1, 1, order_id="17")
    assert errors_of(path) == []


def test_an_id_that_is_taken_is_exchanged_and_nothing_is_lost(path):
    with EventLog.open(path, batch=2) as log, log.run() as run:
        for _ in range(5):
            run.event("StateChange", at(1), {}, event_id=guid("same"))
    assert ask(path, "SELECT count(DISTINCT event_id), count(errors) FROM events") == [(5, 4)]
    assert ask(path, "SELECT sum(events) FROM counts") == [(5,)]


def test_fresh_ids_are_guids_in_the_order_of_taking(path):
    with EventLog.open(path) as log:
        ids = [log.fresh_id() for _ in range(1000)]
    assert ids == sorted(set(ids))
    assert {UUID(one).version for one in ids} == {7}
    assert {UUID(one).variant for one in ids} == {RFC_4122}


def test_a_batch_is_written_when_it_is_full_and_the_rest_at_the_end(path):
    with begin(path) as run:
        for number in range(2500):
            run.risk(at(1), "x")
            if number in (998, 999):
                assert events(path) == (0 if number == 998 else 1000)
    assert events(path) == 2500


def test_no_batch_grows_older_than_it_may(path):
    with EventLog.open(path, flush_s=0.01) as log, log.run() as run:
        run.risk(at(1), "x")
        give_up = time.monotonic() + PATIENCE_S
        while not events(path):
            assert time.monotonic() < give_up


def test_a_run_that_fails_keeps_what_it_wrote_and_is_marked(path):
    with suppress(ZeroDivisionError), begin(path) as run:
        run.risk(at(1), "x")
        raise ZeroDivisionError
    assert (events(path), ask(path, "SELECT failed, completed IS NOT NULL FROM runs")) == (1, [(1, 1)])


def program(text: str, path: Path, **kwargs) -> subprocess.Popen[str]:
    code = "from quantdeck.events import EventLog\nimport os, signal, sys\n" + textwrap.dedent(text)
    return subprocess.Popen([sys.executable, "-c", code, str(path)], text=True, stdout=subprocess.PIPE, **kwargs)


def test_a_killed_program_loses_the_open_batch_and_nothing_else(path):
    dying = program(
        """
        run = EventLog.open(sys.argv[1]).run()
        for number in range(5432):
            run.risk("2025-01-01T00:00:00Z", "x")
        os.kill(os.getpid(), signal.SIGKILL)
        """,
        path,
    )
    dying.communicate(timeout=PATIENCE_S)
    assert dying.returncode == -signal.SIGKILL
    assert events(path) == 5000
    assert ask(path, "PRAGMA integrity_check") == [("ok",)]
    assert ask(path, "SELECT sum(events) FROM counts") == [(5000,)]
    assert ask(path, "SELECT completed FROM runs") == [(None,)]


@pytest.mark.parametrize("end", ["", "sys.exit(3)", "raise KeyError('x')"])
def test_a_program_that_ends_without_closing_loses_nothing(path, end):
    careless = program(
        f"""
        run = EventLog.open(sys.argv[1]).run()
        for number in range(42):
            run.risk("2025-01-01T00:00:00Z", "x")
        {end}
        """,
        path,
        stderr=subprocess.DEVNULL,
    )
    careless.communicate(timeout=PATIENCE_S)
    assert events(path) == 42


def test_of_several_logs_that_are_left_open_one_that_is_lost_takes_no_other_with_it(path):
    careless = program(
        """
        for name in ("a", "b", "c", "d"):
            log = EventLog.open(sys.argv[1] + name)
            log.run().risk("2025-01-01T00:00:00Z", "x")
            globals()[name] = log
        os.unlink(sys.argv[1] + "b")
        """,
        path,
        stderr=subprocess.DEVNULL,
    )
    careless.communicate(timeout=PATIENCE_S)
    assert [events(Path(f"{path}{name}")) for name in "acd"] == [1, 1, 1]


def test_several_programs_and_threads_write_at_once_and_lose_nothing(path):
    text = """
        with EventLog.open(sys.argv[1], batch=50) as log, log.run() as run:
            for number in range(700):
                run.risk("2025-01-01T00:00:00Z", "x")
        """
    programs = [program(text, path) for _ in range(3)]
    with EventLog.open(path, batch=50) as log, log.run() as run:
        threads = [threading.Thread(target=lambda: [run.risk(at(1), "x") for _ in range(300)]) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for one in programs:
        one.communicate(timeout=PATIENCE_S)
    assert [one.returncode for one in programs] == [0, 0, 0]
    assert events(path) == 3 * 700 + 900
    assert ask(path, "SELECT count(*), sum(events) FROM (SELECT sum(events) AS events FROM counts GROUP BY run)") == [
        (4, 3000)
    ]


def test_a_log_that_is_locked_for_too_long_says_so_and_keeps_what_it_was_given(path):
    with EventLog.open(path, batch=2, busy_s=0.05) as log, log.run() as run:
        run.risk(at(1), "x")
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(EventLogError, match="locked by another program"):
            run.risk(at(1), "x")
        other.close()
        run.risk(at(1), "x")
    assert events(path) == 3


def test_a_file_that_was_removed_meanwhile_is_missed_aloud(path):
    log = EventLog.open(path)
    run = log.run()
    run.risk(at(1), "x")
    for file in path.parent.iterdir():
        file.unlink()
    with pytest.raises(EventLogError, match="removed or exchanged"):
        log.flush()
    with pytest.raises(EventLogError, match="removed or exchanged"):
        log.close()


def test_what_is_no_log_of_ours_is_not_written_into(tmp_path):
    for name, script, said in (
        ("theirs", SCHEMA, "original program's schema"),
        ("other", "CREATE TABLE x (y)", "another program's database"),
        ("newer", "PRAGMA application_id = 0x51444556; PRAGMA user_version = 99", "newer quantdeck"),
    ):
        place = tmp_path / f"{name}.db"
        with closing(sqlite3.connect(place)) as connection:
            connection.executescript(script)
        before = place.read_bytes()
        with pytest.raises(EventLogError, match=said):
            EventLog.open(place)
        assert place.read_bytes()[100:] == before[100:]
    rubbish = tmp_path / "rubbish.db"
    rubbish.write_bytes(b"rubbish " * 1000)
    with pytest.raises(EventLogError, match="damaged"):
        EventLog.open(rubbish)
    with pytest.raises(EventLogError, match="cannot be opened"):
        EventLog.open(rubbish / "below" / "events.db")


def test_a_run_says_what_cannot_be(path):
    with EventLog.open(path) as log:
        for said, match in (
            ({"run_id": "x"}, "must be a GUID"),
            ({"start": "soon"}, "created_at"),
            ({"start": at(2), "end": at(1)}, "ends before it starts"),
        ):
            with pytest.raises(EventLogError, match=match):
                log.run(**said)
        log.run(run_id=RUN)
        with pytest.raises(EventLogError, match="already"):
            log.run(run_id=RUN)
        with pytest.raises(EventLogError, match="no run"):
            log.rejoin(uuid4())
    with pytest.raises(EventLogError, match="closed"):
        log.run()
    log.close()


def test_a_run_can_be_gone_on_with(path):
    with begin(path) as run:
        run.risk(at(1), "x")
    with EventLog.open(path) as log:
        again = log.rejoin(RUN)
        assert ask(path, "SELECT completed FROM runs") == [(None,)]
        again.risk("nonsense", "x")
        again.finish()
    assert ask(path, "SELECT count(*), count(DISTINCT at) FROM events") == [(2, 1)]


def test_another_process_must_open_the_log_itself(path):
    parent = program(
        """
        log = EventLog.open(sys.argv[1])
        run = log.run()
        run.risk("2025-01-01T00:00:00Z", "x")
        if not (child := os.fork()):
            try:
                run.risk("2025-01-01T00:00:00Z", "x")
            except Exception as error:
                print(error, flush=True)
            sys.exit(0)
        os.waitpid(child, 0)
        log.close()
        """,
        path,
    )
    said, _ = parent.communicate(timeout=PATIENCE_S)
    assert "opened by another process" in said
    assert events(path) == 1


def test_a_run_without_a_range_has_that_of_its_events(path):
    with begin(path, start=None, end=None) as run:
        for hours in (5, 2, 9):
            run.risk(at(hours), "x")
    (found,) = ask(path, "SELECT ended - started FROM runs")
    assert found == (timedelta(hours=7) // timedelta(microseconds=1),)


def test_the_file_is_its_owners_alone(path):
    with begin(path):
        assert {oct(os.stat(file).st_mode & 0o777) for file in path.parent.iterdir()} == {"0o600"}  # noqa: PTH116
