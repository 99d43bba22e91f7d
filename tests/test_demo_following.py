"""What the demo world's strategies signal and earn is what its market says, whenever and however far it was made."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import orjson
import pytest

from quantdeck.app import open_app
from quantdeck.backtesting.engine import Terms, run
from quantdeck.connections.sqlite import SQLite
from quantdeck.demo import AHEAD, extend, make
from quantdeck.demo.following import followed
from quantdeck.demo.trials import implementations, runnable
from quantdeck.demo.world import BEGAN, SILENT_SINCE, STALE_SYMBOL, World
from quantdeck.domain.calendars import market_of
from quantdeck.domain.candles import joined, resampled
from quantdeck.domain.demo_instruments import INSTRUMENTS
from quantdeck.domain.demo_market import DAY_S, DemoMarket
from quantdeck.domain.demo_sessions import shape_of
from quantdeck.domain.timeframes import TIMEFRAMES
from quantdeck.servers import load
from quantdeck.settings import Settings

CLOCK = datetime(2026, 2, 10, 9, 30, tzinfo=UTC)
BLOCK = timedelta(weeks=8)
BEGINS = BEGAN + 7 * BLOCK
DAY, HOUR = timedelta(days=1), timedelta(hours=1)
WORLD = World(7)


def hours(symbol, begin, end):
    """As the market's own days have them, and nobody's cache."""
    market = DemoMarket(7, shape_of)
    days = range(int(begin.timestamp()) // DAY_S, int(end.timestamp()) // DAY_S)
    return resampled(joined([market.day(INSTRUMENTS[symbol], day) for day in days]), TIMEFRAMES["1h"])


def by_id(rows, name="performance_id"):
    return {row[name]: row for row in rows}


def test_two_worlds_of_one_seed_agree_wherever_they_overlap():
    early = by_id(followed(WORLD, CLOCK - 30 * DAY, CLOCK).weeks)
    late = by_id(followed(WORLD, CLOCK - 15 * DAY, CLOCK + 9 * DAY).weeks)
    both = early.keys() & late.keys()
    assert len(both) > 50
    assert all(early[key] == late[key] for key in both)
    assert early != by_id(followed(World(8), CLOCK - 30 * DAY, CLOCK).weeks)


def test_a_week_is_known_when_it_is_over_and_no_week_twice():
    rows = followed(WORLD, CLOCK - 30 * DAY, CLOCK).weeks
    assert len(by_id(rows)) == len(rows)
    assert all(row["created_at"] == row["period_end"] <= CLOCK for row in rows)
    assert {row["period_end"].weekday() for row in rows} == {0}
    assert {row["environment"] for row in rows} == {"PAPER"}


@pytest.mark.parametrize("name", ["MACD_CROSSOVER", "BOLLINGER_REVERSION", "DONCHIAN_BREAKOUT"])
def test_what_is_signalled_and_earned_is_what_the_engine_makes_of_the_markets_bars(name):
    """The engine's own run over the block begins without a position too, once its figures are there."""
    strategy, spec = next(
        (row, spec) for row, spec in runnable(WORLD)
        if (row["_spec"], row["symbol"]) == (name, "BTC/USD") and row["created_at"] < BEGINS
    )  # fmt: skip
    told = followed(WORLD, BEGINS, BEGINS + BLOCK)
    signals = [row for row in told.signals if row["impl_id"] == strategy["impl_id"]]
    bars = hours("BTC/USD", BEGINS - 14 * DAY, BEGINS + BLOCK)
    closes = dict(zip((bars.time + 3600).tolist(), bars.close.tolist(), strict=True))
    assert all(row["price"] == closes[int(row["signal_timestamp"].timestamp())] for row in signals)
    actions = [row["action"] for row in signals if row["action"] != "HOLD"]
    assert actions == ["BUY", "CLOSE_LONG"] * (len(actions) // 2) + ["BUY"] * (len(actions) % 2)
    made = run(spec, bars, Terms(market_of("BTC/USD")))
    # A run that began two weeks earlier is in step once both have been out of the market at one time.
    ours = [int(row["signal_timestamp"].timestamp()) for row in signals if row["action"] == "BUY"]
    theirs = [int(made.time[place - 1]) + 3600 for place in made.trades.begins]
    assert len(set(ours) & set(theirs)) >= 0.9 * len(ours) > 3
    weeks = [row for row in told.weeks if row["impl_id"] == strategy["impl_id"]]
    assert (weeks[0]["period_start"], weeks[-1]["period_end"]) == (BEGINS, BEGINS + BLOCK)
    assert abs(sum(row["total_trades"] for row in weeks) - actions.count("CLOSE_LONG")) <= 1


def test_who_fell_silent_trades_no_more_and_who_is_not_made_yet_has_not_traded():
    told = followed(WORLD, SILENT_SINCE - 20 * DAY, SILENT_SINCE + 20 * DAY)
    assert max(row["period_end"] for row in told.weeks if row["symbol"] == STALE_SYMBOL) <= SILENT_SINCE
    assert max(row["signal_timestamp"] for row in told.signals if row["symbol"] == STALE_SYMBOL) < SILENT_SINCE
    made_at = {one["impl_id"]: one["created_at"] for one in WORLD.implementations()}
    young = followed(WORLD, BEGAN, BEGAN + 2 * BLOCK)
    assert all(made_at[row["impl_id"]] < row["signal_timestamp"] for row in young.signals)
    assert all(int(made_at[row["impl_id"]].timestamp()) <= row["period_start"].timestamp() for row in young.weeks)


def test_figures_with_which_a_strategy_came_are_those_of_backtests_before_the_world_began():
    began = BEGAN - timedelta(weeks=6)
    for row, (_, spec) in list(zip(implementations(WORLD), runnable(WORLD), strict=True))[:12]:
        terms = Terms(market_of(row["symbol"]))
        for when, begin, end in (("backtest", began - BLOCK, began), ("forward", began, BEGAN)):
            if when == "forward" and not row["_forward"]:
                assert row["forward_sharpe"] is None
                continue
            metrics = run(spec, hours(row["symbol"], begin, end), terms).metrics
            assert row[f"{when}_trades"] == metrics.trades
            assert row[f"{when}_sharpe"] == pytest.approx(metrics.sharpe_ratio, abs=1e-4)
            assert row[f"{when}_accuracy"] == pytest.approx(metrics.win_rate, abs=1e-4)


async def test_a_world_that_is_extended_is_as_one_that_was_made_later(tmp_path):
    homes = [Settings(home=tmp_path / str(day), clock=(CLOCK + day * DAY).isoformat()) for day in (0, 20)]
    for home in homes:
        await make(home, seed=7, days=25)
    desks = [SQLite(home.home_path / "desk.db") for home in homes]
    try:
        for _ in range(2):
            await extend(desks[0], WORLD, CLOCK + 20 * DAY)
        sql = "SELECT {} FROM {} WHERE {} > :since ORDER BY 1"
        for what in (
            ("signal_id", "implementation_signals", "signal_timestamp"),
            ("performance_id", "strategy_performance", "period_end"),
        ):
            one, other = [await desk.rows(sql.format(*what), since=CLOCK) for desk in desks]
            assert one == other
            assert len(one) > 100
        (told,) = await desks[0].rows('SELECT min(seen_until) AS "at [TIMESTAMP]" FROM strategy_evaluations')
        assert told["at"] == CLOCK.replace(minute=0) + 20 * DAY + AHEAD
    finally:
        for desk in desks:
            await desk.close()


async def test_the_latest_signal_that_is_told_is_of_bars_that_have_closed(tmp_path):
    settings = Settings(home=tmp_path / "world", clock=CLOCK.isoformat())
    await make(settings, seed=7, days=5)
    closes = hours("BTC/USD", CLOCK.replace(hour=0) - 2 * DAY, CLOCK.replace(hour=0) + DAY)
    known = set((closes.time + 3600).tolist())
    async with open_app(settings, (load("strategy-mcp"),)) as app:
        told, tool = 0, app.tool("get_strategy_signal")
        assert tool is not None
        for row in WORLD.implementations():
            if row["symbol"] != "BTC/USD":
                continue
            arguments = {"strategy_id": row["impl_id"], "symbol": "BTC/USD"}
            answer = orjson.loads((await app.call(tool, arguments)).encoded)
            if "data" in answer:
                at = datetime.fromisoformat(answer["data"]["triggered_at"])
                assert int(at.timestamp()) in known
                assert at <= CLOCK
                told += 1
    assert told
