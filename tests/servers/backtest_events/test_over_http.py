"""backtest-events over HTTP: what a token's scopes let its bearer see, and the statuses of the spec's table."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

import pytest

from quantdeck.servers import load
from tests.servers.backtest_events.test_get_events_by_type import EVERY_TOOL, every_tool
from tests.support.desk import NOON
from tests.support.events import at, guid
from tests.support.over_http import served


@pytest.fixture
async def server(tmp_path, run):
    """Two runs, and a bearer for one of them, one for all and one for none."""
    for name in ("run", "other"):
        with run(name) as one:
            one.trade(at(1), "AAPL", "Buy", 1, 10)
    scopes = {"one": ["read", f"run:{guid('run')}"], "all": ["read"], "none": ["read", f"run:{guid('gone')}"]}
    tokens = tmp_path / "tokens.json"
    tokens.write_text(
        json.dumps(
            [{"id": name, "sha256": sha256(name.encode()).hexdigest(), "scopes": of} for name, of in scopes.items()]
        )
    )
    tokens.chmod(0o600)
    async with served(
        tmp_path / "home", make=lambda _: (load("backtest-events"),), tokens=tokens, clock=NOON.isoformat()
    ) as opened:
        yield opened


async def call(server: Any, token: str, tool: str, **arguments: Any) -> tuple[int, Any]:
    told = await server.rest(tool, {"authorization": f"Bearer {token}"}, arguments=arguments)
    return told.status_code, told.json()


@every_tool
async def test_a_bearer_sees_the_runs_that_its_scopes_name(server, tool):
    for name, statuses in {"one": (200, 404), "all": (200, 200), "none": (404, 404)}.items():
        told = [await call(server, name, tool, **{**EVERY_TOOL[tool], "runId": guid(run)}) for run in ("run", "other")]
        assert tuple(status for status, _ in told) == statuses
        assert [body["error"]["code"] for status, body in told if status != 200] == ["RUN_NOT_FOUND"] * statuses.count(
            404
        )


async def test_a_bearer_is_told_of_those_runs_only(server):
    listed = {name: (await call(server, name, "list_backtest_runs"))[1] for name in ("one", "all", "none")}
    assert {name: body["totalCount"] for name, body in listed.items()} == {"one": 1, "all": 2, "none": 0}
    assert [run["id"] for run in listed["one"]["runs"]] == [guid("run")]


async def test_nobody_without_a_token_is_told_anything(server):
    assert (await call(server, "wrong", "list_backtest_runs"))[0] == 401


@pytest.mark.parametrize(
    "tool, arguments, status, code",
    [
        ("get_events_by_type", {"pageSize": 0}, 400, "INVALID_PARAMETER"),
        ("get_events_by_type", {"runId": guid("nobody")}, 404, "RUN_NOT_FOUND"),
        ("query_event_sequence", {"rootEventId": guid("nobody")}, 404, "EVENT_NOT_FOUND"),
        ("get_events_by_type", {"startTime": "2025-01-02T00:00:00Z", "endTime": "2025-01-01T00:00:00Z"}, 400,
         "INVALID_TIME_RANGE"),
        ("aggregate_metrics", {"propertyPath": "$..a"}, 400, "INVALID_JSON_PATH"),
    ],
)  # fmt: skip
async def test_a_failure_has_the_status_of_the_table(server, tool, arguments, status, code):
    told, body = await call(server, "all", tool, **{**EVERY_TOOL[tool], **arguments})
    assert (told, body["error"]["code"], set(body["error"])) == (status, code, {"code", "message", "details"})
