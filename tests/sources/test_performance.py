"""What `Performance` and `Runnables` promise, on every engine."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from quantdeck.core.clock import Now
from quantdeck.core.errors import NotInPast
from quantdeck.domain.performance import Stretch
from quantdeck.sources.sql.performance import Measured, Performance
from quantdeck.sources.sql.runnable import Runnables, UnreadableSpecError
from tests.support.desk import LATER, LONG_AGO, NOON, add_implementation, add_spec, uid
from tests.support.leaks import Reads, assert_sealed
from tests.support.specs import spec

AS_OF, THEN = Now.of(NOON, fixed=True), Now.of(LATER, fixed=True)
DAY = timedelta(days=1)
WEEK = Measured(uid("one"), "BTC/USD", "PAPER", "1h", NOON - 8 * DAY, NOON - DAY, 4, 3, 0.02, 1.5)
STRETCH = Stretch(NOON - DAY, 4, 3, 0.02, 1.5)
PARTS = ("indicators", "entry_conditions", "exit_conditions", "parameters")


def rules():
    return {part: spec()[part] for part in PARTS}


@pytest.fixture
async def performance(desk):
    await add_implementation(desk, "one", await add_spec(desk, **rules()), parameters={"period": 12})
    return Performance(desk)


@pytest.fixture
def runnables(desk, performance):
    return Runnables(desk)


async def stretches(performance, since=NOON - 90 * DAY, symbol=None, as_of=AS_OF):
    return await performance.stretches(uid("one"), since=since, symbol=symbol, as_of=as_of)


async def test_what_was_measured_is_told_by_environment_the_oldest_first(performance):
    older = replace(WEEK, start=NOON - 15 * DAY, end=NOON - 8 * DAY, earned=None, sharpe=None, trades=0, winning=0)
    await performance.save([WEEK, replace(WEEK, environment="LIVE"), older], as_of=AS_OF)
    assert await stretches(performance) == {
        "PAPER": [Stretch(NOON - 8 * DAY, 0, 0, None, None), STRETCH], "LIVE": [STRETCH],
    }  # fmt: skip


async def test_only_what_ended_in_the_time_and_on_the_symbol_is_told(performance):
    await performance.save([WEEK], as_of=AS_OF)
    assert await stretches(performance, since=NOON - DAY - timedelta(seconds=1)) == {"PAPER": [STRETCH]}
    assert await stretches(performance, since=NOON - DAY) == {}
    assert await stretches(performance, symbol="BTC/USD") == {"PAPER": [STRETCH]}
    assert await stretches(performance, symbol="ETH/USD") == {}


async def test_an_implementation_that_there_is_not_is_told_from_one_without_figures(performance):
    assert await stretches(performance) == {}
    for nobody in (uid("nobody"), "", "SMA_RSI"):
        assert await performance.stretches(nobody, since=LONG_AGO, as_of=AS_OF) is None


async def test_what_is_measured_twice_is_kept_once_and_as_it_was(performance):
    await performance.save([WEEK], as_of=AS_OF)
    await performance.save([replace(WEEK, earned=9.9), WEEK], as_of=THEN)
    await performance.save([], as_of=THEN)
    assert await stretches(performance, as_of=THEN) == {"PAPER": [STRETCH]}


async def test_a_stretch_that_is_not_over_is_in_no_answer(performance):
    await performance.save([replace(WEEK, end=LATER)], as_of=AS_OF)
    assert await stretches(performance) == {}
    assert (await stretches(performance, as_of=THEN)).keys() == {"PAPER"}


async def test_no_measurement_that_became_known_later_is_in_an_answer(performance):
    reads: Reads = {
        "stretches": lambda source, as_of: source.stretches(uid("one"), since=LONG_AGO, as_of=as_of),
    }

    async def write_later() -> None:
        await performance.save([WEEK], as_of=THEN)

    await assert_sealed(performance, reads, write_later, at=NOON, later=LATER, no_reads={"save"})


async def test_no_strategy_that_became_known_later_is_found(desk, runnables):
    reads: Reads = {"find": lambda source, as_of: source.find("LATE", as_of=as_of)}

    async def write_later() -> None:
        await add_spec(desk, "LATE", **rules(), created_at=LATER, updated_at=LATER)

    await assert_sealed(runnables, reads, write_later, at=NOON, later=LATER)


async def test_a_strategy_is_found_by_its_id_and_a_spec_by_id_and_name(runnables):
    own = await runnables.find(uid("one").upper(), as_of=AS_OF)
    assert (own.spec.name, own.parameters, own.symbol) == ("SMA_RSI", {"period": 12}, "BTC/USD")
    for called in (uid("SMA_RSI"), "SMA_RSI", " sma_rsi "):
        found = await runnables.find(called, as_of=AS_OF)
        assert (found.spec, found.parameters, found.symbol) == (own.spec, {}, None)
    for nobody in ("", "NOBODY", uid("nobody"), "a\0b", "%"):
        assert await runnables.find(nobody, as_of=AS_OF) is None


async def test_a_strategy_whose_rules_or_numbers_changed_later_is_refused(desk, runnables):
    await add_implementation(desk, "changed", uid("SMA_RSI"), updated_at=LATER)
    with pytest.raises(NotInPast):
        await runnables.find(uid("changed"), as_of=AS_OF)
    changed = await add_spec(desk, "CHANGED", **rules(), updated_at=LATER)
    await add_implementation(desk, "of changed", changed)
    for called in ("CHANGED", changed, uid("of changed")):
        with pytest.raises(NotInPast):
            await runnables.find(called, as_of=AS_OF)
        assert await runnables.find(called, as_of=THEN) is not None


async def test_rules_that_cannot_be_run_are_said_by_their_place(desk, runnables):
    await add_spec(desk, "ODD", **{**rules(), "indicators": [{"id": "x", "type": "NO_SUCH", "params": {}}]})
    with pytest.raises(UnreadableSpecError, match=r"ODD cannot be run: indicators\[0\]"):
        await runnables.find("ODD", as_of=AS_OF)


async def test_both_say_whether_their_tables_can_be_read(performance, runnables):
    await performance.ping()
    await runnables.ping()
