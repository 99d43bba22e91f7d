"""The catalog spec: MCP-nnn codes, an envelope over REST, the bare result and `_meta` over MCP."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from pydantic import Field

from quantdeck.core.clock import Clock
from quantdeck.core.errors import Denied, Unreachable
from quantdeck.dialects.catalog import CODES, catalog
from tests.support.clock import INSTANT
from tests.support.contracts import contract_of
from tests.support.runtime import ALICE, BOB, Desk, Program, body, error_of

SPEC = contract_of("catalog")
STATUSES = {
    "MCP-001": 400, "MCP-002": 401, "MCP-003": 503, "MCP-004": 504, "MCP-005": 409, "MCP-006": 429, "MCP-007": 404,
    "MCP-008": 501, "MCP-009": 500, "MCP-010": 422, "MCP-011": 422, "MCP-012": 422, "MCP-014": 507, "MCP-999": 500,
}  # fmt: skip


@catalog.tool("risk.look", deadline_ms=5000, p95_ms=20, per_minute=3, cache_s=60)
async def look(
    desk: Desk,
    number: Annotated[float, Field(description="A number", gt=0)] = 1,
    label: Annotated[str, Field(description="A label")] = "",
) -> dict[str, float]:
    """Look."""
    del label
    return {"asked": await desk.ask(), "number": number}


@catalog.tool("storage.put", deadline_ms=100, p95_ms=30, per_minute=500, effect=True)
async def put(desk: Desk) -> dict[str, int]:
    """Put."""
    return {"asked": await desk.ask()}


@pytest.fixture
def program() -> Program:
    return Program(clock=Clock(INSTANT))


def test_every_code_of_the_table_is_there_with_its_words():
    assert {code.code: (code.description, code.retry) for code in CODES} == {
        code: (row["description"], row["retry"]) for code, row in SPEC["error_codes"].items()
    }


def test_every_code_has_its_status():
    assert {code.code: code.status for code in CODES if code.code != "MCP-013"} == STATUSES


async def test_over_rest_a_success_is_the_envelope(program):
    answer = await program.call(look, {"number": 7}, transport="rest", correlation_id="c-1")
    told = body(answer)
    assert told.pop("duration_ms") >= 0
    assert len(told["metadata"].pop("idempotency_key")) == 16
    assert told == {
        "error": False,
        "data": {"asked": 1, "number": 7.0},
        "corr_id": "c-1",
        "timestamp": "2026-01-15T09:30:00Z",
        "tool": "risk.look",
        "metadata": {"cached": False, "source": "fake"},
    }


@pytest.mark.parametrize("transport", ["rest", "http", "stdio"])
async def test_a_failure_is_the_error_envelope_on_every_transport(program, transport):
    program.desk.failure = Unreachable("The store does not answer.", source="redis", hint="later")
    answer = await program.call(look, transport=transport, correlation_id="c-1")
    assert (answer.is_error, answer.status) == (True, 503)
    assert body(answer) == {
        "error": True,
        "code": "MCP-003",
        "message": "Backend unavailable: The store does not answer.",
        "corr_id": "c-1",
        "details": {"hint": "later"},
        "timestamp": "2026-01-15T09:30:00Z",
        "tool": "risk.look",
    }


@pytest.mark.parametrize("transport", ["http", "stdio"])
async def test_over_mcp_the_result_is_bare_and_the_rest_stands_beside_it(program, transport):
    answer = await program.call(look, {"number": 7}, transport=transport, correlation_id="c-1")
    assert body(answer) == {"asked": 1, "number": 7.0}
    meta = dict(answer.meta)
    assert meta.pop("duration_ms") >= 0
    assert len(meta.pop("idempotency_key")) == 16
    assert meta == {
        "quantdeck/source": "fake", "corr_id": "c-1", "timestamp": "2026-01-15T09:30:00Z", "cached": False,
    }  # fmt: skip


async def test_a_hit_says_so_on_both(program):
    await program.call(look)
    assert (await program.call(look)).meta["cached"] is True
    assert body(await program.call(look, transport="rest"))["metadata"]["cached"] is True


async def key_of(program: Program, arguments: dict[str, Any], tool: Any = look) -> Any:
    return (await program.call(tool, arguments)).meta.get("idempotency_key")


async def test_the_derived_key_is_over_all_normalised_arguments():
    program = Program()
    program.runtime.per_minute = {"risk.look": 0}
    plain = await key_of(program, {})
    assert plain == await key_of(program, {"number": 1.0}) == await key_of(program, {"label": "", "number": 1})
    assert plain != await key_of(program, {"number": 2})
    assert plain != await key_of(program, {"label": "x"})


async def test_the_derived_key_tells_apart_whatever_the_kept_answers_do():
    @catalog.tool("own", deadline_ms=5000, p95_ms=1, per_minute=0, cache_s=60, vary=("account",))
    async def own(desk: Desk) -> dict[str, Any]:
        """Look."""
        return {"asked": await desk.ask()}

    program = Program()
    keys = [(await program.call(own, caller=caller)).meta["idempotency_key"] for caller in (ALICE, BOB, ALICE)]
    assert keys[0] == keys[2] != keys[1]


async def test_what_is_not_cached_has_no_derived_key(program):
    assert await key_of(program, {}, put) is None


async def test_a_source_that_denies_is_not_called_unavailable(program):
    program.desk.failure = Denied("The store does not let us in.", source="redis")
    assert error_of(await program.call(look))[:2] == ("MCP-002", "The store does not let us in.")


async def test_a_limit_is_told_in_headers_on_success_and_failure(program):
    answers = [await program.call(look, transport="rest") for _ in range(4)]
    assert [answer.headers["X-RateLimit-Remaining"] for answer in answers] == ["2", "1", "0", "0"]
    refused = answers[-1]
    assert (refused.code, refused.status, refused.headers["Retry-After"]) == ("MCP-006", 429, "60")
    assert body(refused)["details"] == {"limit": 3, "retry_after_s": 60}


async def test_schema_failures_say_invalid_arguments_and_name_the_rule(program):
    _, sentence, details = error_of(await program.call(look, {"number": -1}))
    assert sentence.startswith("Invalid arguments: ")
    assert details["invalid_arguments"][0]["rule"] == "exclusiveMinimum"


async def test_a_replay_has_the_envelope_of_its_own_call(program):
    await program.call(put, transport="rest", idempotency_key="k", correlation_id="first")
    again = body(await program.call(put, transport="rest", idempotency_key="k", correlation_id="second"))
    assert (again["data"], again["corr_id"], again["metadata"]["source"]) == ({"asked": 1}, "second", "fake")


def test_the_policy_is_what_the_catalog_says():
    policy = look.policy
    assert (policy.deadline_s, policy.p95_ms, policy.per_minute, policy.cache_s) == (5.0, 20, 3, 60)
