"""How the demo world's strategies did: what its market says, whenever and however far the world was made."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from quantdeck.backtesting.engine import Terms, run
from quantdeck.connections.sqlite import SQLite
from quantdeck.demo import extend_performance
from quantdeck.demo.performance import performance
from quantdeck.demo.world import SILENT_SINCE, STALE_SYMBOL, World
from quantdeck.domain.calendars import market_of
from quantdeck.domain.candles import joined, resampled
from quantdeck.domain.demo_instruments import INSTRUMENTS
from quantdeck.domain.demo_market import DAY_S, DemoMarket
from quantdeck.domain.demo_sessions import shape_of
from quantdeck.domain.spec_reader import read
from quantdeck.domain.timeframes import TIMEFRAMES
from quantdeck.migrations import migrate

CLOCK = datetime(2026, 2, 10, 9, 30, tzinfo=UTC)
QUARTER, NEXT = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 4, 1, tzinfo=UTC)
WORLD = World(7)


def by_id(rows):
    return {row["performance_id"]: row for row in rows}


def test_two_worlds_of_one_seed_agree_wherever_they_overlap():
    early = by_id(performance(WORLD, CLOCK - timedelta(days=30), CLOCK))
    late = by_id(performance(WORLD, CLOCK - timedelta(days=15), CLOCK + timedelta(days=9)))
    both = early.keys() & late.keys()
    assert len(both) > 50
    assert all(early[key] == late[key] for key in both)
    assert early != by_id(performance(World(8), CLOCK - timedelta(days=30), CLOCK))


def test_a_week_is_known_when_it_is_over_and_no_week_twice():
    rows = performance(WORLD, CLOCK - timedelta(days=30), CLOCK)
    assert len(by_id(rows)) == len(rows)
    assert all(row["created_at"] == row["period_end"] <= CLOCK for row in rows)
    assert {row["period_end"].weekday() for row in rows} == {0}  # of these 30 days: every week ends on a Monday
    assert {row["environment"] for row in rows} == {"PAPER"}


def test_the_weeks_of_a_quarter_are_one_backtest_of_it_on_the_demo_market():
    spec = next(one for one in WORLD.specs() if one["name"] == "MACD_CROSSOVER")
    known = [one for one in WORLD.implementations() if one["created_at"] < QUARTER and one["symbol"] == "BTC/USD"]
    strategy = next(one for one in known if one["spec_id"] == spec["spec_id"])
    runnable = read(**{part: spec[part] for part in (
        "name", "indicators", "entry_conditions", "exit_conditions", "parameters",
    )}).spec  # fmt: skip
    assert runnable is not None
    days = range(int(QUARTER.timestamp()) // DAY_S, int(NEXT.timestamp()) // DAY_S)
    market = DemoMarket(7, shape_of)
    bars = resampled(joined([market.day(INSTRUMENTS["BTC/USD"], day) for day in days]), TIMEFRAMES["1h"])
    made = run(runnable.instantiate(strategy["parameters"]), bars, Terms(market_of("BTC/USD")))
    weeks = [row for row in performance(WORLD, QUARTER, NEXT) if row["impl_id"] == strategy["impl_id"]]
    assert weeks[0]["period_start"] == QUARTER
    assert weeks[-1]["period_end"] == NEXT
    assert sum(row["total_trades"] for row in weeks) == made.metrics.trades > 0
    closed = made.trades.returns[: made.trades.closed]
    assert sum(row["total_return"] for row in weeks) == pytest.approx(float(closed.sum()))


def test_who_fell_silent_trades_no_more_and_who_is_not_made_yet_has_not_traded():
    rows = performance(WORLD, SILENT_SINCE - timedelta(days=20), SILENT_SINCE + timedelta(days=20))
    ended = [row["period_end"] for row in rows if row["symbol"] == STALE_SYMBOL]
    assert max(ended) <= SILENT_SINCE
    made_at = {one["impl_id"]: one["created_at"] for one in WORLD.implementations()}
    assert all(made_at[row["impl_id"]] <= row["period_start"] for row in rows)


async def test_a_world_that_is_extended_is_as_one_that_was_made_later(tmp_path):
    desk = SQLite(tmp_path / "desk.db", groups=("desk",))
    await migrate(desk, ("desk",))
    for table, made in (("strategy_specs", WORLD.specs()), ("strategy_implementations", WORLD.implementations())):
        for row in made:
            columns = [column for column in row if not column.startswith("_")]
            places = ", ".join(f":{column}" for column in columns)
            sql = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({places})"
            await desk.execute(sql, **{column: row[column] for column in columns})
    young = datetime(2025, 4, 20, 9, 30, tzinfo=UTC)
    for at in (young, young, young + timedelta(days=20), young + timedelta(days=21)):
        await extend_performance(desk, WORLD, at)
    (told,) = await desk.rows("SELECT count(*) AS weeks, max(period_end) AS latest FROM strategy_performance")
    until = young + timedelta(days=50)
    assert told["weeks"] == len(performance(WORLD, young - timedelta(days=366), until)) > 50
    await desk.close()
