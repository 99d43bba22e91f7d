"""run_backtest, through a client. What the engine does is held elsewhere: tests/backtesting."""

from __future__ import annotations

import numpy as np
import pytest

from quantdeck.backtesting.engine import Costs, Metrics, Terms, run
from quantdeck.domain.calendars import NYSE, market_of
from quantdeck.domain.candles import Bars, resampled
from quantdeck.domain.spec_reader import read
from quantdeck.domain.timeframes import DAY, MINUTE, TIMEFRAMES
from quantdeck.settings import Backtests
from tests.servers.backtest_mcp.conftest import HOUR, MOVING, NOON_S, day, fill, hours, stored
from tests.support.bars import every, walk
from tests.support.desk import LATER, add_implementation, add_spec, uid
from tests.support.specs import spec

ID = uid("moving")
MIDNIGHT_S = NOON_S - NOON_S % 86_400
PROMISED = ("total_return", "sharpe_ratio", "max_drawdown", "win_rate", "trades")


def told(bars: Bars, symbol: str = "BTC/USD", costs: Costs | None = None, **numbers: int) -> Metrics:
    """What the engine makes of these bars."""
    strategy = read(**spec(**MOVING)).spec
    assert strategy is not None
    return run(strategy.instantiate(numbers), bars, Terms(market_of(symbol), costs=costs or Costs())).metrics


async def test_is_the_engines_on_the_bars_of_the_range(backtests):
    server = await backtests()
    bars = await fill(server, "BTC/USD", hours(3000))
    data = (await server("run_backtest", strategy_id=ID, symbol="btc_usd"))["data"]
    here = bars.between(MIDNIGHT_S - 90 * 86_400, NOON_S)
    metrics = told(here, fast=4)
    assert metrics.trades > 20
    assert {name: data[name] for name in PROMISED} == {name: metrics.stored()[name] for name in PROMISED}
    more = ("annualized_return", "sortino_ratio", "volatility", "profit_factor", "exposure")
    assert {name: data[name] for name in more} == {name: metrics.stored()[name] for name in more}
    about = {"timeframe": "1h", "bars": len(here), "start_date": "2025-10-17", "end_date": "2026-01-15", "run_id": None}
    assert {name: data[name] for name in about} == about


async def test_the_last_day_belongs_to_the_range_and_the_day_after_does_not(backtests):
    server = await backtests()
    bars = await fill(server, "BTC/USD", hours(3000))
    data = (
        await server("run_backtest", strategy_id=ID, symbol="BTC/USD", start_date="2025-12-01", end_date="2025-12-31")
    )["data"]
    here = bars.between(day("2025-12-01"), day("2026-01-01"))
    assert data["bars"] == len(here) == 31 * 24
    assert data["total_return"] == told(here, fast=4).total_return


@pytest.mark.parametrize("called", ["MOVING", " moving ", uid("MOVING")])
async def test_a_spec_by_its_name_or_id_runs_with_its_defaults(backtests, called):
    server = await backtests()
    bars = await fill(server, "BTC/USD", hours(3000))
    data = (await server("run_backtest", strategy_id=called, symbol="BTC/USD"))["data"]
    assert data["total_return"] == told(bars.between(MIDNIGHT_S - 90 * 86_400, NOON_S)).total_return


async def test_a_strategy_may_be_tried_on_another_symbol_at_that_markets_hours(backtests):
    server = await backtests()
    opens = [at for at in every(3600, NOON_S - 3000 * 3600, 3000) if any(NYSE.hours(at, at + 3600))]
    bars = await fill(server, "AAPL", walk(opens))
    data = (await server("run_backtest", strategy_id=ID, symbol="AAPL"))["data"]
    here = bars.between(MIDNIGHT_S - 90 * 86_400, NOON_S)
    assert data["sharpe_ratio"] == told(here, "AAPL", fast=4).sharpe_ratio != told(here, fast=4).sharpe_ratio


