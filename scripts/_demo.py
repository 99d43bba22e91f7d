"""The body of scripts/demo: a demo world, its servers over HTTP, one answer, and how to connect a client.

On a terminal it goes on serving until Ctrl-C; elsewhere, or with --once, it stops after the answer.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = Path(sys.executable).with_name("quantdeck")
QUESTION = {"name": "get_top_strategies", "arguments": {"symbol": "BTC/USD", "limit": 3}}


def main() -> int:
    home = Path(os.environ.get("QUANTDECK_HOME") or ROOT / ".demo")
    environment = _only_ours() | {"QUANTDECK_HOME": str(home), "QUANTDECK_LOG_FILE": str(home / "server.log")}
    _run(environment, "demo")
    with _served(environment) as place:
        _show_answer(place)
        _show_clients(environment, place)
        if sys.stdout.isatty() and "--once" not in sys.argv:
            _say(f"\nServing on {place}. The log is {home / 'server.log'}. Ctrl-C ends it.")
            with contextlib.suppress(KeyboardInterrupt):
                while True:
                    input()
    return 0


def _only_ours() -> dict[str, str]:
    """The environment without anybody's real database or keys: this is the demo."""
    other = ("QUANTDECK_", "DATABASE_URL", "AUTH_TOKEN", "MCP_SERVER_PORT", "INFLUXDB_", "REDIS_URL", "NATS_URL")
    return {name: value for name, value in os.environ.items() if not name.startswith(other)}


def _run(environment: dict[str, str], *arguments: str) -> None:
    subprocess.run([PROGRAM, *arguments], env=environment, check=True)


@contextlib.contextmanager
def _served(environment: dict[str, str]) -> Iterator[str]:
    """All servers in one process, on a free port; its address."""
    command = [PROGRAM, "serve", "--http", "--port", "0", "all"]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        said = next((line for line in server.stderr if "http://" in line or _say(line)), None)
        if said is None:
            raise SystemExit("the server did not start; what it said stands above")
        try:
            yield "http://" + said.strip().split("http://")[1]
        finally:
            server.terminate()


def _show_answer(place: str) -> None:
    address, body = f"{place}/tools/call", json.dumps(QUESTION)
    _say(f"\nA question:\n  curl -s {address} -H 'Content-Type: application/json' -d '{body}'\n\nIts answer:")
    request = urllib.request.Request(address, body.encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        _say(json.dumps(json.load(answer), indent=2))


def _show_clients(environment: dict[str, str], place: str) -> None:
    _say("\nConnect a client (one process per server, started by the client):")
    for client in ("opencode", "claude", "cursor"):
        _say(f"\n== {client}")
        _run(environment, "client-config", client)
    _say(f"\nOr, while this runs, by its address: {place}")


def _say(line: Any) -> bool:
    print(line, flush=True)
    return False


if __name__ == "__main__":
    raise SystemExit(main())
