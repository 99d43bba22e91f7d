"""strategy-mcp over a real PostgreSQL that goes away and comes back."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest

from quantdeck.servers import load
from quantdeck.settings import PostgreSQL
from tests.servers.conftest import Served
from tests.support import postgresql
from tests.support.desk import add_implementation, add_spec

pytestmark = pytest.mark.services

ASK = ("get_top_strategies", {"symbol": "BTC/USD", "force_refresh": True})


@pytest.fixture
async def strategy(serve: Callable[..., Any]) -> Served:
    dsn = await postgresql.available().new_database()
    served: Served = await serve("strategy-mcp", database=dsn, postgresql=PostgreSQL(max_connections=3, connect_s=1))
    await add_implementation(served.desk, "one", await add_spec(served.desk), forward_sharpe=0.5)
    return served


async def test_the_answer_is_that_of_sqlite_but_for_its_source(strategy):
    body = await strategy(ASK[0], **ASK[1])
    assert (body["_metadata"]["source"], body["data"]["items"][0]["score"]) == ("postgresql", 0.5)


async def test_while_it_is_down_the_answer_is_coded_and_afterwards_the_next_call_works(strategy):
    assert "data" in await strategy(ASK[0], **ASK[1])
    server = postgresql.available()
    with server.stopped():
        code, message = await strategy.refused(ASK[0], **ASK[1])
        assert (code, "onnection" in message) == ("DATABASE_ERROR", True)
        assert server.dsn() not in message
        listed = await strategy.client.list_tools()
        assert [tool.name for tool in listed.tools] == [tool.listed for tool in load("strategy-mcp").tools]
    assert "data" in await strategy(ASK[0], **ASK[1])


async def test_down_at_the_start_is_no_different(serve):
    server = postgresql.available()
    dsn = await server.new_database()
    with ExitStack() as down:
        served: Served = await serve("strategy-mcp", database=dsn, postgresql=PostgreSQL(connect_s=1))
        down.enter_context(server.stopped())
        assert (await served.refused(ASK[0], **ASK[1]))[0] == "DATABASE_ERROR"
    await served.app.databases.migrate()
    assert (await served.refused(ASK[0], **ASK[1]))[0] == "SYMBOL_NOT_FOUND"


async def test_a_call_that_finds_every_connection_taken_waits_and_then_says_so(strategy):
    holding, release = [asyncio.Event() for _ in range(3)], asyncio.Event()

    async def hold(held: asyncio.Event) -> None:
        async with strategy.desk.transaction():
            held.set()
            await release.wait()

    async with asyncio.TaskGroup() as holders:
        for held in holding:
            holders.create_task(hold(held))
        for held in holding:
            await held.wait()
        code, message = await strategy.refused(ASK[0], **ASK[1])
        release.set()
    assert (code, "No free connection" in message) == ("DATABASE_ERROR", True)
    assert "data" in await strategy(ASK[0], **ASK[1])


async def test_a_database_without_our_tables_says_how_to_make_them(serve):
    dsn = await postgresql.available().new_database()
    served: Served = await serve("strategy-mcp", database=dsn)
    await served.desk.execute("DROP TABLE implementation_signals")
    code, message = await served.refused("get_strategy_consensus", symbol="BTC/USD")
    assert (code, "quantdeck migrate" in message) == ("DATABASE_ERROR", True)


async def test_no_message_carries_what_the_driver_said(strategy):
    await strategy.desk.execute("ALTER TABLE strategy_specs RENAME COLUMN name TO label")
    body = await strategy(ASK[0], **ASK[1])
    assert "strategy_specs" not in json.dumps(body)
    assert "label" not in json.dumps(body)
