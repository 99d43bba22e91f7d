"""What `Specs` promises, on every engine."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quantdeck.core.clock import Now
from quantdeck.core.errors import NotInPast
from quantdeck.domain.spec_reader import read
from quantdeck.sources.sql.specs import Saved, Specs
from tests.support.desk import LATER, LONG_AGO, NOON, add_implementation, add_spec, uid
from tests.support.leaks import Reads, assert_sealed
from tests.support.specs import spec

AS_OF = Now.of(NOON, fixed=True)
RUNNING = Now.of(NOON, fixed=False)


def made(**said):
    reading = read(**spec(**said))
    assert reading.spec is not None, reading.problems
    return reading.spec


def lists(said):
    return {part: said.stored()[part] for part in ("indicators", "entry_conditions", "exit_conditions", "parameters")}


TWIN = lists(made())

READS: Reads = {
    "ranked": lambda source, as_of: source.ranked("ALL", offset=0, limit=10, as_of=as_of),
    "implementations": lambda source, as_of: source.implementations(
        uid("KNOWN"), "ALL", offset=0, limit=10, as_of=as_of
    ),
    "alike": lambda source, as_of: source.alike(made(name="MINE"), as_of=as_of),
    "named": lambda source, as_of: _told_of(source.named("LATE", as_of=as_of)),
}
"""Each read, for the leak test. That a name is taken is no secret: nobody can have it twice."""


async def _told_of(asked):
    """All that is told of a name's holder but that there is one."""
    held = await asked
    return None if held is None else held.spec_id


async def ranked(specs, origin="ALL", offset=0, limit=10, as_of=AS_OF):
    found, total = await specs.ranked(origin, offset=offset, limit=limit, as_of=as_of)
    return [one.name for one in found], total


async def implementations(specs, status="ALL", offset=0, limit=10, as_of=AS_OF, name="SMA_RSI"):
    found, total = await specs.implementations(uid(name), status, offset=offset, limit=limit, as_of=as_of)
    return [one.impl_id for one in found], total


# the ranking


async def test_ranks_by_the_mean_forward_sharpe_of_what_is_validated_or_deployed(desk, specs):
    good, poor = await add_spec(desk, "GOOD"), await add_spec(desk, "POOR")
    await add_implementation(desk, "a", good, forward_sharpe=1.0, status="VALIDATED")
    await add_implementation(desk, "b", good, forward_sharpe=2.0, status="DEPLOYED")
    await add_implementation(desk, "c", good, forward_sharpe=-9.0, status="CANDIDATE")
    await add_implementation(desk, "d", good, forward_sharpe=-9.0, status="RETIRED")
    await add_implementation(desk, "e", good, forward_sharpe=None, backtest_sharpe=-9.0)
    await add_implementation(desk, "f", poor, forward_sharpe=1.25)
    (first, second), total = await specs.ranked("ALL", offset=0, limit=10, as_of=AS_OF)
    assert (first.name, first.avg_sharpe, first.implementations_count) == ("GOOD", 1.5, 5)
    assert (second.name, second.avg_sharpe, second.implementations_count, total) == ("POOR", 1.25, 1, 2)


async def test_what_nobody_ran_forward_comes_last_and_zero_is_a_measure(desk, specs):
    for name, sharpe in (("ZERO", 0.0), ("POOR", -1.0), ("HOPED", None)):
        await add_implementation(desk, name, await add_spec(desk, name), forward_sharpe=sharpe, backtest_sharpe=5.0)
    await add_spec(desk, "NEW")
    assert await ranked(specs) == (["ZERO", "POOR", "HOPED", "NEW"], 4)
    found, _ = await specs.ranked("ALL", offset=0, limit=10, as_of=AS_OF)
    assert [one.avg_sharpe for one in found] == [0.0, -1.0, None, None]
    assert [one.implementations_count for one in found] == [1, 1, 1, 0]


async def test_ties_go_to_more_implementations_and_then_to_the_name(desk, specs):
    for name, times in (("B", 1), ("A", 1), ("C", 2)):
        own = await add_spec(desk, name)
        for number in range(times):
            await add_implementation(desk, f"{name}{number}", own, forward_sharpe=0.1)
    assert (await ranked(specs))[0] == ["C", "A", "B"]


