"""query_event_sequence, through a client. Which chains there are: tests/sources/test_events_port.py."""

from __future__ import annotations

import pytest

from quantdeck.settings import EventLog as Limits
from tests.support.contracts import contract_of
from tests.support.events import RUN, at, guid

PATTERN = ["TradeExecution", "PositionUpdate"]


@pytest.fixture
async def chained(events, run):
    with run() as one:
        for name in ("whole", "broken"):
            one.event("TradeExecution", at(1), {"SecuritySymbol": "A"}, event_id=guid(name))
        one.position(at(2), "A", 1, 1, parent=guid("whole"))
    return events


async def test_answers_sequences_in_the_specs_shape(chained):
    body = await chained("query_event_sequence", runId=RUN, sequencePattern=PATTERN)
    promised = contract_of("backtest_events")["results"]["EventSequenceResult"]
    (sequence,) = body["sequences"]
    assert sequence.keys() == promised["sequences"][0].keys()
    assert (sequence["rootEventId"], sequence["complete"], sequence["missingEventTypes"]) == (guid("whole"), True, None)
    assert [event["parentEventId"] for event in sequence["events"]] == [None, guid("whole")]
    assert body["metadata"].pop("queryTimeMs") >= 0
    assert body["metadata"] == {
        "totalSequences": 1, "returnedCount": 1, "pageIndex": 0, "pageSize": 50, "hasMore": False, "truncated": False,
    }  # fmt: skip


async def test_incomplete_ones_are_told_with_what_they_lack(chained):
    asked = {"runId": RUN, "sequencePattern": [*PATTERN, "PositionUpdate"], "findIncomplete": True}
    body = await chained("query_event_sequence", **asked)
    told = {one["rootEventId"]: (one["complete"], one["missingEventTypes"]) for one in body["sequences"]}
    assert told == {
        guid("whole"): (False, ["PositionUpdate"]),
        guid("broken"): (False, ["PositionUpdate", "PositionUpdate"]),
    }


async def test_a_root_is_always_answered_with_its_chain(chained):
    for name, find in (("whole", True), ("broken", False)):
        asked = {"runId": RUN, "rootEventId": guid(name), "sequencePattern": PATTERN, "findIncomplete": find}
        (sequence,) = (await chained("query_event_sequence", **asked))["sequences"]
        assert (sequence["rootEventId"], sequence["complete"]) == (guid(name), name == "whole")
    wrong = {"runId": RUN, "rootEventId": guid("whole"), "sequencePattern": ["OrderPlaced", "TradeExecution"]}
    (sequence,) = (await chained("query_event_sequence", **wrong))["sequences"]
    assert sequence["missingEventTypes"] == ["StateChange", "TradeExecution"]


@pytest.mark.parametrize(
    "arguments, code",
    [
        ({"findIncomplete": True}, "INVALID_PARAMETER"),
        ({"findIncomplete": True, "sequencePattern": []}, "INVALID_PARAMETER"),
        ({"sequencePattern": ["OrderFilled"]}, "INVALID_PARAMETER"),
        ({"sequencePattern": ["RiskEvent"] * 101}, "INVALID_PARAMETER"),
        ({"rootEventId": "x"}, "INVALID_PARAMETER"),
        ({"rootEventId": "' OR 1=1 --"}, "INVALID_PARAMETER"),
        ({"maxDepth": 0}, "INVALID_PARAMETER"),
        ({"maxDepth": 51}, "INVALID_PARAMETER"),
        ({"pageSize": 101}, "INVALID_PARAMETER"),
        ({"rootEventId": guid("nobody's")}, "EVENT_NOT_FOUND"),
    ],
    ids=str,
)
async def test_fails_with_a_declared_code(chained, arguments, code):
    said, message = await chained.refused("query_event_sequence", **{"runId": RUN, **arguments})
    assert said == code
    if "OrderFilled" in str(arguments):
        assert "'OrderPlaced'" in message


async def test_an_event_of_another_run_is_not_found(chained, run):
    with run("other") as other:
        theirs = other.risk(at(1), "x")
    asked = {"runId": RUN, "rootEventId": theirs}
    assert (await chained.refused("query_event_sequence", **asked))[0] == "EVENT_NOT_FOUND"


async def test_a_page_is_cut_to_the_limit_by_whole_sequences(serve, run):
    with run() as one:
        for number in range(9):
            root = one.event("TradeExecution", at(number), {"Note": "x" * 500})
            one.position(at(number), "A", 1, 1, parent=root)
    events = await serve("backtest-events", event_log=Limits(reply_kb=6))
    body = await events("query_event_sequence", runId=RUN)
    metadata = body["metadata"]
    assert (metadata["truncated"], metadata["hasMore"], metadata["totalSequences"]) == (True, True, 9)
    assert 0 < len(body["sequences"]) == metadata["returnedCount"] < 9
    assert all(len(one["events"]) == 2 for one in body["sequences"])
