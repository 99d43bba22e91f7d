"""get_events_by_entity, through a client. What is found: tests/sources/test_events_port.py."""

from __future__ import annotations

import pytest

from tests.support.events import RUN, at, guid

ASK = {"runId": RUN, "entityType": "OrderId", "entityValue": guid("o")}


async def test_answers_the_life_of_an_order_in_time(events, run):
    with run() as one:
        one.trade(at(3), "AAPL", "Buy", 1, 10, order_id=guid("o"))
        one.order(at(1), "AAPL", "Buy", 1, order_id=guid("o"))
        one.rejection(at(2), "AAPL", "No margin", order_id=guid("o"))
        one.rejection(at(2), "AAPL", "No margin", order_id=guid("other"))
    body = await events("get_events_by_entity", **ASK)
    assert [event["eventType"] for event in body["events"]] == ["StateChange", "OrderRejection", "TradeExecution"]
    some = await events("get_events_by_entity", **ASK, eventTypes=["TradeExecution", "OrderRejection"], pageSize=1)
    assert (some["events"][0]["eventType"], some["metadata"]["totalCount"]) == ("OrderRejection", 2)
    every = await events("get_events_by_entity", **ASK, eventTypes=[])
    assert every["metadata"]["totalCount"] == 3


@pytest.mark.parametrize(
    "value", ["' OR 1=1 --", '"; DROP TABLE events; --', "$..a", "%", "_", "\0", "x" * 100_000, "", "☃"]
)
async def test_whatever_is_asked_for_is_only_ever_compared(events, run, value):
    with run() as one:
        one.order(at(1), "AAPL", "Buy", 1, order_id=guid("o"))
    for entity in ("OrderId", "SecuritySymbol", "PositionId", "IndicatorName"):
        body = await events("get_events_by_entity", **{**ASK, "entityType": entity, "entityValue": value})
        assert body["metadata"]["totalCount"] == 0
    assert (await events("get_events_by_entity", **ASK))["metadata"]["totalCount"] == 1


@pytest.mark.parametrize(
    "arguments",
    [
        {"entityType": "orderId"}, {"entityType": "Properties') OR 1=1 --"}, {"entityValue": 42},
        {"eventTypes": ["Trade"]}, {"eventTypes": "TradeExecution"}, {"eventTypes": [1]}, {"pageSize": 1001},
        {"eventTypeFilter": "TradeExecution"},
    ],
    ids=str,
)  # fmt: skip
async def test_fails_with_a_declared_code(events, run, arguments):
    with run():
        pass
    assert (await events.refused("get_events_by_entity", **{**ASK, **arguments}))[0] == "INVALID_PARAMETER"