@pytest.mark.parametrize(
    "origin, there",
    [
        ("ALL", {"CANONICAL", "MIGRATED", "LLM_GENERATED", "USER_CREATED"}),
        ("CANONICAL", {"CANONICAL", "MIGRATED"}),
        ("LLM_GENERATED", {"LLM_GENERATED"}),
    ],
)
async def test_an_origin_is_what_it_is_called_and_what_others_call_it(desk, specs, origin, there):
    for name in ("CANONICAL", "MIGRATED", "LLM_GENERATED", "USER_CREATED"):
        await add_spec(desk, name, source=name)
    found, total = await ranked(specs, origin)
    assert (set(found), total) == (there, len(there))


async def test_an_inactive_spec_is_in_no_ranking_though_its_implementations_are_listed(desk, specs):
    own = await add_spec(desk, is_active=False)
    impl = await add_implementation(desk, "a", own)
    assert await ranked(specs) == ([], 0)
    assert await implementations(specs) == ([impl], 1)


async def test_a_spec_comes_with_its_rules(desk, specs):
    await add_spec(desk, **TWIN)
    (found,), _ = await specs.ranked("ALL", offset=0, limit=1, as_of=AS_OF)
    assert {part: getattr(found, part) for part in TWIN} == TWIN


async def test_rules_that_others_stored_differently_break_nothing(desk, specs):
    await add_spec(desk, indicators={"sma": 1}, entry_conditions=["x", {"type": "OVER"}], exit_conditions=[None])
    (found,), _ = await specs.ranked("ALL", offset=0, limit=1, as_of=AS_OF)
    assert (found.indicators, found.entry_conditions, found.exit_conditions) == ([], [{"type": "OVER"}], [])
    assert await specs.alike(made(), as_of=AS_OF) == []


@pytest.mark.parametrize("stored", ["9e999", "-9e999"])
async def test_a_sharpe_ratio_that_is_no_number_was_not_measured(desk, specs, stored):
    own = await add_spec(desk)
    odd = await add_implementation(desk, "odd", own, forward_sharpe=1.0, forward_accuracy=0.5)
    literal = stored if desk.source == "sqlite" else f"CAST('{stored.replace('9e999', 'inf')}' AS DOUBLE PRECISION)"
    await desk.execute(f"UPDATE strategy_implementations SET forward_sharpe = {literal}, forward_accuracy = {literal}")
    await add_implementation(desk, "good", own, forward_sharpe=0.5)
    (found,), _ = await specs.ranked("ALL", offset=0, limit=1, as_of=AS_OF)
    assert found.avg_sharpe == 0.5
    (_, listed), _ = await specs.implementations(own, "ALL", offset=0, limit=2, as_of=AS_OF)
    assert (listed.impl_id, listed.forward_sharpe, listed.forward_accuracy) == (odd, None, None)


# implementations


async def test_lists_the_best_first_then_the_newer_then_by_id(desk, specs):
    own = await add_spec(desk)
    best = await add_implementation(desk, "best", own, forward_sharpe=2.0)
    unmeasured = await add_implementation(desk, "unmeasured", own, backtest_sharpe=9.0)
    old = sorted([await add_implementation(desk, name, own, forward_sharpe=1.0) for name in "ab"])
    new = await add_implementation(desk, "new", own, forward_sharpe=1.0, created_at=NOON, updated_at=NOON)
    await add_implementation(desk, "another's", await add_spec(desk, "OTHER"))
    assert await implementations(specs) == ([best, new, *old, unmeasured], 5)


@pytest.mark.parametrize("status", ["CANDIDATE", "VALIDATED", "DEPLOYED", "RETIRED"])
async def test_a_status_lists_its_own_only(desk, specs, status):
    own = await add_spec(desk)
    every = ("CANDIDATE", "VALIDATED", "DEPLOYED", "RETIRED")
    ids = {name: await add_implementation(desk, name, own, status=name) for name in every}
    assert await implementations(specs, status) == ([ids[status]], 1)
    assert (await implementations(specs))[1] == 4


async def test_a_status_of_others_is_listed_under_all_alone(desk, specs):
    own = await add_spec(desk)
    await add_implementation(desk, "odd", own)
    if desk.source == "sqlite":
        await desk.execute("PRAGMA ignore_check_constraints = ON")
    else:
        await desk.execute("ALTER TABLE strategy_implementations DROP CONSTRAINT strategy_implementations_status_check")
    await desk.execute("UPDATE strategy_implementations SET status = 'STALE'")
    (found,), total = await specs.implementations(own, "ALL", offset=0, limit=5, as_of=AS_OF)
    assert (found.status, total) == ("STALE", 1)
    for status in ("CANDIDATE", "VALIDATED", "DEPLOYED", "RETIRED"):
        assert await implementations(specs, status) == ([], 0)
    assert (await specs.ranked("ALL", offset=0, limit=1, as_of=AS_OF))[0][0].implementations_count == 1


