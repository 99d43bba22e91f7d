"""What each dialect answers: small tools of its kind, called through the whole pipeline."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NoReturn

import orjson

from quantdeck.core.call import Call, Caller, Runtime, chain
from quantdeck.core.clock import Clock
from quantdeck.core.contract import Contract, Policy
from quantdeck.core.dialect import Dialect
from quantdeck.core.errors import ErrorCode, ToolError
from quantdeck.core.wire import Answer, RpcFailure
from quantdeck.dialects.declaring import read
from quantdeck.observability.calls import to as told_to
from quantdeck.sources.coordination.embedded import Embedded
from tests.support.over_http import call, served

__all__ = ["Heard", "failure", "logged", "logged_over_http", "second_call_in_a_minute", "success"]


@dataclass(frozen=True, slots=True)
class Heard:
    """One answer as a client hears it, and the event that was logged."""

    body: Any
    text: str
    event: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Nothing:
    done: bool = True


@cache
def success(dialect: Dialect) -> Heard:
    """What a call that goes well is answered."""

    async def tool() -> Nothing:
        """Go well"""
        return Nothing()

    return _heard(_declared(tool, dialect))


@cache
def failure(dialect: Dialect, code: ErrorCode, **details: Any) -> Heard:
    """What a call that ends in this code is answered."""

    async def tool() -> Nothing:
        """Go wrong"""
        _fail(code("a sentence of the tool", **details))

    return _heard(_declared(tool, dialect, errors=(code,)))


@cache
def second_call_in_a_minute(dialect: Dialect) -> Heard:
    """What the second call is answered where one a minute is allowed."""

    async def tool() -> Nothing:
        """Go well, once"""
        return Nothing()

    return _heard(_declared(tool, dialect, per_minute=1), times=2)


@cache
def logged() -> dict[str, Any]:
    """The event of one call as a real process writes it to its log; it gets no further than to want a token."""
    params = {"name": "get_latest_price", "arguments": {"ids": [1]}}
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    with TemporaryDirectory() as home:
        ran = subprocess.run(
            [sys.executable, "-m", "quantdeck", "serve", "pyth-pro"],
            input=orjson.dumps(request) + b"\n",
            env={**os.environ, "QUANTDECK_HOME": home},
            capture_output=True,
            check=True,
            timeout=30,
        )
    lines: list[dict[str, Any]] = [orjson.loads(line) for line in ran.stderr.splitlines()]
    return next(line for line in lines if line["event"] == "call")


@cache
def logged_over_http() -> list[dict[str, Any]]:
    """The events of one call by each way in that HTTP has."""

    async def ask() -> list[dict[str, Any]]:
        with TemporaryDirectory() as home:
            async with served(Path(home)) as server:
                await server.modern("echo", label="a")
                await (await server.session()).post(call("echo", label="a"))
                await server.rest("echo", arguments={"label": "a"})
                return server.events

    return asyncio.run(ask())


def _fail(error: ToolError) -> NoReturn:
    raise error


def _declared(
    tool: Callable[[], Any], dialect: Dialect, *, errors: tuple[ErrorCode, ...] = (), per_minute: int | None = None
) -> Contract:
    return read(tool, dialect=dialect, policy=Policy(per_minute=per_minute), errors=errors)


def _heard(contract: Contract, times: int = 1) -> Heard:
    return asyncio.run(_call(contract, times))


async def _call(contract: Contract, times: int) -> Heard:
    events: list[dict[str, Any]] = []
    runtime = Runtime(clock=Clock.parse("wall"), coordination=Embedded(_no_database), source=_no_source)
    runtime.observer.tell = told_to(events.append)
    run = chain(contract)
    for _ in range(times):
        answer: Answer | RpcFailure = await run(_whole_call(contract, runtime))
    if isinstance(answer, RpcFailure):
        body: Any = {"code": answer.number, "message": answer.message, "data": answer.data}
        return Heard(body, answer.message, events[-1])
    return Heard(orjson.loads(answer.encoded), answer.text or answer.encoded.decode(), events[-1])


def _whole_call(contract: Contract, runtime: Runtime) -> Call:
    """A call of which the transport knows everything that it can know."""
    return Call(
        contract=contract,
        arguments={},
        runtime=runtime,
        caller=Caller("somebody"),
        session_id="session",
        correlation_id="mcp_12345678",
        upstream_token="token",
        user_agent="a program",
        peer="192.0.2.1",
        request_bytes=2,
    )


def _no_database() -> NoReturn:
    raise AssertionError("these tools need no database")


def _no_source(kind: type[Any]) -> NoReturn:
    raise AssertionError(f"these tools need no {kind.__name__}")
