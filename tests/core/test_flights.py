"""One flight per question: who shares it, who outlives whom, and what is kept of it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from quantdeck.core.errors import Unreachable
from quantdeck.core.wire import canonical
from quantdeck.dialects.tradestream import tradestream
from quantdeck.flights import Entry, Flights, Tasks
from tests.support.clock import Ticks
from tests.support.runtime import BOB, Coordinated, Desk, Program, body, error_of, turns

FRESH = {"force_refresh": True}


@tradestream.tool(errors=(), cache_s=30)
async def look(desk: Desk) -> dict[str, Any]:
    """Look."""
    return {"asked": await desk.ask()}


def data(outcome: Any) -> int:
    number: int = body(outcome)["data"]["asked"]
    return number


@pytest.fixture
def program() -> Program:
    return Program()


async def gone(call: asyncio.Task[Any]) -> None:
    call.cancel()
    await asyncio.wait({call})
    assert call.cancelled()


async def test_any_number_of_callers_at_once_are_one_question(program):
    program.desk.gate.shut()
    calls = [program.begin(look) for _ in range(50)]
    await program.desk.gate.arrived.wait()
    await turns()
    program.desk.gate.open()
    assert [data(await call) for call in calls] == [1] * 50
    assert program.desk.asked == 1


async def test_a_failure_is_everybodys_who_waited(program):
    program.desk.gate.shut()
    program.desk.failure = Unreachable("gone", source="fake")
    calls = [program.begin(look) for _ in range(3)]
    await turns()
    program.desk.gate.open()
    assert [error_of(await call)[0] for call in calls] == ["DATABASE_ERROR"] * 3
    assert program.desk.asked == 1


async def test_a_flight_outlives_the_caller_who_started_it(program):
    program.desk.gate.shut()
    first, second = program.begin(look), program.begin(look, caller=BOB)
    await program.desk.gate.arrived.wait()
    await turns()
    await gone(first)
    program.desk.gate.open()
    assert data(await second) == 1
    assert (program.desk.asked, program.desk.gate.cancelled) == (1, 0)


async def test_a_flight_is_cancelled_with_its_last_waiter(program):
    program.desk.gate.shut()
    calls = [program.begin(look) for _ in range(3)]
    await program.desk.gate.arrived.wait()
    await turns()
    for call in calls:
        assert program.desk.gate.cancelled == 0
        await gone(call)
    await turns()
    assert program.desk.gate.cancelled == 1


async def test_who_comes_after_a_cancelled_flight_starts_another(program):
    program.desk.gate.shut()
    first = program.begin(look)
    await program.desk.gate.arrived.wait()
    await gone(first)
    program.desk.gate.open()
    assert data(await program.call(look)) == 2


async def test_a_refresh_asks_again_and_stores(program):
    await program.call(look)
    assert data(await program.call(look, FRESH)) == 2
    hit = body(await program.call(look))
    assert (hit["data"]["asked"], hit["_metadata"]["cached"]) == (2, True)


async def test_a_refresh_does_not_say_that_it_is_cached(program):
    await program.call(look)
    metadata = body(await program.call(look, FRESH))["_metadata"]
    assert (metadata["cached"], metadata["cache_ttl_remaining"]) == (False, None)


async def test_a_refresh_does_not_join_what_was_asked_before_it(program):
    program.desk.gate.shut()
    usual = program.begin(look)
    await program.desk.gate.arrived.wait()
    refresh = program.begin(look, FRESH)
    await turns()
    assert program.desk.asked == 2
    program.desk.gate.open()
    assert (data(await usual), data(await refresh)) == (1, 2)


async def test_a_refresh_joins_a_refresh_and_so_does_everybody_else(program):
    program.desk.gate.shut()
    calls = [program.begin(look, FRESH), program.begin(look, FRESH), program.begin(look)]
    await program.desk.gate.arrived.wait()
    await turns()
    program.desk.gate.open()
    assert [data(await call) for call in calls] == [1, 1, 1]


async def test_who_finds_a_stored_answer_does_not_wait_for_a_refresh(program):
    await program.call(look)
    program.desk.gate.shut()
    refresh = program.begin(look, FRESH)
    await turns()
    assert data(await program.call(look)) == 1
    program.desk.gate.open()
    await refresh


async def test_an_older_answer_never_overwrites_a_newer_one():
    program = Program(desk=Slow())
    assert isinstance(program.desk, Slow)
    old = program.begin(look)
    await turns()
    program.ticks.advance(1)
    new = program.begin(look, FRESH)
    await turns()
    program.desk.release(2)
    assert data(await new) == 2
    program.desk.release(1)
    assert data(await old) == 1, "who asked before gets what was true then"
    assert data(await program.call(look)) == 2


async def test_nobody_joins_a_flight_from_before_a_change(program):
    program.desk.gate.shut()
    before = program.begin(look)
    await program.desk.gate.arrived.wait()
    program.runtime.flights.forget("look")
    after = program.begin(look)
    await turns()
    program.desk.gate.open()
    assert (data(await before), data(await after)) == (1, 2)
    assert data(await program.call(look)) == 2


async def test_an_answer_from_before_a_change_is_not_stored_after_it(program):
    program.desk.gate.shut()
    before = program.begin(look)
    await program.desk.gate.arrived.wait()
    program.runtime.flights.forget("look")
    program.desk.gate.open()
    assert data(await before) == 1
    assert data(await program.call(look)) == 2


async def test_forgetting_a_tool_drops_its_answers_and_no_others(program):
    @tradestream.tool(errors=(), cache_s=30)
    async def gaze(desk: Desk) -> dict[str, Any]:
        """Look."""
        return {"asked": await desk.ask()}

    await program.call(look)
    await program.call(gaze)
    program.runtime.flights.forget("look")
    assert data(await program.call(gaze)) == 2
    assert data(await program.call(look)) == 3


async def test_replicas_share_answers_through_the_shared_store():
    ticks = Ticks()
    shared = Coordinated(ticks, shared=True)
    one, two = (Program(ticks=ticks, desk=Desk(f"desk {n}"), coordination=shared) for n in (1, 2))
    await one.call(look)
    ticks.advance(10)
    told = body(await two.call(look))
    assert (told["data"]["asked"], two.desk.asked) == (1, 0)
    assert told["_metadata"].items() >= {"cached": True, "cache_ttl_remaining": 20.0, "source": "desk 1"}.items()
    ticks.advance(20)
    await two.call(look)
    assert two.desk.asked == 1, "what came from the store ages as it does there"


async def test_a_refresh_goes_past_the_shared_store_and_into_it():
    ticks = Ticks()
    shared = Coordinated(ticks, shared=True)
    one, two = (Program(ticks=ticks, coordination=shared) for _ in range(2))
    await one.call(look)
    assert data(await one.call(look, FRESH)) == 2
    assert data(await two.call(look)) == 2


class Slow(Desk):
    """Each question waits for its own release."""

    def __init__(self) -> None:
        super().__init__()
        self._released: dict[int, asyncio.Event] = {}

    def release(self, number: int) -> None:
        self._released.setdefault(number, asyncio.Event()).set()

    async def ask(self) -> int:
        self.asked += 1
        number = self.asked
        await self._released.setdefault(number, asyncio.Event()).wait()
        return number


def entry(size: int, asked_at: float = 0.0) -> Entry:
    return Entry(b"x" * size, "fake", asked_at, asked_at + 30)


def key(number: int) -> bytes:
    return canonical(["tool", number])


def test_the_store_is_bounded_by_entries_and_lets_go_of_what_was_least_used():
    flights = Flights(max_entries=3, clock=Ticks())
    for number in range(3):
        flights.store(key(number), entry(1, 1000))
    assert flights.fresh(key(0))
    flights.store(key(3), entry(1, 1000))
    assert [flights.fresh(key(number)) is not None for number in range(4)] == [True, False, True, True]


def test_the_store_is_bounded_by_bytes_the_questions_included():
    flights = Flights(max_bytes=10_000, clock=Ticks())
    for number in range(100):
        flights.store(canonical(["tool", "q" * 900, number]), entry(50, 1000))
    assert sum(len(k) + len(e.data) for k, e in flights._stored.items()) <= 10_000
    assert len(flights._stored) == 10


def test_what_is_too_large_to_keep_empties_nothing_but_its_own_place():
    flights = Flights(max_bytes=1000, clock=Ticks())
    flights.store(key(1), entry(10, 1000))
    flights.store(key(2), entry(10, 1000))
    flights.store(key(2), entry(5000, 1001))
    assert flights.fresh(key(1)) is not None
    assert flights.fresh(key(2)) is None, "an older answer must not stand in for it"


def test_the_bytes_are_counted_down_as_well():
    flights = Flights(clock=Ticks())
    for _ in range(3):
        flights.store(key(1), entry(100, 1000))
    flights.drop(key(1))
    flights.drop(key(1))
    assert flights._bytes == 0


async def test_at_the_end_what_was_begun_is_waited_for_but_not_for_ever():
    tasks, quick, never = Tasks(), asyncio.Event(), asyncio.Event()
    done = [tasks.start(wait_for(quick)), tasks.start(wait_for(never))]
    quick.set()
    assert await tasks.finish(0.05) == 1
    assert [task.cancelled() for task in done] == [False, True]


async def test_who_waits_for_a_flight_that_was_broken_off_before_it_began_hears_of_it_and_may_ask_again():
    flights, tasks = Flights(), Tasks()

    async def ask() -> Entry:
        return entry(1)

    waiting = asyncio.create_task(flights.join(key(1), ask, tasks, refresh=False))
    await turns(1)
    assert await tasks.finish(0) == 1
    await asyncio.wait({waiting})
    assert waiting.cancelled()
    assert await flights.join(key(1), ask, tasks, refresh=False) == entry(1)


async def wait_for(event: asyncio.Event) -> None:
    await event.wait()
