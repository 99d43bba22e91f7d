"""The official TypeScript SDK's clients, the one that most agents are built on and the one after it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.node import environment, package, run_node
from tests.support.serving import QUANTDECK

pytestmark = [pytest.mark.services, pytest.mark.timeout(400)]  # the first run installs the clients

PROGRAM = Path(__file__).with_name("typescript_client.cjs")

CLIENTS: dict[str, dict[str, Any]] = {
    "v1": {"sdk": "v1"},
    "v2 legacy": {"sdk": "v2", "mode": "legacy"},
    "v2 modern": {"sdk": "v2", "mode": {"pin": "2026-07-28"}},
}


def run(place: Path, demo: dict[str, str], **told: Any) -> dict[str, Any]:
    """What the client got for a list, a call and a call that fails."""
    modules = package("@modelcontextprotocol/sdk", "package.json")
    ended = run_node(PROGRAM, str(modules), json.dumps(told), env=environment(place) | demo, cwd=place)
    assert ended.returncode == 0, ended.stderr
    found: dict[str, Any] = json.loads(ended.stdout)
    return found


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_it_takes_answers_and_failures(tmp_path: Path, demo: dict[str, str], url: str, client: str, transport: str):
    where = {"url": url} if transport == "http" else {"command": QUANTDECK, "arguments": ["serve", "strategy-mcp"]}
    got = run(tmp_path, demo, **CLIENTS[client], **where)
    assert "get_top_strategies" in got["tools"]
    # It has held the answer against the published schema, or it would have thrown.
    assert len(got["answer"]["structuredContent"]["data"]["items"]) == 2
    assert got["failure"]["isError"] is True
    assert "INVALID_SYMBOL" in got["failure"]["content"][0]["text"]