async def test_bars_of_another_length_can_be_asked_for(backtests):
    server = await backtests()
    bars = await fill(server, "BTC/USD", hours(3000))
    data = (await server("run_backtest", strategy_id=ID, symbol="BTC/USD", timeframe="4h"))["data"]
    here = resampled(bars.between(MIDNIGHT_S - 90 * 86_400, NOON_S), TIMEFRAMES["4h"])
    assert (data["timeframe"], data["bars"]) == ("4h", len(here))
    assert data["total_return"] == told(here, fast=4).total_return


async def test_a_series_of_longer_bars_is_tested_on_its_own_unless_said(backtests):
    server = await backtests()
    await fill(server, "BTC/USD", walk(every(86_400, MIDNIGHT_S - 300 * 86_400, 300)), DAY)
    asked = {"strategy_id": ID, "symbol": "BTC/USD", "start_date": "2025-06-01"}
    assert (await server("run_backtest", **asked))["data"]["timeframe"] == "1d"
    error = (await server("run_backtest", **asked, timeframe="1h"))["error"]
    assert (error["code"], error["details"]["available"]) == ("INVALID_PARAMETER", ["1d"])


async def test_fee_and_slippage_are_settings(backtests):
    server = await backtests(backtests=Backtests(fee=0.004, slippage=0.001))
    bars = await fill(server, "BTC/USD", hours(3000))
    data = (await server("run_backtest", strategy_id=ID, symbol="BTC/USD"))["data"]
    here = bars.between(MIDNIGHT_S - 90 * 86_400, NOON_S)
    assert data["total_return"] == told(here, costs=Costs(0.004, 0.001), fast=4).total_return


async def test_says_where_it_was_run_and_is_never_kept(backtests):
    server = await backtests()
    await fill(server, "BTC/USD", hours(3000))
    for _ in range(2):
        metadata = (await server("run_backtest", strategy_id=ID, symbol="BTC/USD"))["_metadata"]
        assert (metadata["source"], metadata["cached"], metadata["cache_ttl_remaining"]) == ("quantdeck", False, None)
    assert (await server.refused("run_backtest", strategy_id=ID, symbol="BTC/USD", force_refresh=True))[
        0
    ] == "INVALID_PARAMETER"


@pytest.mark.parametrize(
    "arguments, code",
    [
        ({"strategy_id": "nobody"}, "STRATEGY_NOT_FOUND"),
        ({"strategy_id": ""}, "STRATEGY_NOT_FOUND"),
        ({"strategy_id": uid("nobody")}, "STRATEGY_NOT_FOUND"),
        ({"strategy_id": "x" * 5000}, "STRATEGY_NOT_FOUND"),
        ({"strategy_id": "a\0b"}, "STRATEGY_NOT_FOUND"),
        ({"strategy_id": 7}, "INVALID_PARAMETER"),
        ({"symbol": "nope!"}, "INVALID_SYMBOL"),
        ({"symbol": "ZZZZ"}, "INVALID_SYMBOL"),
        ({"symbol": None}, "INVALID_SYMBOL"),
        ({"symbol": "DOGE/USD"}, "INSUFFICIENT_DATA"),
        ({"start_date": "2026-01-10"}, "INVALID_DATE_RANGE"),
        ({"start_date": "2026-01-09", "end_date": "2026-01-09"}, "INVALID_DATE_RANGE"),
        ({"start_date": "2026-01-09", "end_date": "2025-01-09"}, "INVALID_DATE_RANGE"),
        ({"start_date": "2027-01-01"}, "INVALID_DATE_RANGE"),
        ({"end_date": "2026-01-16"}, "INVALID_DATE_RANGE"),
        ({"end_date": "9999-12-31"}, "INVALID_DATE_RANGE"),
        ({"end_date": "0001-01-01"}, "INVALID_DATE_RANGE"),
        ({"start_date": "yesterday"}, "INVALID_DATE_RANGE"),
        ({"start_date": "20251201"}, "INVALID_DATE_RANGE"),
        ({"start_date": "2025-W49-1"}, "INVALID_DATE_RANGE"),
        ({"start_date": "2025-02-30"}, "INVALID_DATE_RANGE"),
        ({"start_date": "2025-12-01T00:00:00Z"}, "INVALID_DATE_RANGE"),
        ({"start_date": 20251201}, "INVALID_DATE_RANGE"),
        ({"start_date": "0001-01-01"}, "INSUFFICIENT_DATA"),
        ({"start_date": "2025-01-01"}, "INSUFFICIENT_DATA"),
        ({"start_date": "2026-01-08"}, "INSUFFICIENT_DATA"),
        ({"end_date": "2020-01-01"}, "INSUFFICIENT_DATA"),
        ({"timeframe": "1m"}, "INVALID_PARAMETER"),
        ({"timeframe": "2w"}, "INVALID_PARAMETER"),
        ({"parameters": {}}, "INVALID_PARAMETER"),
    ],
    ids=str,
)
async def test_fails_with_a_declared_code(backtests, arguments, code):
    server = await backtests()
    await fill(server, "BTC/USD", hours(3000))
    asked = {"strategy_id": ID, "symbol": "BTC/USD", "end_date": "2026-01-10", **arguments}
    assert (await server.refused("run_backtest", **asked))[0] == code


