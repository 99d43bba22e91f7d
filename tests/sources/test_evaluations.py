"""Strategies are followed over closed bars, each signal is stored once, and nothing that was stored is changed."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from quantdeck.backtesting.engine import run
from quantdeck.collectors.evaluating import LATE_S, Evaluation
from quantdeck.core.clock import Now
from quantdeck.domain.candles import joined
from quantdeck.domain.spec_reader import read
from quantdeck.domain.timeframes import TIMEFRAMES
from quantdeck.settings import Backtests
from quantdeck.sources.backtester import terms
from quantdeck.sources.sql.evaluations import Evaluations
from tests.support.bars import at, every, now, walk
from tests.support.candle_stores import KINDS
from tests.support.desk import add_implementation, add_spec, uid
from tests.support.specs import CROSSING as RULES
from tests.support.specs import spec

HOUR_S = 3600
BEGAN = at("2026-01-05T00:00")
MANY = 600
END = BEGAN + MANY * HOUR_S
HOUR = TIMEFRAMES["1h"]
SIGNALS = """
    SELECT signal_id, impl_id, action, strength, price, signal_timestamp FROM implementation_signals
    ORDER BY signal_timestamp, impl_id
"""
WEEKS = """
    SELECT performance_id, impl_id, period_start, period_end, total_trades, winning_trades, total_return, sharpe_ratio
    FROM strategy_performance ORDER BY period_end, impl_id
