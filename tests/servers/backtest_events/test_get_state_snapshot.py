"""get_state_snapshot, through a client. What is reconstructed: tests/sources/test_events_port.py."""

from __future__ import annotations

import json

import pytest

from quantdeck.settings import EventLog as Limits
from tests.support.contracts import contract_of
from tests.support.events import RUN, at, guid

ASK = {"runId": RUN, "timestamp": "2025-01-01T14:30:00Z"}


async def test_answers_the_state_in_the_specs_shape(events, run):
    with run() as one:
        one.position(at(14), "AAPL", 100, 175.5, unrealized_pnl=250, realized_pnl=500)
        one.indicator(at(14), "AAPL", "SMA_10", 176.2, {"Period": 10})
        one.order(at(14), "AAPL", "Sell", 100, 180, order_id=guid("o"))
        one.trade(at(14.5), "AAPL", "Sell", 40, 180, order_id=guid("o"))
        one.position(at(15), "AAPL", 60, 175.5)
    body = await events("get_state_snapshot", **ASK, securitySymbol="AAPL")
    promised = contract_of("backtest_events")["results"]["StateSnapshot"]
    assert body.keys() == promised.keys()
    assert body["state"] == {
        "positions": [
            {"securitySymbol": "AAPL", "quantity": 100, "averagePrice": 175.5, "unrealizedPnL": 250, "realizedPnL": 500}
        ],
        "indicators": [{"name": "SMA_10", "securitySymbol": "AAPL", "value": 176.2, "parameters": {"Period": 10}}],
        "activeOrders": [
            {"orderId": guid("o"), "securitySymbol": "AAPL", "direction": "Sell", "quantity": 60, "price": 180}
        ],
        "pnl": {"total": 750, "realized": 500, "unrealized": 250},
    }
    assert (body["timestamp"], body["runId"]) == ("2025-01-01T14:30:00Z", RUN)
    assert (body["metadata"]["reconstructed"], body["metadata"]["pnlSource"]) == (True, "PositionUpdate")
    less = await events("get_state_snapshot", **ASK, includeIndicators=False, includeActiveOrders=False)
    assert (less["state"]["indicators"], less["state"]["activeOrders"]) == ([], [])
    assert (await events("get_state_snapshot", **ASK, securitySymbol=""))["state"] == body["state"]


async def test_what_events_do_not_tell_is_null(events, run):
    with run() as one:
        one.event("PositionUpdate", at(1), {"SecuritySymbol": "AAPL", "Quantity": "a lot"})
        one.event("StateChange", at(1), {"OrderId": 42, "OrderStatus": "Placed"})
        one.event("IndicatorCalculation", at(1), {"IndicatorName": "SMA", "Value": True, "Parameters": "none"})
    state = (await events("get_state_snapshot", **ASK))["state"]
    (position,), (order,), (indicator,) = state["positions"], state["activeOrders"], state["indicators"]
    assert set(position.values()) == {"AAPL", None}
    assert order == {"orderId": "42", "securitySymbol": "", "direction": None, "quantity": None, "price": None}
    assert indicator == {"name": "SMA", "securitySymbol": "", "value": None, "parameters": {}}
    assert state["pnl"] == {"total": 0, "realized": 0, "unrealized": 0}


@pytest.mark.parametrize(
    "timestamp, code",
    [
        ("2024-12-31T00:00:00Z", None),
        ("2025-12-31T00:00:00Z", None),
        ("2026-01-15T11:59:59Z", None),
        ("2026-01-15T12:00:01Z", "INVALID_TIME_RANGE"),
        ("2025-01-01", "INVALID_PARAMETER"),
        ("", "INVALID_PARAMETER"),
        ("2025-13-01T00:00:00Z", "INVALID_PARAMETER"),
    ],
)
async def test_a_time_that_neither_clock_nor_run_has_reached_is_refused(events, run, timestamp, code):
    with run():
        pass
    body = await events("get_state_snapshot", runId=RUN, timestamp=timestamp)
    assert body.get("error", {}).get("code") == code


async def test_a_state_too_large_for_an_answer_is_said_with_what_to_leave_out(serve, run):
    with run() as one:
        for number in range(60):
            one.position(at(1), f"S{number}", 1, 1)
    events = await serve("backtest-events", event_log=Limits(reply_kb=4))
    code, message = await events.refused("get_state_snapshot", **ASK)
    assert (code, "securitySymbol" in message) == ("RESULT_TOO_LARGE", True)
    assert len((await events("get_state_snapshot", **ASK, securitySymbol="S7"))["state"]["positions"]) == 1


async def test_what_is_too_deep_for_clients_is_told_as_text(events, run):
    """The SDK's own client waits for ever for an answer that is two hundred levels deep."""
    deep: dict[str, object] = {}
    for _ in range(200):
        deep = {"a": deep}
    with run(parameters=deep) as one:
        one.indicator(at(1), "AAPL", "SMA", 1, deep)
        one.indicator(at(1), "AAPL", "EMA", 1, {"Period": {"a": [1]}})
    told = await events("get_state_snapshot", runId=RUN, timestamp="2025-06-01T00:00:00Z")
    parameters = {one["name"]: one["parameters"] for one in told["state"]["indicators"]}
    assert parameters == {"EMA": {"Period": {"a": [1]}}, "SMA": {"_raw": json.dumps(deep)}}
    listed = await events("list_backtest_runs")
    assert listed["runs"][0]["parameters"] == {"_raw": json.dumps(deep)}
    page = await events("get_events_by_type", runId=RUN, eventType="IndicatorCalculation")
    assert ["_raw" in event["properties"] for event in page["events"]] == [True, False]
