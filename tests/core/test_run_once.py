"""Under an explicit key an effect happens once, whichever journal remembers it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

import pytest
from pydantic import Field

from quantdeck.connections.database import Database
from quantdeck.connections.sqlite import SQLite
from quantdeck.core.call import Caller
from quantdeck.core.errors import Busy, Denied, ErrorCode, NotConfigured, QueryFailed, Unreachable
from quantdeck.dialects.catalog import catalog
from quantdeck.dialects.tradestream import tradestream
from quantdeck.sources.coordination.embedded import Embedded
from tests.support.runtime import ALICE, BOB, Desk, Gate, Program, body, error_of, turns

FULL = ErrorCode("FULL", "No room", 507)


@tradestream.tool(errors=(FULL,), effect=True)
async def save(desk: Desk, what: Annotated[str, Field(description="What")] = "x") -> dict[str, Any]:
    """Save."""
    return {"asked": await desk.ask(), "what": what}


@tradestream.tool(errors=(), effect=True)
async def erase(desk: Desk, what: Annotated[str, Field(description="What")] = "x") -> dict[str, Any]:
    """Erase."""
    return {"asked": await desk.ask(), "what": what}


@catalog.tool("peek", deadline_ms=5000, p95_ms=1, per_minute=100)
async def peek(desk: Desk) -> dict[str, Any]:
    """Look."""
    return {"asked": await desk.ask()}


@pytest.fixture
async def database(tmp_path) -> AsyncIterator[Database]:
    opened = SQLite(tmp_path / "state.db", groups=("journal", "state"))
    yield opened
    await opened.close()


@pytest.fixture(params=["the source's journal", "the coordination's journal"])
async def program(request, database) -> AsyncIterator[Program]:
    own = request.param == "the source's journal"
    made = Program(desk=Desk(journal=database.journal if own else None), coordination=Embedded(lambda: database))
    yield made
    made.desk.gate.open()
    await made.runtime.tasks.finish(30)


async def test_without_a_key_every_call_is_an_effect(program):
    assert [body(await program.call(save))["data"]["asked"] for _ in range(2)] == [1, 2]


async def test_the_same_key_and_arguments_replay_the_answer(program):
    first = body(await program.call(save, {"what": "a"}, idempotency_key="k"))
    again = body(await program.call(save, {"what": "a"}, idempotency_key="k"))
    assert first["data"] == again["data"] == {"asked": 1, "what": "a"}
    assert again["_metadata"]["source"] == "fake"
    assert [event.get("replayed") for event in program.events] == [None, True]


async def test_arguments_are_the_same_if_they_mean_the_same(program):
    await program.call(save, idempotency_key="k")
    await program.call(save, {"what": "x"}, idempotency_key="k")
    await program.call(save, {"what": None}, idempotency_key="k")
    assert program.desk.asked == 1


async def test_the_same_key_with_other_arguments_is_a_conflict(program):
    await program.call(save, {"what": "a"}, idempotency_key="k")
    code, sentence, details = error_of(await program.call(save, {"what": "b"}, idempotency_key="k"))
    assert (code, details) == ("INVALID_PARAMETER", {"idempotency_key": "k"})
    assert "choose a new key" in sentence
    assert program.desk.asked == 1


async def test_a_spec_with_a_code_for_conflicts_uses_it(program):
    @catalog.tool("put", deadline_ms=5000, p95_ms=1, per_minute=100, effect=True)
    async def put(desk: Desk, what: Annotated[str, Field(description="What")]) -> dict[str, Any]:
        """Put."""
        return {"asked": await desk.ask(), "what": what}

    await program.call(put, {"what": "a"}, idempotency_key="k")
    refused = await program.call(put, {"what": "b"}, idempotency_key="k")
    assert (refused.code, refused.status) == ("MCP-005", 409)


async def test_a_key_belongs_to_its_caller_and_its_tool(program):
    await program.call(save, idempotency_key="k", caller=ALICE)
    await program.call(save, idempotency_key="k", caller=BOB)
    await program.call(erase, idempotency_key="k", caller=ALICE)
    await program.call(save, {"what": "other"}, idempotency_key="k2", caller=ALICE)
    assert program.desk.asked == 4


async def test_a_colon_in_a_callers_name_does_not_make_him_another(program):
    await program.call(save, idempotency_key="k", caller=Caller("a:save"))
    await program.call(save, idempotency_key="save:k", caller=Caller("a"))
    assert program.desk.asked == 2


async def test_a_concurrent_call_with_the_same_key_waits_and_replays(program):
    program.desk.gate.shut()
    calls = [program.begin(save, idempotency_key="k") for _ in range(5)]
    await program.desk.gate.arrived.wait()
    await turns()
    assert not any(call.done() for call in calls)
    program.desk.gate.open()
    answers = [body(await call)["data"] for call in calls]
    assert answers == [{"asked": 1, "what": "x"}] * 5
    assert sum(event.get("replayed", False) for event in program.events) == 4


async def test_a_concurrent_call_with_other_arguments_is_a_conflict(program):
    program.desk.gate.shut()
    first = program.begin(save, {"what": "a"}, idempotency_key="k")
    await program.desk.gate.arrived.wait()
    second = program.begin(save, {"what": "b"}, idempotency_key="k")
    await turns()
    program.desk.gate.open()
    assert error_of(await second)[0] == "INVALID_PARAMETER"
    assert body(await first)["data"]["asked"] == 1


async def test_a_caller_that_went_away_can_come_back_for_the_answer(program):
    program.desk.gate.shut()
    call = program.begin(save, idempotency_key="k")
    await program.desk.gate.arrived.wait()
    call.cancel()
    await asyncio.wait({call})
    program.desk.gate.open()
    assert body(await program.call(save, idempotency_key="k"))["data"]["asked"] == 1
    assert (program.desk.asked, program.desk.finished) == (1, 1)


FAILURES = [FULL("full"), Busy("busy", source="fake"), Denied("no", source="fake"), NotConfigured("no", source="fake")]


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: type(failure).__name__)
async def test_an_error_is_not_stored_and_the_key_stays_free(program, failure):
    program.desk.failure = failure
    assert (await program.call(save, idempotency_key="k")).is_error
    program.desk.failure = None
    assert body(await program.call(save, {"what": "else"}, idempotency_key="k"))["data"]["asked"] == 2


@pytest.mark.parametrize(
    "failure", [Unreachable("gone", source="fake"), QueryFailed("no", source="fake"), OSError("!")]
)
async def test_an_effect_that_broke_off_is_unknown_unless_a_transaction_took_it_back(database, failure):
    for own, code, details in (
        (database.journal, None, None),
        (None, "TIMEOUT", {"idempotency_key": "k", "outcome": "unknown"}),
    ):
        program = Program(desk=Desk(journal=own), coordination=Embedded(lambda: database))
        program.desk.failure = failure
        await program.call(save, idempotency_key="k")
        program.desk.failure = None
        again = await program.call(save, idempotency_key="k")
        if code is None:
            assert body(again)["data"]["asked"] == 2
        else:
            assert error_of(again)[::2] == (code, details)
            assert "not known" in error_of(again)[1]
            assert program.desk.asked == 1


async def test_a_refusal_of_bad_arguments_does_not_use_up_the_key(program):
    await program.call(save, {"what": 5}, idempotency_key="k")
    assert not (await program.call(save, idempotency_key="k")).is_error


@pytest.mark.parametrize("key", ["", "x" * 256, "with\0nul", "two\nlines", 7, {"a": 1}, ["k"], True])
async def test_a_key_is_short_printable_text(program, key):
    assert error_of(await program.call(save, idempotency_key=key))[0] == "INVALID_PARAMETER"
    assert program.desk.asked == 0


class Slow:
    """A database whose word that a transaction is done takes a while to arrive."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.gate = Gate()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        async with self._database.transaction():
            yield
        await self.gate.passed()


