"""One event per call, however it ends, under the names of the Pyth spec."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from hashlib import sha256
from types import ModuleType
from typing import Annotated, Any

import pytest
from opentelemetry import trace
from pydantic import Field

from quantdeck.core.call import Call
from quantdeck.core.errors import Denied, ErrorCode, Unreachable
from quantdeck.dialects.catalog import catalog
from quantdeck.dialects.chart import chart
from quantdeck.dialects.pyth import NOT_FOUND, log_fields, pyth
from quantdeck.dialects.tradestream import tradestream
from quantdeck.observability import calls
from tests.support.contracts import contract_of
from tests.support.runtime import BOB, Desk, Program, turns

MISSING = ErrorCode("MISSING", "Nothing there", 404)
PYTH = contract_of("pyth")


@pyth.tool()
async def look(desk: Desk, number: Annotated[int, Field(description="A number")] = 0) -> dict[str, Any]:
    """Look."""
    return {"asked": await desk.ask(), "number": number}


@tradestream.tool(errors=(MISSING,), cache_s=30)
async def rank(desk: Desk) -> dict[str, Any]:
    """Rank."""
    return {"asked": await desk.ask()}


@catalog.tool("slow", deadline_ms=20, p95_ms=7, per_minute=1000)
async def slow(desk: Desk) -> dict[str, Any]:
    """Look slowly."""
    return {"asked": await desk.ask()}


@pytest.fixture
def program() -> Program:
    return Program()


async def test_a_success_is_one_event(program):
    answer = await program.call(
        look, {"number": 1}, request_id="r", session_id="s", transport="http", request_bytes=12, user_agent="tester",
        peer="10.1.2.3", correlation_id="c", upstream_token="t0ken", caller=BOB,
    )  # fmt: skip
    (event,) = program.events
    latency_ms = event.pop("latency_ms")
    assert latency_ms >= 0
    assert event == {
        "request_id": "r",
        "session_id": "s",
        "transport": "http",
        "tool_name": "look",
        "mcp_method": "tools/call",
        "caller": "bob",
        "request_size_bytes": 12,
        "has_token": True,
        "token_hash": sha256(b"t0ken").hexdigest()[:8],
        "status": "success",
        "response_size_bytes": len(answer.encoded),
        "cached": False,
        "correlation_id": "c",
        "user_agent": "tester",
        "client_ip_hash": sha256(b"10.1.2.3").hexdigest()[:8],
        **log_fields({}),
    }


async def test_the_fields_of_every_call_are_the_specs(program):
    await program.call(look)
    every_call = {
        "request_id", "session_id", "transport", "tool_name", "mcp_method", "request_size_bytes", "has_token",
        "token_hash", "status", "response_size_bytes", "latency_ms",
    }  # fmt: skip
    assert every_call <= set(PYTH["log_fields"])
    assert every_call <= set(program.events[0])
    assert set(PYTH["log_optional"]).isdisjoint(program.events[0]), "optional ones only where there is something"


async def test_neither_a_token_nor_an_address_is_in_an_event(program):
    await program.call(look, {"number": "wrong"}, upstream_token="t0ken", peer="10.1.2.3")
    assert not {"t0ken", "10.1.2.3"} & set(map(str, program.events[0].values()))
    assert "t0ken" not in str(program.events)


@pytest.mark.parametrize(
    "tool, arguments, failure, kind, code",
    [
        (look, {"number": "x"}, None, "invalid_input", "-32602"),
        (look, {}, NOT_FOUND("nothing"), "not_found", "not_found"),
        (look, {}, Denied("no", source="pyth"), "auth", "auth"),
        (look, {}, Unreachable("gone", source="pyth"), "upstream", "upstream"),
        (look, {}, ValueError("bug"), "upstream", "internal"),
        (rank, {}, MISSING("nothing"), "not_found", "MISSING"),
        (rank, {}, Unreachable("gone", source="x"), "upstream", "DATABASE_ERROR"),
        (rank, {"x": 1}, None, "invalid_input", "INVALID_PARAMETER"),
    ],
)
async def test_a_failure_is_one_event_with_its_kind_and_code(program, tool, arguments, failure, kind, code):
    program.desk.failure = failure
    await program.call(tool, arguments)
    (event,) = program.events
    assert (event["status"], event["error_type"], event["error_code"]) == ("error", kind, code)
    assert event["error_message"]
    assert kind in PYTH["log_enums"]["error_type"]


async def test_a_timeout_is_one_event(program):
    program.desk.gate.shut()
    await program.call(slow)
    (event,) = program.events
    assert (event["error_type"], event["error_code"]) == ("timeout", "MCP-004")


async def test_a_failure_that_is_a_json_rpc_error_is_told_as_well(program):
    @chart.tool()
    async def bars(desk: Desk) -> dict[str, Any]:
        """Bars."""
        return {"asked": await desk.ask()}

    program.desk.failure = Unreachable("The feed does not answer.", source="x")
    await program.call(bars)
    assert program.events[0]["error_message"] == "Market data unavailable: The feed does not answer."
    assert program.events[0]["error_code"] == "-32004"


async def test_a_cancelled_call_is_one_event(program):
    program.desk.gate.shut()
    call = program.begin(rank)
    await program.desk.gate.arrived.wait()
    call.cancel()
    await asyncio.wait({call})
    (event,) = program.events
    assert (event["status"], event["error_code"], event["error_message"]) == (
        "error", "cancelled", "cancelled by the caller",
    )  # fmt: skip
    assert event["error_type"] in PYTH["log_enums"]["error_type"]


class Counted:
    """Something injected that counts, as an adapter does."""

    @classmethod
    def from_call(cls, call: Call) -> Counted:
        call.notes["num_feeds"] = 3
        return cls()


async def test_what_is_noted_on_the_way_is_in_the_event(program):
    @pyth.tool()
    async def count(counted: Counted) -> dict[str, Any]:
        """Count."""
        del counted
        return {}

    await program.call(count)
    assert program.events[0]["num_feeds"] == 3
    assert "num_feeds" in PYTH["log_fields"]


@pytest.mark.parametrize("failing", [True, False])
async def test_a_log_that_fails_costs_nobody_an_answer(program, failing):
    def broken(event: dict[str, Any]) -> None:
        raise OSError("no space left on device")

    program.runtime.observer.tell = calls.to(broken)
    program.desk.failure = ValueError("bug") if failing else None
    answer = await program.call(look)
    assert answer.is_error is failing
    assert program.runtime.observer.in_flight == 0


async def test_calls_in_flight_are_counted(program):
    observer = program.runtime.observer
    program.desk.gate.shut()
    calls = [program.begin(look) for _ in range(3)]
    await program.desk.gate.arrived.wait()
    await turns()
    assert observer.in_flight == 3
    calls[0].cancel()
    await asyncio.wait({calls[0]})
    assert observer.in_flight == 2
    program.desk.gate.open()
    await asyncio.gather(*calls[1:])
    assert observer.in_flight == 0


class Tracer:
    """A tracer that somebody has installed."""

    def __init__(self) -> None:
        self.spans: list[tuple[str, dict[str, Any]]] = []

    def start_as_current_span(self, name: str, attributes: dict[str, Any]) -> Any:
        self.spans.append((name, attributes))
        return contextlib.nullcontext()


async def test_a_call_is_a_span_where_a_tracer_is_installed(program, monkeypatch):
    tracer = Tracer()
    monkeypatch.setattr(trace, "get_tracer", lambda _: tracer)
    monkeypatch.delitem(sys.modules, "opentelemetry.sdk.trace", raising=False)
    await program.call(look)
    assert tracer.spans == []
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", ModuleType("opentelemetry.sdk.trace"))
    await program.call(look, transport="http")
    assert tracer.spans == [("tools/call look", {"mcp.tool.name": "look", "mcp.transport": "http"})]