"""


@pytest.fixture
async def candles(tmp_path):
    place = await KINDS["embedded"].make(tmp_path / "bars")
    async with place.open() as opened:
        yield opened


@pytest.fixture
async def strategies(desk):
    """Two of one spec that were made when the bars begin."""
    made = datetime.fromtimestamp(BEGAN, UTC)
    spec_id = await add_spec(desk, "CROSS", **RULES, created_at=made, updated_at=made)
    for name, period in (("quick", 3), ("slow", 9)):
        await add_implementation(desk, name, spec_id, parameters={"period": period}, created_at=made, updated_at=made)
    return Evaluations(desk)


def following(candles, evaluations, **said):
    return Evaluation(candles, evaluations, Backtests(), **said)


async def passed(evaluation, at_s):
    return await evaluation.once(lambda said: None, as_of=now(at_s))


BARS = walk(every(HOUR_S, BEGAN, MANY))


def expected(period):
    found = read(**spec(**RULES)).spec
    assert found is not None
    return run(found.instantiate({"period": period}), BARS, terms("BTC/USD", Backtests()))


async def test_what_is_stored_is_what_the_engine_decides_and_a_second_time_adds_nothing(desk, candles, strategies):
    await candles.write("BTC/USD", HOUR, BARS)
    made = await passed(following(candles, strategies), END)
    stored = await desk.rows(SIGNALS)
    assert made.signals == len(stored) > 50
    for name, period in (("quick", 3), ("slow", 9)):
        whole = expected(period)
        own = [row for row in stored if row["impl_id"] == uid(name)]
        buys = [int(row["signal_timestamp"].timestamp()) for row in own if row["action"] == "BUY"]
        due = [int(BARS.time[place - 1]) + HOUR_S for place in whole.trades.begins]
        assert buys == due + ([END] if whole.decision == "enter" else [])
        (row,) = await desk.rows("SELECT * FROM strategy_implementations WHERE impl_id = :impl_id", impl_id=uid(name))
        assert row["forward_trades"] == whole.metrics.trades
        assert row["forward_return"] == pytest.approx(whole.metrics.total_return)
        assert row["forward_max_drawdown"] == pytest.approx(whole.metrics.max_drawdown)
        assert row["forward_accuracy"] == pytest.approx(whole.metrics.win_rate)
        assert row["forward_sharpe"] == pytest.approx(whole.metrics.sharpe_ratio, rel=1e-2)
        assert row["updated_at"] == now(END)
    weeks = await desk.rows(WEEKS)
    assert [row["period_end"] for row in weeks[::2]] == [now(BEGAN) + timedelta(weeks=n) for n in (1, 2, 3)]
    again = await passed(following(candles, strategies), END)
    assert (again.followed, again.signals, again.weeks) == (2, 0, 0)
    assert (await desk.rows(SIGNALS), await desk.rows(WEEKS)) == (stored, weeks)


async def test_bar_by_bar_is_the_same_as_at_once_after_a_gap(desk, candles, strategies):
    await candles.write("BTC/USD", HOUR, BARS[:400])
    await passed(following(candles, strategies), BEGAN + 400 * HOUR_S)
    for many in range(401, 451):
        await candles.write("BTC/USD", HOUR, BARS[many - 1 : many])
        await passed(following(candles, strategies), BEGAN + many * HOUR_S)
    await candles.write("BTC/USD", HOUR, BARS[450:])
    await passed(following(candles, strategies), END)
    signals, weeks = await desk.rows(SIGNALS), await desk.rows(WEEKS)
    for table in ("implementation_signals", "strategy_performance", "strategy_evaluations"):
        await desk.execute(f"DELETE FROM {table}")
    await passed(following(candles, strategies), END)
    assert await desk.rows(SIGNALS) == signals
    figures = ("total_return", "sharpe_ratio")
    for one, other in zip(await desk.rows(WEEKS), weeks, strict=True):
        assert [one.pop(name) for name in figures] == pytest.approx([other.pop(name) for name in figures])
        assert one == other


async def test_eight_at_once_add_each_signal_once(desk, candles, strategies):
    await candles.write("BTC/USD", HOUR, BARS)
    made = await asyncio.gather(*(passed(following(candles, strategies), END) for _ in range(8)))
    stored = await desk.rows(SIGNALS)
    assert sum(one.signals for one in made) == len(stored)
    assert len({(row["impl_id"], row["signal_timestamp"]) for row in stored}) == len(stored) > 50
    whole = expected(3)
    own = [row for row in stored if row["impl_id"] == uid("quick") and row["action"] == "BUY"]
    assert len(own) == len(whole.trades) + (whole.decision == "enter")


async def test_no_bar_is_used_that_had_not_closed_by_then_whatever_is_stored(desk, candles, strategies):
    halfway = BEGAN + 300 * HOUR_S
    await candles.write("BTC/USD", HOUR, BARS)
    await passed(following(candles, strategies), halfway + 1800)
    told = await desk.rows(SIGNALS)
    assert max(row["signal_timestamp"] for row in told) <= now(halfway)
    for table in ("implementation_signals", "strategy_performance", "strategy_evaluations"):
        await desk.execute(f"DELETE FROM {table}")
    other = joined([BARS[:300], walk(every(HOUR_S, halfway, MANY - 300), 99)])
    await candles.write("BTC/USD", HOUR, other)
    await passed(following(candles, strategies), halfway + 1800)
    assert await desk.rows(SIGNALS) == told


async def test_a_clock_before_what_was_done_does_nothing(desk, candles, strategies):
    await candles.write("BTC/USD", HOUR, BARS)
    await passed(following(candles, strategies), END)
    stored = await desk.rows(SIGNALS)
    made = await passed(following(candles, strategies), BEGAN + 300 * HOUR_S)
    assert made.signals == 0
    assert all("changed after the fixed clock" in said for said in made.problems.values())
    assert await desk.rows(SIGNALS) == stored


async def test_a_corrected_bar_rewrites_no_signal_and_adds_none_to_the_past(desk, candles, strategies):
    await candles.write("BTC/USD", HOUR, BARS[:500])
    await passed(following(candles, strategies), BEGAN + 500 * HOUR_S)
    stored = await desk.rows(SIGNALS)
    await candles.write("BTC/USD", HOUR, joined([walk(every(HOUR_S, BEGAN, 500), 8), BARS[500:]]))
    await passed(following(candles, strategies), END)
    later = await desk.rows(SIGNALS)
    assert [row for row in later if row["signal_timestamp"] <= now(BEGAN + 500 * HOUR_S)] == stored
    for name in ("quick", "slow"):
        actions = [row["action"] for row in later if row["impl_id"] == uid(name) and row["action"] != "HOLD"]
        assert all(one != other for one, other in pairwise(actions))


async def test_what_cannot_be_run_is_named_and_the_others_go_on(desk, candles, strategies):
    await candles.write("BTC/USD", HOUR, BARS)
    made = datetime.fromtimestamp(BEGAN, UTC)
    broken = await add_spec(desk, "BROKEN", **{**RULES, "indicators": [{"id": "a", "type": "MAGIC"}]}, created_at=made,
                            updated_at=made)  # fmt: skip
    await add_implementation(desk, "unread", broken, created_at=made, updated_at=made)
    cross = uid("CROSS")
    await add_implementation(desk, "unfit", cross, parameters={"period": "x"}, created_at=made, updated_at=made)
    await add_implementation(desk, "unheard", cross, symbol="ETH/USD", parameters={}, created_at=made, updated_at=made)
    for status in ("CANDIDATE", "RETIRED"):
        await add_implementation(desk, status, cross, status=status, parameters={}, created_at=made, updated_at=made)
    told = await passed(following(candles, strategies), END)
    assert told.followed == 2
    assert told.signals > 50
    assert set(told.problems) == {uid("unread"), uid("unfit"), "ETH/USD"}
    assert "MAGIC" in told.problems[uid("unread")]
    assert "BROKEN on BTC/USD" in told.problems[uid("unread")]
    assert {row["impl_id"] for row in await desk.rows(SIGNALS)} == {uid("quick"), uid("slow")}


async def test_only_what_is_asked_for_is_followed(desk, candles, strategies):
    await candles.write("BTC/USD", HOUR, BARS)
    for said, followed in (
        ({"symbol": "ETH/USD"}, 0), ({"strategy": "OTHER"}, 0), ({"strategy": uid("slow")}, 1),
        ({"strategy": "cross", "symbol": "BTC/USD"}, 2), ({"strategy": uid("CROSS")}, 2),
    ):  # fmt: skip
        assert (await passed(following(candles, strategies, **said), END)).followed == followed
    await desk.execute("UPDATE strategy_specs SET is_active = FALSE")
    assert (await passed(following(candles, strategies), END)).followed == 0


async def test_a_bar_is_left_while_its_last_part_may_be_on_its_way(desk, candles, strategies):
    minutes = every(60, BEGAN, 120 * 60)
    await candles.write("BTC/USD", TIMEFRAMES["1m"], walk(minutes[:-2]))  # two are not there yet
    close = BEGAN + 120 * HOUR_S

    async def seen():
        rows = await desk.rows("SELECT seen_until FROM strategy_evaluations")
        return {row["seen_until"] for row in rows}

    await passed(following(candles, strategies), close + LATE_S - 1)
    assert await seen() == {now(close - HOUR_S)}
    await passed(following(candles, strategies), close + LATE_S)
    assert await seen() == {now(close)}


async def test_bars_that_are_behind_are_told_while_the_market_is_open(candles, strategies):
    await candles.write("BTC/USD", HOUR, BARS)
    assert (await passed(following(candles, strategies), END + 3 * HOUR_S)).problems == {}
    (said,) = (await passed(following(candles, strategies), END + 4 * HOUR_S)).problems.values()
    assert "its newest bar closed at 2026-01-30T00:00:00Z" in said


async def test_a_market_with_hours_is_followed_across_a_change_of_the_clocks(desk, candles, strategies):
    """New York changes on 2026-03-08: before, a day is 14:30 to 21:00 in UTC, after, 13:30 to 20:00."""
    days = [("2026-03-05", 14), ("2026-03-06", 14), ("2026-03-09", 13), ("2026-03-10", 13)]
    opens = [second for day, hour in days for second in every(1800, at(f"{day}T{hour}:30"), 13)]
    made = now(at("2026-03-05T14:00"))
    stock = await add_implementation(
        desk, "stock", uid("CROSS"), symbol="AAPL", parameters={"period": 2}, created_at=made, updated_at=made
    )
    await candles.write("AAPL", TIMEFRAMES["30m"], walk(opens, 4))
    told = await passed(following(candles, strategies, strategy=stock), at("2026-03-09T13:00"))
    assert told.problems == {}  # it is behind by a weekend, and its market was closed
    await passed(following(candles, strategies, strategy=stock), at("2026-03-10T23:00"))
    rows = await desk.rows(SIGNALS)
    bars = await candles.between("AAPL", HOUR, made, made + timedelta(days=9), as_of=now(at("2026-03-20T00:00")))
    closes = set((bars.time + HOUR_S).tolist())
    assert len(rows) > 3
    assert {int(row["signal_timestamp"].timestamp()) for row in rows} <= closes
    (week,) = await desk.rows(WEEKS)
    assert (week["period_start"], week["period_end"]) == (made, now(at("2026-03-09T00:00")))


async def test_a_series_of_days_is_followed_by_days(desk, candles, strategies):
    day = TIMEFRAMES["1d"]
    await candles.write("BTC/USD", day, walk(every(86_400, BEGAN, 200)))
    await passed(following(candles, strategies), BEGAN + 200 * 86_400)
    rows = await desk.rows(SIGNALS)
    assert len(rows) > 10
    assert {row["signal_timestamp"].hour for row in rows} == {0}
    assert {row["timeframe"] for row in await desk.rows("SELECT timeframe FROM strategy_evaluations")} == {"1d"}


async def test_what_is_told_late_is_told_apart_from_what_could_be_acted_on(desk, candles, strategies):
    await candles.write("BTC/USD", HOUR, BARS)
    await passed(following(candles, strategies), END)
    kinds = await desk.rows("SELECT signal_type, signal_timestamp, created_at FROM implementation_signals")
    for row in kinds:
        late = row["created_at"] - row["signal_timestamp"] >= timedelta(hours=1)
        assert row["signal_type"] == ("forward_test" if late else "live")


async def test_a_lease_is_ones_until_it_is_given_back_or_over(strategies):
    assert await strategies.take("evaluate", "one", 60)
    assert await strategies.take("evaluate", "one", 60)
    assert not await strategies.take("evaluate", "two", 60)
    assert await strategies.take("another", "two", 60)
    await strategies.release("evaluate", "two")
    assert not await strategies.take("evaluate", "two", 60)
    await strategies.release("evaluate", "one")
    assert await strategies.take("evaluate", "two", 0)
    assert await strategies.take("evaluate", "one", 60)


async def test_a_wall_clock_reads_what_there_is(candles, strategies):
    """Whatever was changed since: only a fixed clock refuses it."""
    await candles.write("BTC/USD", HOUR, BARS)
    found = await strategies.followed(symbol=None, strategy=None, as_of=Now.of(datetime.now(UTC), fixed=False))
    assert [one.problem for one in found] == ["", ""]