async def test_too_few_bars_say_how_many_there_are_and_from_when(backtests):
    server = await backtests()
    await fill(server, "BTC/USD", hours(99))
    error = (await server("run_backtest", strategy_id=ID, symbol="BTC/USD", start_date="2026-01-09"))["error"]
    assert error["code"] == "INSUFFICIENT_DATA"
    assert "2026-01-11T09:00:00Z to 2026-01-15T11:00:00Z" in error["message"]
    assert error["details"] == {
        "symbol": "BTC/USD", "timeframe": "1h", "required": 100, "available": 99, "expected": 155,
    }  # fmt: skip


@pytest.mark.parametrize("share, code", [(0.79, "INSUFFICIENT_DATA"), (0.81, "")])
async def test_a_range_of_which_a_fifth_is_missing_is_not_enough(backtests, share, code):
    server = await backtests()
    bars = hours(1200)
    kept = np.sort(np.random.default_rng(5).permutation(1200)[: round(1200 * share)])
    await fill(server, "BTC/USD", Bars(*(column[kept] for column in bars.columns())))
    first = {"start_date": "2025-11-26"}
    answer = await server("run_backtest", strategy_id=ID, symbol="BTC/USD", **first)
    assert answer.get("error", {"code": ""})["code"] == code


async def test_a_range_of_more_bars_than_allowed_says_how_many(backtests):
    server = await backtests(backtests=Backtests(bars=500))
    await fill(server, "BTC/USD", hours(3000))
    error = (await server("run_backtest", strategy_id=ID, symbol="BTC/USD"))["error"]
    assert (error["code"], error["details"]) == ("INVALID_DATE_RANGE", {"expected": 2171, "maximum": 500})


async def test_a_strategy_that_never_trades_has_figures_of_nothing(backtests):
    server = await backtests()
    await fill(server, "BTC/USD", hours(3000))
    never = [{"type": "BELOW", "indicator": "close", "params": {"value": 0.0}}]
    await add_spec(server.desk, **{**stored("NEVER", MOVING), "entry_conditions": never})
    data = (await server("run_backtest", strategy_id="NEVER", symbol="BTC/USD"))["data"]
    assert [data[name] for name in PROMISED] == [0.0, None, 0.0, None, 0]


async def test_prices_that_stand_still_or_are_none_have_no_ratio(backtests):
    server = await backtests()
    opens = every(3600, NOON_S - 3000 * 3600, 3000)
    for symbol, price in (("FLAT/USD", 100.0), ("OIL/USD", -5.0), ("ZERO/USD", 0.0)):
        await fill(server, symbol, Bars.of(opens, *([price] * 3000 for _ in range(4)), [1.0] * 3000))
        data = (await server("run_backtest", strategy_id=ID, symbol=symbol))["data"]
        assert (data["trades"], data["sharpe_ratio"], data["win_rate"]) == (0, None, None)


