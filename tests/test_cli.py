"""The command line, as a process."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from quantdeck import servers
from quantdeck.cli import _COMMANDS as COMMANDS
from tests.support.program import PROGRAM, quantdeck

PROMISED = {
    "serve",
    "tools",
    "resources",
    "prompts",
    "call",
    "demo",
    "migrate",
    "doctor",
    "client-config",
    "import",
    "export",
    "collect",
    "sweep",
}
"""Commands that other programs rely on."""
TOOLS = [tool for name in servers.NAMES for tool in servers.load(name).tools]
ASKED = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_top_strategies","arguments":%s}}\n'


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A demo home."""
    home = tmp_path_factory.mktemp("world")
    assert quantdeck("demo", home=home).returncode == 0
    return home


def test_help_names_every_command(tmp_path):
    said = quantdeck("--help", home=tmp_path)
    assert said.returncode == 0
    assert [command for command in COMMANDS if not re.search(rf"^    {command}\b", said.stdout, re.MULTILINE)] == []
    assert set(COMMANDS) >= PROMISED


KINDS = [(verb, kind) for verb in ("import", "export") for kind in ("candles", "desk", "events")]


ENDLESS = {"backtester"}
"""Ended by a signal only: tests/backtesting/service has it run."""


@pytest.mark.parametrize(
    "command", [*((command,) for command in COMMANDS if command not in ENDLESS), *KINDS], ids=" ".join
)
def test_the_example_that_ends_each_help_works(world, command, tmp_path):
    said = quantdeck(*command, "--help", home=world)
    head, _, example = said.stdout.rpartition("example:\n")
    assert head
    program, *arguments = shlex.split(example)
    assert (program, *arguments[: len(command)]) == ("quantdeck", *command)
    bars = "time,open,high,low,close,volume\n" + "".join(f"{60 * n},1,2,0.5,1.5,10\n" for n in range(1, 9))
    (tmp_path / "SOLUSD-1m.csv").write_text(bars)
    done = quantdeck(*arguments, home=world, folder=tmp_path)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr


def test_a_call_prints_the_answer_alone_on_stdout(world):
    done = quantdeck("call", "get_top_strategies", '{"symbol": "btc-usd", "limit": 2}', home=world)
    answer = json.loads(done.stdout)
    assert (done.returncode, len(answer["data"]["items"]), answer["_metadata"]["source"]) == (0, 2, "demo")
    assert done.stderr == ""


def test_a_failed_call_prints_its_answer_and_exits_1(world):
    done = quantdeck("call", "get_top_strategies", '{"symbol": "nope"}', home=world)
    assert (done.returncode, json.loads(done.stdout)["error"]["code"]) == (1, "INVALID_SYMBOL")


