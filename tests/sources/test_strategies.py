"""What `Strategies` promises, on every engine."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quantdeck.core.clock import Now, iso
from quantdeck.core.errors import NotInPast, QueryFailed
from quantdeck.core.wire import encode
from quantdeck.sources.sql.strategies import Strategies, Strategy
from tests.support.desk import LATER, LONG_AGO, NOON, add_implementation, add_signal, add_spec, uid
from tests.support.leaks import Reads, assert_sealed

AS_OF = Now.of(NOON, fixed=True)
DAY = timedelta(hours=24)


async def find_both(source: Strategies, as_of: Now) -> list[Strategy | None]:
    """One that is known later, and one of which a later signal is."""
    return [await source.find(uid(which), "BTC/USD", as_of=as_of) for which in ("late", "known")]


READS: Reads = {
    "ranked": lambda source, as_of: source.ranked("BTC/USD", by="sharpe", offset=0, limit=10, as_of=as_of),
    "find": find_both,
    "votes": lambda source, as_of: source.votes("BTC/USD", since=NOON - DAY, as_of=as_of),
}
"""Each read, for the leak test."""


async def ranked(strategies, symbol="BTC/USD", by="sharpe", offset=0, limit=10, as_of=AS_OF):
    found, total = await strategies.ranked(symbol, by=by, offset=offset, limit=limit, as_of=as_of)
    return [strategy.strategy_id for strategy in found], total


async def test_ranks_best_first_by_each_metric(desk, strategies):
    spec = await add_spec(desk)
    sharp = await add_implementation(desk, "sharp", spec, forward_sharpe=2.0, forward_accuracy=0.4, forward_return=0.1)
    right = await add_implementation(desk, "right", spec, forward_sharpe=1.0, forward_accuracy=0.7, forward_return=0.2)
    rich = await add_implementation(desk, "rich", spec, forward_sharpe=0.5, forward_accuracy=0.5, forward_return=0.9)
    assert await ranked(strategies) == ([sharp, right, rich], 3)
    assert await ranked(strategies, by="accuracy") == ([right, rich, sharp], 3)
    assert await ranked(strategies, by="return") == ([rich, right, sharp], 3)


async def test_what_was_run_forward_counts_before_what_was_backtested(desk, strategies):
    spec = await add_spec(desk)
    await add_implementation(desk, "hoped", spec, forward_sharpe=0.3, backtest_sharpe=3.0)
    (found, *_), _ = await strategies.ranked("BTC/USD", by="sharpe", offset=0, limit=1, as_of=AS_OF)
    assert found.sharpe == 0.3


async def test_an_unmeasured_strategy_comes_last_and_zero_is_a_measure(desk, strategies):
    spec = await add_spec(desk)
    unmeasured = await add_implementation(desk, "unmeasured", spec)
    zero = await add_implementation(desk, "zero", spec, forward_sharpe=0.0)
    poor = await add_implementation(desk, "poor", spec, forward_sharpe=-1.0)
    assert await ranked(strategies) == ([zero, poor, unmeasured], 3)


async def test_ties_go_to_more_signals_and_then_to_the_id(desk, strategies):
    spec = await add_spec(desk)
    named = [await add_implementation(desk, name, spec, forward_sharpe=1.0) for name in "abc"]
    busy = await add_implementation(desk, "busy", spec, forward_sharpe=1.0, forward_trades=9)
    assert await ranked(strategies) == ([busy, *sorted(named)], 4)


async def test_signals_are_counted_once_each_where_no_trades_were_recorded(desk, strategies):
    spec = await add_spec(desk)
    impl = await add_implementation(desk, "counted", spec, backtest_trades=50)
    for number in range(3):
        await add_signal(desk, f"{number}", impl)
    await add_signal(desk, "elsewhere", impl, symbol="ETH/USD")
    found, total = await strategies.ranked("BTC/USD", by="sharpe", offset=0, limit=5, as_of=AS_OF)
    assert (found[0].signals_count, total) == (3, 1)


@pytest.mark.parametrize(
    "hidden",
    [{"status": "CANDIDATE"}, {"status": "RETIRED"}, {"symbol": "ETH/USD"}],
    ids=["candidate", "retired", "another symbol"],
)
async def test_only_what_may_be_traded_on_the_symbol_is_ranked(desk, strategies, hidden):
    spec = await add_spec(desk)
    deployed = await add_implementation(desk, "deployed", spec, status="DEPLOYED")
    await add_implementation(desk, "hidden", spec, **hidden)
    assert await ranked(strategies) == ([deployed], 1)


async def test_an_inactive_spec_hides_its_implementations(desk, strategies):
    spec = await add_spec(desk, "RETIRED", is_active=False)
    await add_implementation(desk, "hidden", spec)
    assert await ranked(strategies) == ([], 0)


@settings(deadline=None, max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(limit=st.integers(1, 7))
async def test_pages_put_together_are_the_whole(many, strategies, limit):
    whole, total = await ranked(strategies, limit=100)
    pages = [await ranked(strategies, offset=offset, limit=limit) for offset in range(0, total, limit)]
    assert [found for page, _ in pages for found in page] == whole
    assert {count for _, count in pages} == {total} == {len(many)}


async def test_a_page_past_the_end_is_empty_with_the_true_total(many, strategies):
    assert await ranked(strategies, offset=1000) == ([], len(many))


async def test_nothing_that_became_known_later_is_in_any_answer(desk, strategies):
    spec = await add_spec(desk)
    known = await add_implementation(desk, "known", spec, forward_sharpe=1.0)
    await add_signal(desk, "known", known, "SELL", signal_timestamp=NOON - timedelta(hours=2))

    async def write_later() -> None:
        late_spec = await add_spec(desk, "LATE", created_at=LATER, updated_at=LATER)
        await add_implementation(desk, "late", spec, forward_sharpe=9.0, created_at=LATER, updated_at=LATER)
        await add_implementation(desk, "of a late spec", late_spec, forward_sharpe=9.0)
        await add_signal(desk, "saved late", known, "BUY", created_at=LATER)
        await add_signal(desk, "triggered late", known, "BUY", signal_timestamp=LATER)

    await assert_sealed(strategies, READS, write_later, at=NOON, later=LATER)


@pytest.mark.parametrize("spelt", ["2026-01-15T07:30:00-05:00", "2026-01-15 12:30:00"])
async def test_a_later_signal_is_in_no_answer_however_its_times_were_spelt_by_hand(desk, strategies, spelt):
    impl = await add_implementation(desk, "one", await add_spec(desk))
    with contextlib.suppress(QueryFailed):
        await desk.execute(
            "INSERT INTO implementation_signals (signal_id, impl_id, symbol, action, signal_timestamp, created_at)"
            f" VALUES ('{uid('by hand')}', '{impl}', 'BTC/USD', 'SELL', '{spelt}', '{spelt}')"
        )
    assert (await strategies.find(impl, "BTC/USD", as_of=AS_OF)).signal is None
    assert await strategies.votes("BTC/USD", since=NOON - DAY, as_of=AS_OF) == [(impl, None)]


async def test_a_row_changed_after_the_fixed_instant_is_refused_not_shown(desk, strategies):
    spec = await add_spec(desk)
    changed = await add_implementation(desk, "changed", spec, updated_at=LATER)
    for read in (
        ranked(strategies),
        strategies.find(changed, "BTC/USD", as_of=AS_OF),
        strategies.votes("BTC/USD", since=NOON - DAY, as_of=AS_OF),
    ):
        with pytest.raises(NotInPast, match="after the fixed clock") as refused:
            await read
        assert iso(LATER) in str(refused.value.__cause__)
        assert iso(LATER) not in refused.value.message + encode(refused.value.details).decode()


async def test_a_change_is_no_secret_while_the_clock_runs(desk, strategies):
    spec = await add_spec(desk)
    skewed = datetime.now(UTC) + timedelta(minutes=1)
    changed = await add_implementation(desk, "changed", spec, updated_at=skewed)
    running = Now.of(datetime.now(UTC), fixed=False)
    assert (await ranked(strategies, as_of=running))[0] == [changed]


async def test_finds_a_strategy_with_its_parameters(desk, strategies):
    spec = await add_spec(desk)
    impl = await add_implementation(desk, "found", spec, parameters={"period": 14, "width": 2.5})
    found = await strategies.find(impl.upper(), "BTC/USD", as_of=AS_OF)
    assert (found.strategy_id, found.symbol, found.parameters) == (impl, "BTC/USD", {"period": 14, "width": 2.5})


@pytest.mark.parametrize("what", ["implementation", "spec"])
async def test_one_that_was_dropped_after_the_fixed_clock_is_missed_aloud(desk, strategies, what):
    spec = await add_spec(desk)
    impl = await add_implementation(desk, "one", spec)
    if what == "spec":
        drop = "UPDATE strategy_specs SET is_active = FALSE, updated_at = :at WHERE spec_id = :id"
    else:
        drop = "UPDATE strategy_implementations SET status = 'RETIRED', updated_at = :at WHERE impl_id = :id"
    await desk.execute(drop, at=LATER, id=spec if what == "spec" else impl)
    with pytest.raises(NotInPast):
        await ranked(strategies)
    with pytest.raises(NotInPast):
        await strategies.votes("BTC/USD", since=NOON - DAY, as_of=AS_OF)
    assert await ranked(strategies, as_of=Now.of(NOON, fixed=False)) == ([], 0)


@pytest.mark.parametrize("nobody", ["", "42", "'; DROP TABLE strategy_specs; --", "x" * 5000, "\0"])
async def test_an_id_that_is_no_uuid_is_nobodys(strategies, nobody):
    assert await strategies.find(nobody, "BTC/USD", as_of=AS_OF) is None


async def test_the_newest_signal_is_found_however_old(desk, strategies):
    impl = await add_implementation(desk, "old", await add_spec(desk))
    await add_signal(desk, "older", impl, "BUY", signal_timestamp=LONG_AGO)
    await add_signal(desk, "old", impl, "SELL", signal_timestamp=LONG_AGO + DAY)
    found = (await strategies.find(impl, "BTC/USD", as_of=AS_OF)).signal
    assert (found.action, found.triggered_at) == ("SELL", LONG_AGO + DAY)


@pytest.mark.parametrize("earlier, later", [("a", "b"), ("b", "a")])
async def test_of_two_signals_of_one_time_the_one_that_became_known_later_counts(desk, strategies, earlier, later):
    impl = await add_implementation(desk, "corrected", await add_spec(desk))
    at = NOON - timedelta(hours=1)
    await add_signal(desk, earlier, impl, "BUY", signal_timestamp=at)
    await add_signal(desk, later, impl, "SELL", signal_timestamp=at, created_at=at + timedelta(minutes=10))
    before = Now.of(at + timedelta(minutes=9), fixed=True)
    for as_of, said in ((AS_OF, "SELL"), (before, "BUY")):
        assert (await strategies.find(impl, "BTC/USD", as_of=as_of)).signal.action == said
        ((_, vote),) = await strategies.votes("BTC/USD", since=NOON - DAY, as_of=as_of)
        assert vote.action == said


@pytest.mark.parametrize(
    "said, meant",
    [("BUY", "BUY"), ("SELL", "SELL"), ("HOLD", "HOLD"), ("CLOSE_LONG", "SELL"), ("CLOSE_SHORT", "BUY")],
)
async def test_closing_is_the_opposite_of_opening(desk, strategies, said, meant):
    impl = await add_implementation(desk, "closing", await add_spec(desk))
    await add_signal(desk, "closing", impl, said)
    assert (await strategies.find(impl, "BTC/USD", as_of=AS_OF)).signal.action == meant


async def test_a_signal_of_no_known_strength_has_none(desk, strategies):
    impl = await add_implementation(desk, "weak", await add_spec(desk))
    await add_signal(desk, "weak", impl, strength=None)
    assert (await strategies.find(impl, "BTC/USD", as_of=AS_OF)).signal.strength == 0.0


@pytest.mark.parametrize(
    "stored, told", [("inf", 0.0), ("-inf", 0.0), ("nan", 0.0), ("1.5", 1.0), ("-0.5", 0.0), ("0.25", 0.25)]
)
async def test_a_strength_is_a_share_whatever_is_stored(desk, strategies, stored, told):
    impl = await add_implementation(desk, "odd", await add_spec(desk))
    await add_signal(desk, "odd", impl)
    await put(desk, "implementation_signals", "strength", stored)
    assert (await strategies.find(impl, "BTC/USD", as_of=AS_OF)).signal.strength == told
    ((_, vote),) = await strategies.votes("BTC/USD", since=NOON - DAY, as_of=AS_OF)
    assert vote.strength == told


@pytest.mark.parametrize("stored", ["inf", "-inf", "nan"])
async def test_a_figure_that_is_no_number_was_not_measured(desk, strategies, stored):
    spec = await add_spec(desk)
    odd = await add_implementation(desk, "odd", spec, backtest_sharpe=0.5)
    for column in ("forward_sharpe", "forward_accuracy", "forward_return", "backtest_accuracy", "backtest_return"):
        await put(desk, "strategy_implementations", column, stored)
    good = await add_implementation(desk, "good", spec, forward_sharpe=1.0, forward_accuracy=0.1, forward_return=-0.9)
    for metric in ("sharpe", "accuracy", "return"):
        assert await ranked(strategies, by=metric) == ([good, odd], 2)
    (_, found), _ = await strategies.ranked("BTC/USD", by="sharpe", offset=0, limit=2, as_of=AS_OF)
    assert (found.sharpe, found.accuracy, found.earned) == (0.5, None, None)


async def test_parameters_are_told_in_the_same_order_by_every_engine(desk, strategies):
    given = {"slow": 26, "fast": 12, "a": {"z": 1, "é": [{"y": 1, "x": 2}], "bb": 2}, "_": None}
    impl = await add_implementation(desk, "ordered", await add_spec(desk), parameters=given)
    found = await strategies.find(impl, "BTC/USD", as_of=AS_OF)
    assert found.parameters == given
    assert encode(found.parameters) == b'{"_":null,"a":{"bb":2,"z":1,"\xc3\xa9":[{"x":2,"y":1}]},"fast":12,"slow":26}'


async def test_a_signal_dated_after_the_instant_is_not_current_however_early_it_was_saved(desk, strategies):
    impl = await add_implementation(desk, "ahead", await add_spec(desk))
    await add_signal(desk, "now", impl, "BUY")
    await add_signal(desk, "ahead", impl, "SELL", signal_timestamp=LATER, created_at=NOON - timedelta(hours=1))
    assert (await strategies.find(impl, "BTC/USD", as_of=AS_OF)).signal.action == "BUY"
    ((_, vote),) = await strategies.votes("BTC/USD", since=NOON - DAY, as_of=AS_OF)
    assert vote.action == "BUY"


@pytest.mark.parametrize("older, counts", [(timedelta(0), True), (timedelta(microseconds=1), False)])
async def test_a_signal_counts_from_the_very_instant_that_is_asked_for(desk, strategies, older, counts):
    impl = await add_implementation(desk, "edge", await add_spec(desk))
    await add_signal(desk, "edge", impl, signal_timestamp=NOON - DAY - older)
    ((_, vote),) = await strategies.votes("BTC/USD", since=NOON - DAY, as_of=AS_OF)
    assert (vote is not None) is counts


async def test_what_a_backtest_made_up_is_no_signal(desk, strategies):
    impl = await add_implementation(desk, "simulated", await add_spec(desk))
    await add_signal(desk, "given", impl, "BUY", signal_type="forward_test")
    await add_signal(
        desk, "made up", impl, "SELL", signal_type="backtest", signal_timestamp=NOON - timedelta(minutes=5)
    )
    assert (await strategies.find(impl, "BTC/USD", as_of=AS_OF)).signal.action == "BUY"
    ((_, vote),) = await strategies.votes("BTC/USD", since=NOON - DAY, as_of=AS_OF)
    assert vote.action == "BUY"
    (found,), _ = await strategies.ranked("BTC/USD", by="sharpe", offset=0, limit=1, as_of=AS_OF)
    assert found.signals_count == 1


async def test_every_eligible_strategy_votes_once_with_its_newest_signal(desk, strategies):
    spec = await add_spec(desk)
    voices = {name: await add_implementation(desk, name, spec) for name in ("turned", "stale", "silent")}
    await add_signal(desk, "first", voices["turned"], "BUY", signal_timestamp=NOON - timedelta(hours=5))
    await add_signal(desk, "second", voices["turned"], "SELL", signal_timestamp=NOON - timedelta(hours=1))
    await add_signal(desk, "stale", voices["stale"], "BUY", signal_timestamp=NOON - DAY - timedelta(seconds=1))
    votes = dict(await strategies.votes("BTC/USD", since=NOON - DAY, as_of=AS_OF))
    assert {name: votes[voices[name]] and votes[voices[name]].action for name in voices} == {
        "turned": "SELL", "stale": None, "silent": None,
    }  # fmt: skip


async def put(desk, table, column, number):
    """A number past the seam, which would make NULL of what is none."""
    cast = f"CAST('{number}' AS DOUBLE PRECISION)"
    literals = {"nan": "NULL", "inf": "9e999", "-inf": "-9e999"} if desk.source == "sqlite" else {}
    await desk.execute(f"UPDATE {table} SET {column} = {literals.get(number, cast)}")


@pytest.fixture
async def strategies(desk) -> Strategies:
    return Strategies(desk)


@pytest.fixture
async def many(desk) -> list[str]:
    spec = await add_spec(desk)
    return [await add_implementation(desk, f"{n}", spec, forward_sharpe=(n % 5) / 2) for n in range(23)]