async def test_a_caller_that_leaves_while_its_claim_is_stored_leaves_the_key_free(database):
    slow: Any = Slow(database)
    program = Program(coordination=Embedded(lambda: slow))
    slow.gate.shut()
    call = program.begin(save, idempotency_key="k")
    await slow.gate.arrived.wait()
    call.cancel()
    await asyncio.wait({call})
    await program.runtime.tasks.finish(30)
    slow.gate.open()
    assert body(await program.call(save, idempotency_key="k"))["data"]["asked"] == 1


async def test_an_answer_that_breaks_its_schema_does_not_make_its_effect_happen_again(program):
    @catalog.tool("put.badly", deadline_ms=5000, p95_ms=1, per_minute=100, effect=True)
    async def put_badly(desk: Desk) -> dict[str, int]:
        """Put."""
        await desk.ask()
        return {"asked": "many"}  # type: ignore[dict-item]

    answers = [await program.call(put_badly, idempotency_key="k") for _ in range(2)]
    assert [answer.code for answer in answers] == ["MCP-009", "MCP-009"]
    assert program.desk.asked == 1


async def test_a_key_on_a_read_replays_too_but_is_never_unknown(program):
    program.desk.gate.shut()
    call = program.begin(peek, idempotency_key="k")
    await program.desk.gate.arrived.wait()
    call.cancel()
    await asyncio.wait({call})
    await program.runtime.tasks.finish(30)
    assert program.desk.gate.cancelled == 1
    program.desk.gate.open()
    first, again = [body(await program.call(peek, idempotency_key="k")) for _ in range(2)]
    assert first == again == {"asked": 2}