async def test_an_implementation_tells_what_it_did_forward_only(desk, specs):
    own = await add_spec(desk)
    await add_implementation(desk, "a", own, backtest_sharpe=3.0, backtest_accuracy=0.9, parameters={"b": 1, "a": 2.5})
    (found,), _ = await specs.implementations(own.upper(), "ALL", offset=0, limit=1, as_of=AS_OF)
    assert (found.forward_sharpe, found.forward_accuracy, found.parameters) == (None, None, {"a": 2.5, "b": 1})
    assert (found.symbol, found.status) == ("BTC/USD", "VALIDATED")


@pytest.mark.parametrize("nobody", ["", "42", "'; DROP TABLE strategy_specs; --", "x" * 5000, "\0", uid("nobody")])
async def test_nobodys_id_has_no_implementations(specs, nobody):
    assert await specs.implementations(nobody, "ALL", offset=0, limit=1, as_of=AS_OF) is None


# pages


@settings(deadline=None, max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(limit=st.integers(1, 9))
async def test_pages_put_together_are_the_whole(many, specs, limit):
    for ask in (ranked, implementations):
        whole, total = await ask(specs, limit=100)
        pages = [await ask(specs, offset=offset, limit=limit) for offset in range(0, total, limit)]
        assert [one for page, _ in pages for one in page] == whole
        assert len(set(whole)) == total == 23
        assert {count for _, count in pages} == {total}
        assert await ask(specs, offset=1000) == ([], total)


async def test_the_same_figures_in_another_order_have_the_same_mean(desk, specs):
    figures = [0.1, 0.2, 0.3, 1e-9, 7.7, 1 / 3]
    for name, order in (("A", figures), ("B", figures[::-1])):
        own = await add_spec(desk, name)
        for number, sharpe in enumerate(order):
            await add_implementation(desk, f"{name}{number}", own, forward_sharpe=sharpe)
    (first, second), _ = await specs.ranked("ALL", offset=0, limit=2, as_of=AS_OF)
    assert (first.name, first.avg_sharpe) == ("A", second.avg_sharpe)
    assert first.avg_sharpe == pytest.approx(sum(figures) / len(figures))


# the two times


async def test_nothing_that_became_known_later_is_in_any_answer(desk, specs):
    known = await add_spec(desk, "KNOWN")
    await add_implementation(desk, "known", known, forward_sharpe=1.0)

    async def write_later() -> None:
        late = await add_spec(desk, "LATE", created_at=LATER, updated_at=LATER, **TWIN)
        await add_implementation(desk, "late", known, forward_sharpe=9.0, created_at=LATER, updated_at=LATER)
        await add_implementation(desk, "of a late spec", late, forward_sharpe=9.0)

    await assert_sealed(specs, READS, write_later, at=NOON, later=LATER, no_reads={"save"})


async def test_a_later_spec_of_the_name_is_not_told_by_its_id(desk, specs):
    late = await add_spec(desk, "SMA_RSI", created_at=LATER, updated_at=LATER)
    assert await specs.named("SMA_RSI", as_of=AS_OF) == Saved(None, created=False)
    assert await specs.save(made(), as_of=AS_OF) == Saved(None, created=False)
    assert await specs.named("SMA_RSI", as_of=RUNNING) == Saved(late, created=False)


@pytest.mark.parametrize("what", ["implementation", "spec", "retired spec", "spec of another origin"])
async def test_a_ranking_of_which_anything_changed_later_is_refused_not_shown(desk, specs, what):
    own = await add_spec(desk)
    await add_implementation(desk, "one", own)
    table = "strategy_implementations" if what == "implementation" else "strategy_specs"
    change = {"retired spec": "is_active = FALSE,", "spec of another origin": "source = 'USER_CREATED',"}.get(what, "")
    await desk.execute(f"UPDATE {table} SET {change} updated_at = :at", at=LATER)
    for origin in ("ALL", "CANONICAL"):
        with pytest.raises(NotInPast, match="after the fixed clock"):
            await ranked(specs, origin)
    await ranked(specs, as_of=RUNNING)


async def test_a_list_of_implementations_of_which_one_changed_later_is_refused(desk, specs):
    own = await add_spec(desk)
    await add_implementation(desk, "one", own)
    await add_implementation(desk, "retired", own, status="RETIRED", updated_at=LATER)
    with pytest.raises(NotInPast, match="after the fixed clock"):
        await implementations(specs, "VALIDATED")
    assert (await implementations(specs, "VALIDATED", as_of=RUNNING))[1] == 1


async def test_what_a_changed_spec_was_like_is_not_told_at_a_fixed_clock(desk, specs):
    await add_spec(desk, "CHANGED", updated_at=LATER, **TWIN)
    await add_spec(desk, "STANDING", **TWIN)
    assert await specs.alike(made(), as_of=AS_OF) == ["STANDING"]
    assert await specs.alike(made(), as_of=RUNNING) == ["CHANGED", "STANDING"]


# saving


async def test_a_saved_spec_is_known_from_its_instant_on(desk, specs):
    saved = await specs.save(made(description="what", reasoning="why"), as_of=AS_OF)
    assert saved.created
    row = await desk.row("SELECT * FROM strategy_specs")
    assert {part: row[part] for part in TWIN} == TWIN
    assert (row["spec_id"], row["name"], row["source"]) == (saved.spec_id, "SMA_RSI", "LLM_GENERATED")
    assert (row["description"], row["reasoning"], row["is_active"], row["version"]) == ("what", "why", True, 1)
    assert (row["created_at"], row["updated_at"]) == (NOON, NOON)
    assert await ranked(specs) == (["SMA_RSI"], 1)
    assert await ranked(specs, as_of=Now.of(NOON - timedelta(seconds=1), fixed=True)) == ([], 0)


async def test_a_name_is_nobodys_twice(desk, specs):
    first = await specs.save(made(), as_of=AS_OF)
    assert await specs.save(made(description="another"), as_of=AS_OF) == Saved(first.spec_id, created=False)
    assert await specs.named("SMA_RSI", as_of=AS_OF) == Saved(first.spec_id, created=False)
    assert await specs.named("SMA_RS", as_of=AS_OF) is None
    assert len(await desk.rows("SELECT name FROM strategy_specs")) == 1


async def test_of_many_at_once_one_is_kept(desk, specs):
    saved = await asyncio.gather(*(specs.save(made(description=f"{n}"), as_of=RUNNING) for n in range(50)))
    assert sorted(one.created for one in saved) == [False] * 49 + [True]
    assert len({one.spec_id for one in saved}) == 1


async def test_a_twin_is_found_whatever_its_numbers_the_newest_first(desk, specs):
    await add_spec(desk, "OLD", created_at=LONG_AGO - timedelta(days=1), **TWIN)
    other = lists(made(exit_conditions=[{"type": "OVER_CONSTANT", "indicator": "sma", "params": {"threshold": 9}}]))
    await add_spec(desk, "NEW", **other)
    await add_spec(desk, "SMA_RSI", **TWIN)
    await add_spec(desk, "UNLIKE", **{**TWIN, "exit_conditions": TWIN["exit_conditions"] * 2})
    assert await specs.alike(made(), as_of=AS_OF) == ["NEW", "OLD"]


# the mark of a change


async def test_every_kind_of_change_makes_another_revision(desk):
    async def mark():
        return await Specs(desk).revision()  # which has nothing kept yet

    marks = [await mark()]
    own = await add_spec(desk)
    marks.append(await mark())
    await add_implementation(desk, "a", own)
    marks.append(await mark())
    await desk.execute("UPDATE strategy_implementations SET status = 'RETIRED', updated_at = :at", at=NOON)
    marks.append(await mark())
    await desk.execute("UPDATE strategy_specs SET is_active = FALSE, updated_at = :at", at=NOON)
    marks.append(await mark())
    await desk.execute("DELETE FROM strategy_implementations")
    marks.append(await mark())
    assert all(one != other for number, one in enumerate(marks) for other in marks[:number])
    assert await mark() == marks[-1]


async def test_our_own_save_is_another_revision_at_once(specs):
    before = await specs.revision()
    await specs.save(made(), as_of=Now.of(datetime.now(UTC), fixed=False))
    assert await specs.revision() != before


@pytest.fixture
async def specs(desk) -> Specs:
    return Specs(desk)


@pytest.fixture
async def many(desk) -> None:
    """23 specs, and of one of them 23 implementations; many are equal in what they are ranked by."""
    own = await add_spec(desk)
    for n in range(23):
        await add_implementation(desk, f"{n}", own, forward_sharpe=(n % 5) / 2 if n % 3 else None)
    for n in range(22):
        one = await add_spec(desk, f"S{n:02}")
        await add_implementation(desk, f"of {n}", one, forward_sharpe=(n % 4) / 2 if n % 3 else None)
