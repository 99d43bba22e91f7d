"""What `Decisions` promises, on every engine."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quantdeck.connections.database import Database
from quantdeck.connections.sqlite import SQLite
from quantdeck.core.clock import Now
from quantdeck.sources.sql.decisions import Decision, Decisions
from tests.support.decisions import save
from tests.support.desk import LATER, LONG_AGO, NOON
from tests.support.leaks import Reads, assert_sealed

AS_OF = Now.of(NOON, fixed=True)
MINUTE = timedelta(minutes=1)

READS: Reads = {
    "recent": lambda source, as_of: source.recent(symbol=None, action=None, offset=0, limit=100, as_of=as_of),
}
"""Each read, for the leak test."""

NO_READS = {"save"}

EVERY_FILTER = [(symbol, action) for symbol in (None, "BTC/USD", "ETH/USD") for action in (None, "BUY", "HOLD")]


async def recent(decisions, symbol=None, action=None, offset=0, limit=100, as_of=AS_OF):
    found, total = await decisions.recent(symbol=symbol, action=action, offset=offset, limit=limit, as_of=as_of)
    return [decision.decision_id for decision in found], total


@pytest.fixture
def decisions(diary) -> Decisions:
    return Decisions(diary)


@pytest.fixture
async def many(decisions) -> list[dict[str, str]]:
    """Seven instants with up to four decisions each, in no order; newest first."""
    saved = []
    for number in range(23):
        at = NOON - MINUTE * (number * 5 % 7)
        said = {"symbol": ("BTC/USD", "ETH/USD")[number % 2], "action": ("BUY", "SELL", "HOLD")[number % 3]}
        saved.append((at, number, {"id": await save(decisions, at, **said), **said}))
    return [row for *_, row in sorted(saved, key=lambda one: one[:2], reverse=True)]


async def test_what_was_saved_is_told_as_it_was(decisions):
    saved = await save(decisions, NOON, confidence=0.0, opportunity_score=0.0, reasoning="because")
    found, total = await decisions.recent(symbol=None, action=None, offset=0, limit=10, as_of=AS_OF)
    assert (found, total) == ([Decision(saved, "BTC/USD", "BUY", 0.0, 0.0, "because", NOON)], 1)


@pytest.mark.parametrize("symbol, action", EVERY_FILTER, ids=str)
async def test_each_filter_tells_its_own_newest_first(decisions, many, symbol, action):
    wanted = [row["id"] for row in many if symbol in (None, row["symbol"]) and action in (None, row["action"])]
    assert await recent(decisions, symbol, action) == (wanted, len(wanted))


async def test_what_was_decided_at_one_instant_is_told_last_saved_first(decisions):
    ids = [await save(decisions, NOON) for _ in range(5)]
    assert await recent(decisions) == (ids[::-1], 5)


async def test_a_clock_that_is_set_back_hides_nothing_and_changes_no_order(decisions):
    running, set_back = (Now.of(at, fixed=False) for at in (NOON, NOON - MINUTE))
    ids = [await save(decisions, at) for at in (running, set_back)]
    assert await recent(decisions, as_of=set_back) == (ids[::-1], 2)
    assert await recent(decisions, as_of=Now.of(NOON - MINUTE, fixed=True)) == ([], 0)


@settings(deadline=None, max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(limit=st.integers(1, 25), asked=st.sampled_from(EVERY_FILTER))
async def test_pages_put_together_are_the_whole(many, decisions, limit, asked):
    symbol, action = asked
    whole, total = await recent(decisions, symbol, action)
    pages = [await recent(decisions, symbol, action, offset, limit) for offset in range(0, total, limit)]
    assert [found for page, _ in pages for found in page] == whole
    assert len(set(whole)) == total
    assert {count for _, count in pages} == {total}


async def test_a_page_past_the_end_is_empty_with_the_true_total(many, decisions):
    assert await recent(decisions, offset=2**62) == ([], len(many))
    assert await recent(decisions, "XAU/USD") == ([], 0)


async def test_nothing_that_became_known_later_is_in_any_answer(decisions):
    await save(decisions, LONG_AGO)

    async def write_later() -> None:
        await save(decisions, LATER)

    await assert_sealed(decisions, READS, write_later, at=NOON, later=LATER, no_reads=NO_READS)


@pytest.mark.parametrize(
    "score, tier",
    [(None, None), (0.0, "LOW"), (39.99, "LOW"), (40.0, "NEUTRAL"), (60.0, "GOOD"), (79.99, "GOOD"), (80.0, "HOT"),
     (100.0, "HOT")],
)  # fmt: skip
async def test_the_tier_follows_from_the_score(diary, decisions, score, tier):
    await save(decisions, NOON, opportunity_score=score)
    (row,) = await diary.rows("SELECT opportunity_score, opportunity_tier FROM agent_decisions")
    assert (row["opportunity_score"], row["opportunity_tier"]) == (score, tier)


TEXT = st.text(st.characters(exclude_categories=["Cs"], min_codepoint=1))
# JSONB knows no floats: one between these bounds comes back as the integer that its shortest form is.
FLOAT = st.floats(allow_nan=False, allow_infinity=False).filter(lambda number: not 2**53 <= abs(number) < 2**64)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | FLOAT | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(calls=st.lists(JSON, max_size=5), reasoning=TEXT)
async def test_what_was_asked_and_why_come_back_as_they_went_in(diary, decisions, calls, reasoning):
    saved = await save(decisions, NOON, tool_calls={"calls": calls}, reasoning=reasoning)
    row = await diary.row("SELECT tool_calls, reasoning FROM agent_decisions WHERE decision_id = :saved", saved=saved)
    assert row == {"tool_calls": {"calls": calls}, "reasoning": reasoning}


# The mark by which kept answers end.


@pytest.fixture
async def elsewhere(engine, diary, tmp_path):
    """The same table through another connection, as another process has it."""
    if engine == "sqlite":
        database: Database = SQLite(tmp_path / "decisions.db", groups=("decisions",))
    else:
        from quantdeck.connections.postgresql import PostgreSQL

        database = PostgreSQL(diary._dsn)
    yield database
    await database.close()


async def revision(database) -> object:
    """As somebody sees it who has not asked before."""
    return await Decisions(database).revision()


async def test_the_mark_stays_while_nothing_is_saved_and_changes_with_every_save(diary, elsewhere, decisions):
    seen = [await revision(elsewhere), await revision(elsewhere)]
    assert seen[0] == seen[1]
    for _ in range(3):
        await save(decisions, NOON)
        seen.append(await revision(elsewhere))
        assert seen[-1] not in seen[:-1]


async def test_our_own_save_changes_the_mark_at_once(decisions):
    before = await decisions.revision()
    await save(decisions, NOON)
    assert await decisions.revision() != before


async def test_a_table_that_was_made_anew_with_as_many_rows_has_another_mark(diary, decisions):
    await save(decisions, NOON)
    before = await revision(diary)
    await diary.execute("DELETE FROM agent_decisions")
    if diary.source == "sqlite":
        await diary.execute("DELETE FROM sqlite_sequence")
    else:
        await diary.execute("ALTER TABLE agent_decisions ALTER COLUMN seq RESTART")
    await save(decisions, NOON)
    assert await revision(diary) != before


@pytest.mark.parametrize("engine", [pytest.param("postgresql", marks=pytest.mark.services)], indirect=True)
async def test_a_save_that_is_committed_after_a_later_one_changes_the_mark_too(diary, elsewhere, decisions):
    saved, go_on = asyncio.Event(), asyncio.Event()

    async def slowly() -> None:
        async with diary.transaction():
            await save(decisions, NOON)
            saved.set()
            await go_on.wait()

    async with asyncio.TaskGroup() as group:
        group.create_task(slowly())
        await saved.wait()
        await save(Decisions(elsewhere), NOON)
        before = await revision(elsewhere)
        go_on.set()
    assert await revision(elsewhere) != before
    assert (await recent(decisions))[1] == 2
