"""aggregate_metrics, through a client. The arithmetic: tests/sources/test_events_port.py."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.events import RUN, at

ASK = {"runId": RUN, "eventType": "TradeExecution", "propertyPath": "$.Price"}
ALL = ["count", "sum", "avg", "min", "max", "stddev"]


@pytest.fixture
async def priced(events, run):
    with run() as one:
        for hour, price in enumerate((100, 110, 120, 130, 140)):
            one.trade(at(hour), "AAPL", "Buy", 1, price, Nested={"Deep_1": {"x": price - 69}})
        one.event("TradeExecution", at(5), {"Price": "n/a"})
    return events


async def test_answers_what_was_asked_for_and_null_for_the_rest(priced):
    body = await priced("aggregate_metrics", **ASK, aggregations=ALL)
    figures = body["aggregations"]
    assert figures.pop("stddev") == pytest.approx(14.142, abs=1e-3)
    assert figures == {"count": 6, "sum": 600, "avg": 120, "min": 100, "max": 140}
    metadata = body["metadata"]
    assert metadata.pop("queryTimeMs") >= 0
    assert metadata == {
        "totalEvents": 6, "valueCount": 5, "eventType": "TradeExecution", "propertyPath": "$.Price",
    }  # fmt: skip
    alike: list[dict[str, Any]] = [
        {},
        {"aggregations": []},
        {"aggregations": None},
        {"aggregations": ["avg", "count", "avg"]},
    ]
    for asked in alike:
        figures = (await priced("aggregate_metrics", **ASK, **asked))["aggregations"]
        assert figures == {"count": 6, "sum": None, "avg": 120, "min": None, "max": None, "stddev": None}


async def test_a_window_and_a_nested_path_narrow_it(priced):
    window = {"startTime": "2025-01-01T01:00:00Z", "endTime": "2025-01-01T03:00:00Z"}
    figures = (await priced("aggregate_metrics", **ASK, **window, aggregations=ALL))["aggregations"]
    assert (figures["count"], figures["sum"]) == (3, 360)
    nested = {**ASK, "propertyPath": "$.Nested.Deep_1.x"}
    assert (await priced("aggregate_metrics", **nested))["aggregations"]["avg"] == 51


async def test_of_no_events_the_count_is_zero_and_the_rest_null(priced):
    body = await priced("aggregate_metrics", **{**ASK, "eventType": "RiskEvent"}, aggregations=ALL)
    assert body["aggregations"] == {"count": 0, "sum": None, "avg": None, "min": None, "max": None, "stddev": None}


@pytest.mark.parametrize(
    "said",
    ["$..a", "$.a.", "$.", "$", "", "Price", "$.a..b", "$.a[0]", "$.a b", "$.a'", '$."a"', "$.a\n", "$.ä", "$.a') --",
     "$." + "a" * 600],
)  # fmt: skip
async def test_a_path_that_is_none_is_an_invalid_path(priced, said):
    code, message = await priced.refused("aggregate_metrics", **{**ASK, "propertyPath": said})
    assert (code, "$.Price" in message) == ("INVALID_JSON_PATH", True)


@pytest.mark.parametrize(
    "arguments, code",
    [
        ({"propertyPath": 5}, "INVALID_PARAMETER"),
        ({"propertyPath": None}, "INVALID_PARAMETER"),
        ({"eventType": "Trade"}, "INVALID_PARAMETER"),
        ({"aggregations": ["median"]}, "INVALID_PARAMETER"),
        ({"aggregations": "avg"}, "INVALID_PARAMETER"),
        ({"startTime": "2025-01-02T00:00:00Z", "endTime": "2025-01-01T00:00:00Z"}, "INVALID_TIME_RANGE"),
    ],
    ids=str,
)
async def test_fails_with_a_declared_code(priced, arguments, code):
    assert (await priced.refused("aggregate_metrics", **{**ASK, **arguments}))[0] == code


async def test_figures_beyond_all_numbers_are_null(events, run):
    with run() as one:
        for _ in range(3):
            one.trade(at(1), "AAPL", "Buy", 1, 1.7e308)
    figures = (await events("aggregate_metrics", **ASK, aggregations=ALL))["aggregations"]
    assert (figures["count"], figures["sum"], figures["max"], figures["stddev"]) == (3, None, 1.7e308, 0)
