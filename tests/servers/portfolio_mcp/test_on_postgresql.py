"""portfolio-mcp over a database that is not there, or not ours."""

from __future__ import annotations

import json

import pytest

from quantdeck.settings import PostgreSQL
from tests.support import postgresql
from tests.support.desk import add_account

ASKED = {
    "get_positions": {},
    "get_balance": {},
    "validate_trade": {"symbol": "BTC/USD", "side": "BUY", "size": 1.0, "price": 10.0},
}
each_tool = pytest.mark.parametrize("tool", ASKED)


@pytest.mark.services
async def test_while_it_is_down_the_answer_is_coded_and_afterwards_the_next_call_works(serve):
    server = postgresql.available()
    dsn = await server.new_database()
    portfolio = await serve("portfolio-mcp", database=dsn, postgresql=PostgreSQL(connect_s=1))
    await add_account(portfolio.desk)
    with server.stopped():
        for tool, arguments in ASKED.items():
            code, message = await portfolio.refused(tool, **arguments)
            assert (code, "onnection" in message, dsn in message) == ("DATABASE_ERROR", True, False)
    for tool, arguments in ASKED.items():
        assert "data" in await portfolio(tool, **arguments)


@each_tool
async def test_a_file_that_is_gone_is_a_database_error_that_says_what_to_do(serve, tool):
    portfolio = await serve("portfolio-mcp")
    portfolio.app.databases.path("desk").unlink()
    code, message = await portfolio.refused(tool, **ASKED[tool])
    assert (code, "QUANTDECK_DATABASE" in message) == ("DATABASE_ERROR", True)
    assert str(portfolio.app.settings.home_path) not in message


@each_tool
async def test_a_database_without_our_columns_says_how_to_make_them_and_nothing_of_the_driver(serve, database, tool):
    portfolio = await serve("portfolio-mcp", **database)
    await portfolio.desk.execute("ALTER TABLE positions RENAME COLUMN entry_price TO cost")
    body = await portfolio(tool, **ASKED[tool])
    assert body["error"]["code"] == "DATABASE_ERROR"
    assert "entry_price" not in json.dumps(body)


@each_tool
async def test_a_call_that_takes_too_long_is_a_timeout(serve, database, tool):
    portfolio = await serve("portfolio-mcp", deadline_s={tool: 1e-9}, **database)
    assert (await portfolio.refused(tool, **ASKED[tool]))[0] == "TIMEOUT"
