"""Who may ask portfolio-mcp: those who present its token, where one is set."""

from __future__ import annotations

import json

import pytest

from quantdeck import servers
from tests.support import postgresql
from tests.support.desk import add_account
from tests.support.over_http import served
from tests.support.program import quantdeck

ASKED = {
    "get_positions": {},
    "get_balance": {},
    "validate_trade": {"symbol": "BTC/USD", "side": "BUY", "size": 1.0, "price": 10.0},
}
SECRET = "port-folio"


def made(_):
    return (servers.load("portfolio-mcp"), servers.load("strategy-mcp"))


@pytest.mark.parametrize("tool", ASKED)
@pytest.mark.parametrize("presented", ["", "another"])
async def test_a_client_that_does_not_hold_the_token_is_refused(serve, database, tool, presented):
    portfolio = await serve("portfolio-mcp", portfolio_token=SECRET, token=presented, **database)
    await add_account(portfolio.desk)
    code, message = await portfolio.refused(tool, **ASKED[tool])
    assert (code, SECRET in message) == ("UNAUTHORIZED", False)


@pytest.mark.parametrize("tool", ASKED)
async def test_one_that_holds_it_is_answered(serve, database, tool):
    portfolio = await serve("portfolio-mcp", portfolio_token=SECRET, token=SECRET, **database)
    await add_account(portfolio.desk)
    assert "data" in await portfolio(tool, **ASKED[tool])


@pytest.mark.parametrize("presented", [None, "another", SECRET])
def test_a_stdio_process_must_have_been_started_with_it(tmp_path, presented):
    assert quantdeck("migrate", home=tmp_path).returncode == 0
    asked = [
        {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
        for number, (tool, arguments) in enumerate(ASKED.items())
    ]
    environment = {"QUANTDECK_PORTFOLIO_TOKEN": SECRET} | ({"QUANTDECK_TOKEN": presented} if presented else {})
    stdin = "".join(json.dumps(message) + "\n" for message in asked)
    done = quantdeck("serve", "portfolio-mcp", home=tmp_path, stdin=stdin, environment=environment)
    answers = [json.loads(json.loads(line)["result"]["content"][0]["text"]) for line in done.stdout.splitlines()]
    codes = {body["error"]["code"] if "error" in body else "data" for body in answers}
    expected = {"data", "ACCOUNT_NOT_FOUND", "NOT_FOUND"} if presented == SECRET else {"UNAUTHORIZED"}
    assert (codes, len(answers)) == (expected, len(ASKED))


@pytest.mark.parametrize("tool", ASKED)
async def test_over_http_a_caller_must_present_it_as_bearer(tmp_path, tool):
    async with served(tmp_path, migrated=True, make=made, portfolio_token=SECRET, token=SECRET) as server:
        await add_account(server.app.databases.of("desk"))
        for token, status in ((None, 401), ("another", 401), (SECRET, 200)):
            headers = None if token is None else {"authorization": f"Bearer {token}"}
            answer = await server.rest(tool, headers, arguments=ASKED[tool])
            assert (answer.status_code, SECRET in answer.text) == (status, False)
            if status == 401:
                assert answer.json()["error"]["code"] == "UNAUTHORIZED"
        others = await server.rest("get_top_strategies", arguments={"symbol": "BTC/USD"})
        assert others.status_code == 404  # there are none; it was asked


async def test_a_callers_token_may_say_whose_portfolio_is_meant(tmp_path):
    from tests.transports.test_auth import bearer, entry, write

    file = write(
        tmp_path / "tokens.json",
        [entry("hers", "token-1", ["read"], account="hers"), entry("anyone", "token-2", ["read"])],
    )
    async with served(tmp_path / "home", migrated=True, make=made, tokens=file) as server:
        desk = server.app.databases.of("desk")
        await add_account(desk, total_balance=1.0)
        await add_account(desk, "hers", total_balance=2.0)
        told = [(await server.rest("get_balance", bearer(token))).json() for token in ("token-1", "token-2")]
    assert [body["data"]["total_balance"] for body in told] == [2.0, 1.0]


# PostgreSQL's own word.


@pytest.fixture
async def denied(serve):
    """portfolio-mcp as somebody who may log in and look at nothing."""
    server = postgresql.available()
    dsn = await server.new_database()
    owner = await serve("portfolio-mcp", database=dsn)
    await add_account(owner.desk)
    await server.sql(
        "DO $$ BEGIN CREATE ROLE outsider LOGIN; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$"
    )
    return dsn.replace("quantdeck@", "outsider@", 1)


@pytest.mark.services
@pytest.mark.parametrize("tool", ASKED)
async def test_what_postgresql_does_not_grant_is_unauthorized(serve_as_it_is, denied, tool):
    portfolio = await serve_as_it_is("portfolio-mcp", database=denied)
    code, message = await portfolio.refused(tool, **ASKED[tool])
    assert (code, "does not grant the right" in message) == ("UNAUTHORIZED", True)


@pytest.mark.services
@pytest.mark.parametrize("tool", ASKED)
async def test_a_login_that_postgresql_refuses_is_unauthorized(serve_as_it_is, denied, tool):
    nobody = denied.replace("outsider@", "nobody_at_all@", 1)
    portfolio = await serve_as_it_is("portfolio-mcp", database=nobody)
    code, message = await portfolio.refused(tool, **ASKED[tool])
    assert (code, "refused the login" in message) == ("UNAUTHORIZED", True)


@pytest.mark.services
async def test_a_tool_of_a_server_without_that_code_has_a_database_error(serve_as_it_is, denied):
    strategy = await serve_as_it_is("strategy-mcp", database=denied)
    assert (await strategy.refused("get_top_strategies", symbol="BTC/USD"))[0] == "DATABASE_ERROR"
