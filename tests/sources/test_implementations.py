"""What sweeps read and write, on every engine."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from quantdeck.core.clock import Now
from quantdeck.core.errors import NotInPast, QueryFailed
from quantdeck.domain.spec_reader import read
from quantdeck.domain.strategy_specs import StrategySpec
from quantdeck.sources.sql.implementations import Found, Implementations, made_id
from quantdeck.sources.sql.specs import Specs
from tests.support.desk import LATER, NOON, add_implementation, add_spec, uid
from tests.support.leaks import Reads, assert_sealed
from tests.support.specs import spec

AS_OF = Now.of(NOON, fixed=True)
RUNNING = Now.of(NOON, fixed=False)
NEXT_DAY = Now.of(NOON + timedelta(days=1), fixed=False)

READS: Reads = {"spec": lambda source, as_of: source.spec("LATE", as_of=as_of)}


def made(**said: Any) -> StrategySpec:
    reading = read(**spec(**said))
    assert reading.spec is not None, reading.problems
    return reading.spec


def found(period: int, **said: Any) -> Found:
    metrics = {
        "sharpe_ratio": 0.1 + period, "win_rate": 1 / 3, "total_return": 1e-17, "max_drawdown": 0.25, "trades": 7,
        "profit_factor": None, "timeframe": "1h", **said,
    }  # fmt: skip
    return Found({"period": period, "oversold": 30.0}, metrics)


@pytest.fixture
def found_of(desk) -> Implementations:
    return Implementations(desk)


async def store(source: Implementations, *found: Found, timeframe: str = "1h", as_of: Now = RUNNING) -> dict[str, int]:
    return dict(await source.store(uid("SMA_RSI"), "BTC/USD", timeframe, found, as_of=as_of))


async def rows(desk) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = await desk.rows("SELECT * FROM strategy_implementations ORDER BY impl_id")
    return found


async def test_what_was_found_is_a_candidate_with_its_figures(desk, found_of):
    spec_id = await add_spec(desk)
    assert await store(found_of, found(10), found(20)) == {"new": 2, "updated": 0, "unchanged": 0}
    page = await Specs(desk).implementations(spec_id, "CANDIDATE", offset=0, limit=9, as_of=RUNNING)
    assert page is not None
    listed, total = page
    assert total == 2
    assert {one.impl_id for one in listed} == {
        made_id(spec_id, "BTC/USD", "1h", found(period).parameters) for period in (10, 20)
    }
    assert {one.parameters["period"] for one in listed} == {10, 20}
    assert {one.forward_sharpe for one in listed} == {None}
    row = next(row for row in await rows(desk) if row["parameters"]["period"] == 10)
    assert (row["backtest_sharpe"], row["backtest_accuracy"], row["backtest_return"]) == (10.1, 1 / 3, 1e-17)
    assert (row["backtest_max_drawdown"], row["backtest_trades"], row["discovered_by"]) == (0.25, 7, "GRID_SEARCH")
    assert row["backtest_metrics"] == found(10).metrics


async def test_the_same_again_changes_nothing_and_other_figures_replace_the_old(desk, found_of):
    await add_spec(desk)
    await store(found_of, found(10), found(20))
    before = await rows(desk)
    assert await store(found_of, found(10), found(20), as_of=NEXT_DAY) == {"new": 0, "updated": 0, "unchanged": 2}
    assert await rows(desk) == before
    again = await store(found_of, found(10), found(20, trades=8), found(30), as_of=NEXT_DAY)
    assert again == {"new": 1, "updated": 1, "unchanged": 1}
    changed = {row["parameters"]["period"]: row for row in await rows(desk)}
    assert {period: row["backtest_trades"] for period, row in changed.items()} == {10: 7, 20: 8, 30: 7}
    assert (changed[20]["created_at"], changed[20]["updated_at"]) == (NOON, NEXT_DAY)


async def test_what_became_of_one_since_stays(desk, found_of):
    await add_spec(desk)
    await store(found_of, found(10))
    await desk.execute("UPDATE strategy_implementations SET status = 'DEPLOYED', forward_sharpe = 2.5")
    await store(found_of, found(10, trades=9), as_of=NEXT_DAY)
    (row,) = await rows(desk)
    assert (row["status"], row["forward_sharpe"], row["backtest_trades"]) == ("DEPLOYED", 2.5, 9)


async def test_another_length_of_bars_is_another_implementation_and_what_others_made_is_left_alone(desk, found_of):
    spec_id = await add_spec(desk)
    mine = await add_implementation(desk, "mine", spec_id, parameters=dict(found(10).parameters), backtest_sharpe=9.0)
    await store(found_of, found(10))
    assert await store(found_of, found(10), timeframe="1d") == {"new": 1, "updated": 0, "unchanged": 0}
    held = {row["impl_id"]: row["backtest_sharpe"] for row in await rows(desk)}
    assert (len(held), held[mine]) == (3, 9.0)


async def test_all_is_stored_or_nothing(desk, found_of):
    await add_spec(desk)
    with pytest.raises(QueryFailed):
        await store(found_of, found(10), Found({"period": 20}, {**found(20).metrics, "trades": "many"}))
    assert await rows(desk) == []


async def test_at_a_clock_that_stands_earlier_what_came_later_is_not_written_over(desk, found_of):
    await add_spec(desk)
    await store(found_of, found(10), as_of=NEXT_DAY)
    before = await rows(desk)
    with pytest.raises(NotInPast, match="home of its own"):
        await store(found_of, found(10, trades=8), as_of=AS_OF)
    assert await rows(desk) == before


async def test_a_spec_is_found_by_its_name_and_a_persons_own_can_be_kept(desk, found_of):
    assert await found_of.spec("SMA_RSI", as_of=RUNNING) is None
    kept = await found_of.keep_spec(made(), as_of=RUNNING)
    stored = await found_of.spec("SMA_RSI", as_of=RUNNING)
    assert stored is not None
    assert (stored.spec_id, read(**stored.lists).spec) == (kept, made())
    assert await found_of.keep_spec(made(), as_of=RUNNING) is None
    _, total = await Specs(desk).ranked("LLM_GENERATED", offset=0, limit=9, as_of=RUNNING)
    assert total == 0


async def test_nothing_that_became_known_later_is_in_any_answer(desk, found_of):
    async def write_later() -> None:
        await add_spec(desk, "LATE", created_at=LATER, updated_at=LATER)

    no_reads = {"keep_spec", "store"}
    await assert_sealed(found_of, READS, write_later, at=NOON, later=LATER, no_reads=no_reads)


async def test_a_spec_that_was_changed_after_a_fixed_clock_is_refused(desk, found_of):
    await add_spec(desk, updated_at=LATER)
    with pytest.raises(NotInPast, match="changed after the fixed clock"):
        await found_of.spec("SMA_RSI", as_of=AS_OF)
    assert await found_of.spec("SMA_RSI", as_of=RUNNING) is not None