@pytest.mark.parametrize(
    "arguments, said",
    [
        (("call", "get_everything", "{}"), "unknown tool"),
        (("call", "get_top_strategies", "{not json"), "not JSON"),
        (("call", "get_top_strategies", "[1]"), "must be a JSON object"),
        (("call", "get_top_strategies", "{}", "--server", "nothing-mcp"), "unknown server"),
        (("serve", "nothing-mcp"), "unknown server"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_what_cannot_be_understood_is_one_sentence_and_exit_2(world, arguments, said):
    done = quantdeck(*arguments, home=world)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "setting, value, said",
    [
        ("QUANTDECK_CLOCK", "yesterday", "QUANTDECK_CLOCK"),
        ("QUANTDECK_CLOCK", "2026-01-01T00:00:00", "offset"),
        ("DATABASE_URL", "mysql://root@localhost/x", "postgresql://"),
        ("QUANTDECK_STATE", "tea://leaves", "QUANTDECK_STATE"),
        ("QUANTDECK_DEADLINE_S", "{oops", "QUANTDECK_DEADLINE_S"),
        ("QUANTDECK_HTTP__PORT", "many", "QUANTDECK_HTTP__PORT"),
        ("QUANTDECK_POSTGRESQL__MAX_CONNECTIONS", "1", "min_connections"),
        ("QUANTDECK_CLOCK", "0001-01-01T00:00:00+05:00", "between 1970 and 2200"),
        ("QUANTDECK_HOME", "~nosuch/x", "QUANTDECK_HOME"),
        ("QUANTDECK_LOG_FILE", "/nonexistent/x.log", "QUANTDECK_LOG_FILE"),
        ("QUANTDECK_DATABASE", "postgresql://u:p]@h/d", "percent-encoded"),
        ("QUANTDECK_DATABASE", "postgresql://u:x@h:abc/d", "port"),
        ("QUANTDECK_DATABASE", "postgresql://u:x@h/d?sslmode=bogus", "sslmode"),
        ("QUANTDECK_DATABASE", "sqlite:///relative.db", "four slashes"),
        ("QUANTDECK_CANDLES", "influxdb://db:8086", "QUANTDECK_INFLUXDB__BUCKET"),
        ("QUANTDECK_CANDLES", "influxdb://db:x/b", "QUANTDECK_CANDLES"),
        ("INFLUXDB_URL", "db:8086", "QUANTDECK_INFLUXDB__URL"),
        ("QUANTDECK_DATABSE", "postgresql://h/d", "QUANTDECK_DATABASE"),
    ],
)
def test_a_setting_that_cannot_be_is_one_sentence_and_exit_2(tmp_path, setting, value, said):
    done = quantdeck("doctor", home=tmp_path, environment={setting: value})
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_piped_requests_are_all_answered_without_a_handshake(world):
    asked = "".join(ASKED % json.dumps({"symbol": symbol}) for symbol in ("BTC/USD", "nope"))
    done = quantdeck("serve", "strategy-mcp", home=world, stdin=asked.replace('"id":1', '"id":2', 1))
    answers = {answer["id"]: answer["result"] for answer in map(json.loads, done.stdout.splitlines())}
    assert done.returncode == 0
    assert (answers[2].get("isError"), answers[1]["isError"]) == (None, True)
    assert json.loads(answers[2]["content"][0]["text"]) == answers[2]["structuredContent"]


def test_a_stdio_server_opens_nothing_before_it_is_asked(tmp_path):
    home = tmp_path / "never made"
    listed = '{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n'
    done = quantdeck("serve", "strategy-mcp", home=home, stdin=listed)
    told = {tool["name"] for tool in json.loads(done.stdout)["result"]["tools"]}
    assert told == {tool.listed for tool in servers.load("strategy-mcp").tools}
    assert not home.exists()


def test_tools_as_json_hold_everything_that_is_promised(tmp_path):
    done = quantdeck("tools", "--json", home=tmp_path)
    for tool in json.loads(done.stdout):
        assert tool.keys() == {
            "server", "name", "title", "description", "inputSchema", "outputSchema", "annotations", "errors",
            "cache_ttl_s", "timeout_ms", "rate_limit_per_min", "p95_ms",
        }  # fmt: skip


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no such device here")
@pytest.mark.parametrize("command", ["tools", "doctor", "call"])
def test_an_answer_that_cannot_be_written_is_one_sentence_and_no_failed_call(world, command):
    arguments = {"call": ["get_strategy_consensus", '{"symbol": "BTC/USD"}']}.get(command, [])
    line = shlex.join([*PROGRAM, command, *arguments]) + " > /dev/full"
    done = subprocess.run(
        ["/bin/sh", "-c", line],
        env={"QUANTDECK_HOME": str(world)}, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done.stderr
    assert "No space left" in done.stderr


def test_a_home_without_a_world_says_what_to_set_and_how_to_get_a_demo(tmp_path):
    done = quantdeck("call", "get_top_strategies", '{"symbol": "BTC/USD"}', home=tmp_path)
    error = json.loads(done.stdout)["error"]
    assert error["code"] == "DATABASE_ERROR"
    assert "QUANTDECK_DATABASE" in error["message"]
    assert "quantdeck demo" in error["message"]


def test_doctor_says_what_each_source_is_and_what_to_set(tmp_path, world):
    healthy = quantdeck("doctor", "--json", home=world)
    told = {health.pop("source"): health for health in json.loads(healthy.stdout)["sources"]}
    kinds = {kind.__name__.lower() for tool in TOOLS for kind in tool.sources}
    assert told.keys() == kinds - {"alerts", "collected"}  # the process's own, and the bars by another name
    assert told["strategies"] == {"kind": "demo", "status": "healthy", "advice": ""}
    nothing = quantdeck("doctor", home=tmp_path)
    assert (nothing.returncode, "QUANTDECK_DATABASE" in nothing.stdout) == (0, True)
    gone = {"QUANTDECK_DATABASE": "postgresql://joe:hunter2@127.0.0.1:1/db"}
    dead = quantdeck("doctor", home=tmp_path, environment=gone)
    assert (dead.returncode, "hunter2" in dead.stdout + dead.stderr) == (1, False)
    assert "down or out of reach. QUANTDECK_DATABASE says where it is" in dead.stdout


def test_doctor_names_tools_that_settings_speak_of_and_nobody_has(world):
    said = {"QUANTDECK_DEADLINE_S": '{"get_top_strategy": 5}', "QUANTDECK_CACHE__TTL_S": '{"get_top_strategies": 5}'}
    done = quantdeck("doctor", home=world, environment=said)
    assert done.returncode == 0
    assert "QUANTDECK_DEADLINE_S names 'get_top_strategy', which is no tool; did you mean" in done.stdout
    assert "QUANTDECK_CACHE__TTL_S" not in done.stdout


def test_doctor_names_settings_that_have_no_effect_on_a_tool(world):
    said = {"QUANTDECK_PER_MINUTE": '{"get_top_strategies": 5}', "QUANTDECK_DEADLINE_S": '{"get_top_strategies": 5}'}
    done = quantdeck("doctor", home=world, environment=said)
    assert done.returncode == 0
    told = "QUANTDECK_PER_MINUTE names 'get_top_strategies', whose spec has no code to refuse a call with: no effect"
    assert told in done.stdout
    assert "QUANTDECK_DEADLINE_S" not in done.stdout


@pytest.mark.parametrize(
    "said, told",
    [
        ({"QUANTDECK_TOKENS": "/nonexistent/tokens.json"}, "cannot be read"),
        ({"QUANTDECK_TOKENS": "{here}/broken.json"}, "Invalid JSON"),
        ({"QUANTDECK_HTTP__HOST": "0.0.0.0"}, "set QUANTDECK_TOKENS"),  # noqa: S104 - refused
        ({"QUANTDECK_HTTP__HOST": "no such host"}, "is no address to bind"),
        ({"QUANTDECK_HOME": "{here}/broken.json"}, "is no folder"),
    ],
    ids=lambda value: "" if isinstance(value, str) else next(iter(value)),
)
def test_doctor_says_what_would_keep_a_server_from_starting(tmp_path, said, told):
    (tmp_path / "broken.json").write_text('[{"id": ')
    environment = {name: value.format(here=tmp_path) for name, value in said.items()}
    done = quantdeck("doctor", home=tmp_path, environment=environment)
    assert (done.returncode, done.stderr) == (1, "")
    assert told in done.stdout
    assert json.loads(quantdeck("doctor", "--json", home=tmp_path, environment=environment).stdout)["warnings"]


def test_doctor_minds_no_host_that_is_guarded_or_loopbacks(world):
    for said in ({"QUANTDECK_HTTP__HOST": "localhost"}, {"QUANTDECK_HTTP__HOST": "0.0.0.0", "AUTH_TOKEN": "hunter2"}):  # noqa: S104
        done = quantdeck("doctor", home=world, environment=said)
        assert (done.returncode, "refuse" in done.stdout) == (0, False)


def test_doctor_names_the_home_where_its_own_file_is_damaged(tmp_path):
    (tmp_path / "desk.db").write_text("no database " * 500)
    done = quantdeck("doctor", home=tmp_path)
    assert (done.returncode, "QUANTDECK_HOME says where it is" in done.stdout) == (1, True)


@pytest.mark.parametrize("command", ["migrate", "doctor", "demo"])
def test_a_demo_home_and_a_real_database_are_never_used_together(world, command):
    done = quantdeck(command, home=world, environment={"QUANTDECK_DATABASE": "postgresql://joe:hunter2@127.0.0.1:1/d"})
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "demo world" in done.stderr
    assert "hunter2" not in done.stderr


def test_a_configured_file_that_is_missing_is_unhealthy_and_its_path_is_nobodys_business(tmp_path):
    missing = {"QUANTDECK_DATABASE": f"sqlite:///{tmp_path}/secret/deck.db"}
    examined = quantdeck("doctor", home=tmp_path / "home", environment=missing)
    assert (examined.returncode, "quantdeck migrate" in examined.stdout) == (1, True)
    called = quantdeck("call", "get_top_strategies", '{"symbol": "BTC/USD"}', home=tmp_path, environment=missing)
    error = json.loads(called.stdout)["error"]
    assert (error["code"], "quantdeck migrate" in error["message"]) == ("DATABASE_ERROR", True)
    assert "secret" not in examined.stdout + called.stdout
    assert quantdeck("migrate", home=tmp_path / "home", environment=missing).returncode == 0
    assert quantdeck("doctor", home=tmp_path / "home", environment=missing).returncode == 0


def test_migrate_tells_what_it_applied_and_then_that_nothing_is_left(tmp_path):
    home = tmp_path / "home"
    first, second = quantdeck("migrate", home=home), quantdeck("migrate", home=home)
    assert "desk/0001_strategies" in first.stdout.splitlines()
    assert second.stdout == "nothing to do: every migration is applied\n"


@pytest.mark.parametrize("client", ["opencode", "opencode-v2", "claude", "cursor"])
def test_client_config_starts_one_process_per_server(world, client):
    done = quantdeck("client-config", client, home=world)
    config = json.loads(done.stdout)
    entries = config.get("mcpServers") or config["mcp"].get("servers") or config["mcp"]
    assert tuple(entries) == servers.NAMES
    for name, entry in entries.items():
        command = entry["command"] if isinstance(entry["command"], list) else [entry["command"], *entry["args"]]
        assert command[-2:] == ["serve", name]
        assert Path(command[0]).is_absolute()
        assert str(world) in json.dumps(entry)


@pytest.mark.parametrize("client", ["opencode", "claude"])
def test_client_config_passes_on_what_is_set_here_but_no_secret(tmp_path, client):
    said = {
        "DATABASE_URL": "postgresql://joe:hunter2@db/x",
        "QUANTDECK_CLOCK": "2026-01-15T12:00:00Z",
        "QUANTDECK_POSTGRESQL__CONNECT_S": "2",
        "QUANTDECK_LOG_FILE": str(tmp_path / "deck.log"),
        "QUANTDECK_AUTH_TOKEN": "hunter3",
        "QUANTDECK_STATE": "redis://joe:hunter4@h",
        "QUANTDECK_LOG_LEVEL": "",
    }
    done = quantdeck("client-config", client, "strategy-mcp", home=tmp_path, environment=said)
    config = json.loads(done.stdout)
    entry = (config.get("mcpServers") or config["mcp"])["strategy-mcp"]
    assert entry.get("env", entry.get("environment")) == {
        "QUANTDECK_HOME": str(tmp_path),
        "QUANTDECK_CLOCK": "2026-01-15T12:00:00Z",
        "QUANTDECK_POSTGRESQL__CONNECT_S": "2",
    }
    assert "DATABASE_URL" in done.stderr
    assert "hunter" not in done.stdout + done.stderr


def test_client_config_names_servers_below_an_address(world):
    all_of_them = json.loads(quantdeck("client-config", "cursor", "--url", "http://h/mcp", home=world).stdout)
    assert all_of_them["mcpServers"] == {"quantdeck": {"type": "http", "url": "http://h/mcp"}}
    one = quantdeck("client-config", "cursor", "strategy-mcp", "--url", "http://h/mcp/", home=world)
    assert json.loads(one.stdout)["mcpServers"] == {
        "strategy-mcp": {"type": "http", "url": "http://h/mcp/strategy-mcp"}
    }
    wrong = quantdeck("client-config", "cursor", "--url", "h:8003", home=world)
    assert (wrong.returncode, len(wrong.stderr.splitlines())) == (2, 1)