@pytest.mark.parametrize(
    "changed, said",
    [
        ({"parameters": {"fast": 0}}, "fast"),
        ({"parameters": {"fast": "many"}}, "must be a whole number"),
        ({"parameters": {"slow": 3}}, "is no parameter of MOVING"),
    ],
)
async def test_numbers_with_which_nothing_can_be_computed_are_said(backtests, changed, said):
    server = await backtests()
    await fill(server, "BTC/USD", hours(3000))
    odd = await add_implementation(server.desk, "odd", uid("MOVING"), **changed)
    code, sentence = await server.refused("run_backtest", strategy_id=odd, symbol="BTC/USD")
    assert code == "INVALID_PARAMETER"
    assert sentence.startswith("Invalid strategy")
    assert said in sentence


async def test_rules_that_another_program_stored_and_nobody_can_run_are_said(backtests):
    server = await backtests()
    await fill(server, "BTC/USD", hours(3000))
    strange = [{"id": "x", "type": "HEIKEN_ASHI_CLOSE", "params": {}}]
    await add_spec(server.desk, **{**stored("STRANGE", MOVING), "indicators": strange})
    await add_spec(server.desk, name="EMPTY")
    for name in ("STRANGE", "EMPTY"):
        code, sentence = await server.refused("run_backtest", strategy_id=name, symbol="BTC/USD")
        assert code == "INVALID_PARAMETER"
        assert "cannot be run" in sentence


async def test_another_programs_name_of_a_spec_is_no_obstacle(backtests):
    server = await backtests()
    await fill(server, "BTC/USD", hours(3000))
    named = await add_spec(server.desk, **stored("MY STRATEGY (v2)", MOVING))
    assert "data" in await server("run_backtest", strategy_id=named, symbol="BTC/USD")


async def test_without_a_desk_or_bars_it_says_what_to_set(serve_as_it_is):
    server = await serve_as_it_is("backtest-mcp")
    code, sentence = await server.refused("run_backtest", strategy_id="MOVING", symbol="BTC/USD")
    assert code == "DATABASE_ERROR"
    assert "quantdeck demo" in sentence


async def test_no_bar_that_closes_after_the_clock_is_in_it(backtests, serve):
    now, later = await backtests(), await serve("backtest-mcp", clock="2026-01-20T00:00:00Z")
    bars = hours(3000, NOON_S + 500 * 3600)
    cut = int(bars.time.searchsorted(NOON_S))
    await fill(now, "BTC/USD", bars[:cut])
    asked = {"strategy_id": ID, "symbol": "BTC/USD"}
    before = (await now("run_backtest", **asked))["data"]
    await fill(now, "BTC/USD", bars[cut:])
    assert (await now("run_backtest", **asked))["data"] == before
    assert (await later("run_backtest", **asked))["data"] != before


async def test_a_strategy_that_became_known_later_is_not_found_and_one_changed_later_is_refused(backtests):
    server = await backtests()
    await fill(server, "BTC/USD", hours(3000))
    new = await add_implementation(server.desk, "new", uid("MOVING"), created_at=LATER, updated_at=LATER)
    assert (await server.refused("run_backtest", strategy_id=new, symbol="BTC/USD"))[0] == "STRATEGY_NOT_FOUND"
    await add_spec(server.desk, **stored("FUTURE", MOVING), created_at=LATER, updated_at=LATER)
    assert (await server.refused("run_backtest", strategy_id="FUTURE", symbol="BTC/USD"))[0] == "STRATEGY_NOT_FOUND"
    changed = await add_implementation(server.desk, "changed", uid("MOVING"), updated_at=LATER)
    assert (await server.refused("run_backtest", strategy_id=changed, symbol="BTC/USD"))[0] == "NOT_FOUND"


async def test_minutes_are_made_hours(backtests):
    server = await backtests()
    bars = await fill(server, "BTC/USD", walk(every(60, day("2025-12-01"), 20 * 1440)), MINUTE)
    asked = {"start_date": "2025-12-01", "end_date": "2025-12-20"}
    data = (await server("run_backtest", strategy_id=ID, symbol="BTC/USD", **asked))["data"]
    assert data["total_return"] == told(resampled(bars, HOUR), fast=4).total_return
