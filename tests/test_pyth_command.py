"""`quantdeck pyth`: the command line of the Pyth Pro spec."""

from __future__ import annotations

import json
import os

import pytest

from quantdeck.cli import main
from quantdeck.commands import pyth
from quantdeck.settings import Settings
from tests.support.ports import free_port
from tests.support.program import quantdeck
from tests.support.pyth_stub import KEY
from tests.support.serving import QUANTDECK, serving

CALL = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {"name": "get_latest_price", "arguments": {"ids": [1]}},
}


def read(*flags, **environ):
    """The settings that these flags and this environment come to."""
    import argparse

    parser = argparse.ArgumentParser()
    pyth.add(parser)
    return Settings.read(pyth._environment(parser.parse_args(flags), environ))


def test_a_flag_counts_before_the_environment_and_that_before_the_default():
    assert read("stdio").pyth.channel == "fixed_rate@200ms"
    assert read("stdio", PYTH_CHANNEL="real_time").pyth.channel == "real_time"
    said = read(
        "stdio", "--channel", "fixed_rate@50ms", "--token", KEY, "--timeout", "77", "--router-url", "https://r.example",
        "--history-url", "https://h.example/v1", "--log-file", "logs/x.log", PYTH_CHANNEL="real_time",
        PYTH_PRO_ACCESS_TOKEN="another", PYTH_LOG_FILE="logs/y.log",
    )  # fmt: skip
    assert (said.pyth.channel, said.pyth.request_timeout_ms) == ("fixed_rate@50ms", 77)
    assert (said.pyth.router_url, said.pyth.history_url) == ("https://r.example", "https://h.example/v1")
    assert (said.pyth.access_token.get_secret_value(), str(said.log_file)) == (KEY, "logs/x.log")
    assert KEY not in repr(said)


@pytest.mark.parametrize("level", ["debug", "info", "warn", "error"])
def test_every_log_level_of_the_spec_is_understood(level):
    expected = {"warn": "warning"}.get(level, level)
    assert read("stdio", "--log-level", level).log_level == read("stdio", PYTH_LOG_LEVEL=level).log_level == expected


@pytest.mark.parametrize(
    "flags, environ, port",
    [((), {}, 8080), ((), {"PORT": "81"}, 81), (("--port", "82"), {"PORT": "81"}, 82), ((), {"PORT": ""}, 8080)],
)
def test_over_http_the_port_is_the_flags_else_ports_else_8080(flags, environ, port):
    assert read("http", *flags, **environ).port == port


def test_port_counts_in_this_command_only():
    assert Settings.read({"PORT": "81"}).port is None


def test_stdio_serves_the_one_server_and_says_what_is_missing(tmp_path):
    done = quantdeck("pyth", "stdio", home=tmp_path, stdin=json.dumps(CALL) + "\n")
    (answer,) = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0
    assert answer["result"]["content"][0]["text"].startswith("This tool requires a Pyth Pro access token.")
    events = [json.loads(line) for line in done.stderr.splitlines()]
    (event,) = [event for event in events if event["event"] == "call"]
    assert (event["transport"], event["error_type"], event["has_token"]) == ("stdio", "auth", False)


def test_the_token_of_the_flag_is_in_no_output(tmp_path):
    log = tmp_path / "log"
    flags = ("--token", KEY, "--router-url", "http://127.0.0.1:1", "--history-url", "http://127.0.0.1:1")
    done = quantdeck("pyth", "stdio", *flags, "--log-file", str(log), "--log-level", "debug", home=tmp_path,
                     stdin=json.dumps(CALL) + "\n")  # fmt: skip
    assert '"type":"upstream"' in done.stdout
    assert KEY not in done.stdout + done.stderr + log.read_text()


def test_http_serves_where_it_was_told_to_and_ends_well(tmp_path):
    port = free_port()
    environment = {**os.environ, "QUANTDECK_HOME": str(tmp_path), "PORT": str(port)}
    with serving([QUANTDECK, "pyth", "http"], environment) as url:
        assert f":{port}/mcp" in url


def test_a_port_means_nothing_over_stdio(capsys):
    assert main(["pyth", "stdio", "--port", "1"]) == 2
    assert "--port means something over http only" in capsys.readouterr().err
