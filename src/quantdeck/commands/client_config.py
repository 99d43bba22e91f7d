"""`quantdeck client-config`: what to paste into a client so that it starts, or finds, our servers."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import orjson

from quantdeck.commands import chosen_servers
from quantdeck.settings import Settings

__all__ = ["add", "run"]

STARTUP_MS = 30_000
REQUEST_MS = 90_000

Json = dict[str, Any]


def add(command: argparse.ArgumentParser) -> None:
    command.add_argument("client", metavar="CLIENT", choices=tuple(CLIENTS), help=", ".join(CLIENTS))
    command.add_argument("names", nargs="*", metavar="NAME", help="servers (default: all)")
    command.add_argument("--url", help="a running HTTP server's address, instead of local processes")


def run(arguments: argparse.Namespace) -> None:
    names = tuple(server.name for server in chosen_servers(arguments.names or ["all"]))
    environment = {"QUANTDECK_HOME": str(Settings.read().home_path)}
    place, entry = _render(arguments.client, names, url=arguments.url, environment=environment)
    print(f"# goes into {place}", file=sys.stderr)
    print(orjson.dumps(entry, option=orjson.OPT_INDENT_2).decode())


def _render(
    client: str, names: tuple[str, ...], *, url: str | None, environment: Mapping[str, str]
) -> tuple[str, Json]:
    """Where the entry goes, and the entry: one local process per server, or all of them at one URL."""
    place, shape = CLIENTS[client]
    if url is not None:
        return place, shape({"quantdeck": {"url": url}})
    return place, shape({name: {"command": [*_program(), "serve", name], "env": dict(environment)} for name in names})


def _program() -> list[str]:
    """A path that works whatever folder, shell or environment the client starts it from."""
    beside = Path(sys.executable).with_name("quantdeck")
    found = str(beside) if beside.exists() else shutil.which("quantdeck")
    return [found] if found else [sys.executable, "-m", "quantdeck"]


def _opencode(servers: Json) -> Json:
    def entry(server: Json) -> Json:
        if "url" in server:
            return {"type": "remote", "url": server["url"], "enabled": True, "timeout": STARTUP_MS}
        local = {"type": "local", "command": server["command"], "enabled": True, "timeout": STARTUP_MS}
        return {**local, "environment": server["env"]} if server["env"] else local

    mcp = {name: entry(server) for name, server in servers.items()}
    permission = {f"{name}_*": "allow" for name in servers}
    # without a key that only version 1 knows, version 2 takes the file for its own and loses the servers
    return {"$schema": "https://opencode.ai/config.json", "permission": permission, "mcp": mcp}


def _opencode_v2(servers: Json) -> Json:
    """The current major: servers one level deeper, and time limits once for all."""
    first = {key: value for key, value in _opencode(servers).items() if key != "permission"}
    entries = {
        name: {key: value for key, value in entry.items() if key not in ("enabled", "timeout")}
        for name, entry in first["mcp"].items()
    }
    return {**first, "mcp": {"timeout": {"startup": STARTUP_MS, "request": REQUEST_MS}, "servers": entries}}


def _mcp_servers(servers: Json) -> Json:
    def entry(server: Json) -> Json:
        if "url" in server:
            return {"type": "http", "url": server["url"]}
        program, *arguments = server["command"]
        local = {"command": program, "args": arguments}
        return {**local, "env": server["env"]} if server["env"] else local

    return {"mcpServers": {name: entry(server) for name, server in servers.items()}}


CLIENTS: dict[str, tuple[str, Callable[[Json], Json]]] = {
    "opencode": ("opencode.json", _opencode),
    "opencode-v2": ("opencode.json", _opencode_v2),
    "claude": ("claude_desktop_config.json, or .mcp.json of a project for Claude Code", _mcp_servers),
    "cursor": (".cursor/mcp.json", _mcp_servers),
}
