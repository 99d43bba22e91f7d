"""get_historical_performance, through a client."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from quantdeck.core.clock import Now
from quantdeck.sources.sql.performance import Environment, Measured, Performance
from tests.servers.conftest import Served
from tests.support.desk import LATER, NOON, add_implementation, add_spec, uid

ID = uid("moving")
DAY = timedelta(days=1)
WEEK = Measured(ID, "BTC/USD", "PAPER", "1h", NOON - 8 * DAY, NOON - DAY, 4, 3, 0.02, 1.5)


def week(end: datetime, **said: object) -> Measured:
    return replace(WEEK, start=end - 7 * DAY, end=end, **said)  # type: ignore[arg-type]


@pytest.fixture
async def backtests(serve) -> Served:
    server: Served = await serve("backtest-mcp")
    await add_implementation(server.desk, "moving", await add_spec(server.desk))
    return server


async def measure(server: Served, *weeks: Measured, known_at: datetime = NOON) -> None:
    await server.app.runtime.source(Performance).save(weeks, as_of=Now.of(known_at, fixed=True))


async def ask(server: Served, **said: object) -> dict[str, object]:
    data: dict[str, object] = (await server("get_historical_performance", strategy_id=ID, **said))["data"]
    return data


async def test_is_answered_from_each_engine(serve, database):
    server: Served = await serve("backtest-mcp", **database)
    await add_implementation(server.desk, "moving", await add_spec(server.desk))
    assert (await server.refused("get_historical_performance", strategy_id=ID))[0] == "NO_PERFORMANCE_DATA"
    await measure(server, WEEK)
    assert (await ask(server))["sharpe"] == 1.5


async def test_adds_up_what_was_measured_and_tells_it_by_month(backtests):
    december, january = datetime(2025, 12, 22, tzinfo=UTC), datetime(2026, 1, 12, tzinfo=UTC)
    await measure(backtests, week(december, trades=1, winning=0, earned=-0.01, sharpe=-2.5), week(january))
    data = await ask(backtests)
    assert data == {
        "total_signals": 5,
        "accuracy": 0.6,
        "avg_return": pytest.approx(0.002),
        "sharpe": pytest.approx(0.7),
        "performance_by_month": [
            {"month": "2025-12", "signals": 1, "accuracy": 0.0, "return": -0.01, "sharpe": -2.5},
            {"month": "2026-01", "signals": 4, "accuracy": 0.75, "return": 0.02, "sharpe": 1.5},
        ],
        "environment": "PAPER",
    }


@pytest.mark.parametrize("period, days", [("1w", 7), ("1m", 30), ("3m", 90), ("6m", 180), ("1y", 365)])
async def test_a_period_is_what_ended_in_so_many_days(backtests, period, days):
    second = timedelta(seconds=1)
    await measure(backtests, week(NOON - days * DAY, trades=9), week(NOON - days * DAY + second))
    assert (await ask(backtests, period=period))["total_signals"] == 4


async def test_three_months_are_asked_for_unless_said(backtests):
    await measure(backtests, week(NOON - 80 * DAY), week(NOON - 100 * DAY))
    assert await ask(backtests) == await ask(backtests, period="3m")
    assert (await ask(backtests, period="6m"))["total_signals"] == 8


async def test_what_was_traded_is_told_before_what_would_have_been_and_never_added_to_it(backtests):
    weakest_first: list[tuple[Environment, int]] = [("BACKTEST", 5), ("PAPER", 6), ("LIVE", 7)]
    for environment, trades in weakest_first:
        await measure(backtests, replace(WEEK, environment=environment, trades=trades))
        data = await ask(backtests, force_refresh=True)
        assert (data["environment"], data["total_signals"]) == (environment, trades)


async def test_a_symbol_can_be_asked_for_in_any_spelling(backtests):
    await measure(backtests, WEEK, replace(WEEK, symbol="ETH/USD", trades=6))
    assert (await ask(backtests))["total_signals"] == 10
    assert (await ask(backtests, symbol="eth-usd"))["total_signals"] == 6


async def test_weeks_without_a_trade_have_no_accuracy(backtests):
    await measure(backtests, replace(WEEK, trades=0, winning=0, earned=0.0, sharpe=None))
    data = await ask(backtests)
    assert (data["total_signals"], data["accuracy"], data["avg_return"], data["sharpe"]) == (0, None, None, None)


async def test_is_kept_for_five_minutes(backtests):
    await measure(backtests, WEEK)
    asked = {"strategy_id": ID}
    assert (await backtests("get_historical_performance", **asked))["_metadata"]["cached"] is False
    again = (await backtests("get_historical_performance", **asked, period="3m"))["_metadata"]
    assert again["cached"] is True
    assert 290 < again["cache_ttl_remaining"] <= 300
    fresh = await backtests("get_historical_performance", **asked, force_refresh=True)
    assert fresh["_metadata"]["cached"] is False


@pytest.mark.parametrize(
    "arguments, code",
    [
        ({"strategy_id": "nobody"}, "STRATEGY_NOT_FOUND"),
        ({"strategy_id": uid("nobody")}, "STRATEGY_NOT_FOUND"),
        ({"strategy_id": "SMA_RSI"}, "STRATEGY_NOT_FOUND"),
        ({"period": "2w"}, "INVALID_PERIOD"),
        ({"period": "1M"}, "INVALID_PERIOD"),
        ({"period": 3}, "INVALID_PERIOD"),
        ({"symbol": "ETH/USD"}, "NO_PERFORMANCE_DATA"),
        ({"period": "1w"}, "NO_PERFORMANCE_DATA"),
        ({"strategy_id": uid("other")}, "NO_PERFORMANCE_DATA"),
        ({"symbol": "?"}, "INVALID_PARAMETER"),
        ({"strategy_id": None}, "INVALID_PARAMETER"),
        ({"limit": 3}, "INVALID_PARAMETER"),
    ],
    ids=str,
)
async def test_fails_with_a_declared_code(backtests, arguments, code):
    await add_implementation(backtests.desk, "other", uid("SMA_RSI"))
    await measure(backtests, week(NOON - 20 * DAY))
    asked = {"strategy_id": ID, **arguments}
    assert (await backtests.refused("get_historical_performance", **asked))[0] == code


async def test_an_unknown_strategy_is_told_before_missing_figures(backtests):
    error = (await backtests("get_historical_performance", strategy_id=uid("nobody"), symbol="ETH/USD"))["error"]
    assert error["code"] == "STRATEGY_NOT_FOUND"


async def test_a_home_without_a_desk_answers_what_to_do(serve_as_it_is):
    server = await serve_as_it_is("backtest-mcp")
    assert (await server.refused("get_historical_performance", strategy_id=ID))[0] == "DATABASE_ERROR"


async def test_what_became_known_later_is_in_no_answer(backtests):
    await measure(backtests, week(NOON - 20 * DAY))
    before = await ask(backtests)
    await measure(backtests, WEEK, known_at=LATER)
    await measure(backtests, week(LATER))
    assert await ask(backtests, force_refresh=True) == before