async def test_the_sources_own_journal_is_used_when_it_has_one(database):
    async def count(table: str) -> Any:
        row = await database.row(f"SELECT count(*) AS n FROM {table}")
        assert row is not None
        return row["n"]

    for own in (database.journal, None):
        program = Program(desk=Desk(journal=own), coordination=Embedded(lambda: database))
        await program.call(save, idempotency_key=f"k{own is None}")
    assert (await count("idempotency_keys"), await count("idempotency_claims")) == (1, 1)


async def test_claim_effect_and_answer_share_one_transaction(database):
    await database.execute("CREATE TABLE deeds (what TEXT)")

    class Ledger(Desk):
        async def ask(self) -> int:
            await database.execute("INSERT INTO deeds VALUES ('done')")
            return await super().ask()

    program = Program(desk=Ledger(journal=database.journal))
    program.desk.failure = QueryFailed("The database refused the query.", source="fake")
    assert (await program.call(save, idempotency_key="k")).is_error
    assert await database.rows("SELECT * FROM deeds") == []
    program.desk.failure = None
    await asyncio.gather(*(program.call(save, idempotency_key="k") for _ in range(5)))
    assert len(await database.rows("SELECT * FROM deeds")) == 1


@tradestream.tool(errors=(), cache_s=60)
async def recall(desk: Desk) -> dict[str, Any]:
    """Recall."""
    return {"asked": await desk.ask()}


@tradestream.tool(errors=(), effect=True, forgets=("recall",))
async def note(desk: Desk) -> dict[str, Any]:
    """Note."""
    return {"asked": await desk.ask()}


@pytest.mark.parametrize("key", [None, "k"])
async def test_an_effect_drops_the_kept_answers_that_it_makes_stale(program, key):
    async def asked() -> int:
        return int(body(await program.call(recall))["data"]["asked"])

    assert [await asked(), await asked()] == [1, 1]
    await program.call(note, idempotency_key=key)
    assert await asked() == 3


async def test_it_does_so_also_when_its_caller_did_not_wait_for_it(program):
    assert body(await program.call(recall))["data"]["asked"] == 1
    program.desk.gate.shut()
    program.desk.gate.arrived.clear()
    impatient = program.begin(note)
    await program.desk.gate.arrived.wait()
    impatient.cancel()
    await asyncio.wait({impatient})
    assert program.runtime.flights.holds("recall")
    program.desk.gate.open()
    await program.runtime.tasks.finish(30)
    assert not program.runtime.flights.holds("recall")
