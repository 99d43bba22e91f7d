"""The official Inspector's command line: lists, calls and failures, as people try a server with it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from quantdeck.servers import load
from tests.support.node import environment, package, run_node
from tests.support.serving import QUANTDECK

pytestmark = [pytest.mark.services, pytest.mark.timeout(400)]  # the first run installs the clients

TOOL_FAILED = 5
TOOLS = {tool.listed for tool in load("strategy-mcp").tools}

either_era = pytest.mark.parametrize("era", ["legacy", "modern"])


@pytest.fixture(params=["stdio", "http"])
def target(request: pytest.FixtureRequest, demo: dict[str, str], url: str) -> list[str]:
    """How the Inspector is told where the server is."""
    if request.param == "http":
        return ["--server-url", url, "--transport", "http"]
    settings = [f"{name}={value}" for name, value in demo.items() if name.startswith("QUANTDECK_")]
    return [*(word for pair in settings for word in ("-e", pair)), QUANTDECK, "serve", "strategy-mcp"]


def inspect(place: Path, target: list[str], *arguments: str) -> tuple[int, Any, str]:
    """Exit status, what it printed as JSON, and stderr."""
    launcher = package("@modelcontextprotocol/inspector", "clients", "launcher", "build", "index.js")
    ended = run_node(
        launcher, "--cli", *arguments, "--format", "json", "-q", *target, env=environment(place), cwd=place
    )
    return ended.returncode, json.loads(ended.stdout) if ended.stdout else None, ended.stderr


def call(place: Path, target: list[str], era: str, **arguments: Any) -> tuple[int, Any, str]:
    words = ["--method", "tools/call", "--tool-name", "get_top_strategies", "--protocol-era", era]
    return inspect(place, target, *words, "--tool-args-json", json.dumps(arguments))


@either_era
def test_it_calls_a_tool_and_prints_the_answer(tmp_path: Path, target: list[str], era: str):
    status, printed, said = call(tmp_path, target, era, symbol="BTC/USD", limit=2)
    assert status == 0, said
    result = printed["result"]
    assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
    assert len(result["structuredContent"]["data"]["items"]) == 2
    assert result["_meta"]["quantdeck/source"] == "demo"


@either_era
def test_it_prints_a_failed_call_and_its_exit_status_says_so(tmp_path: Path, target: list[str], era: str):
    status, printed, said = call(tmp_path, target, era, symbol="no such thing")
    assert status == TOOL_FAILED, said
    assert printed["result"]["isError"] is True
    assert json.loads(printed["result"]["content"][0]["text"])["error"]["code"] == "INVALID_SYMBOL"


@either_era
def test_it_lists_the_tools_and_finds_their_schemas_portable(tmp_path: Path, target: list[str], era: str):
    status, printed, said = inspect(tmp_path, target, "--method", "tools/list", "--strict", "--protocol-era", era)
    assert status == 0, said  # 6 if any schema were in error
    assert {tool["name"] for tool in printed["result"]["tools"]} == TOOLS
    # The specs write a number that may be null as one type with two names, which is less portable than two branches.
    reported = re.findall(r"Path: (\w+).*\n\s+Issue: (.*)", said)
    assert len(reported) == said.count("Path: ")
    assert [entry for entry in reported if entry[0] != "outputSchema" or "`type` is an array" not in entry[1]] == []
