"""`quantdeck client-config`: what to paste into a client so that it starts, or finds, our servers."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import orjson
from pydantic import SecretStr

from quantdeck.commands import UsageError, chosen_servers
from quantdeck.settings import PREFIX, Settings
from quantdeck.settings import names as names_of

__all__ = ["add", "run"]

STARTUP_MS = 30_000
REQUEST_MS = 90_000

Json = dict[str, Any]


def add(command: argparse.ArgumentParser) -> None:
    command.add_argument("client", metavar="CLIENT", choices=tuple(CLIENTS), help=", ".join(CLIENTS))
    command.add_argument("names", nargs="*", metavar="NAME", help="servers (default: all)")
    told = "a running HTTP server's address, instead of local processes; named servers are below it"
    command.add_argument("--url", help=told)


def run(arguments: argparse.Namespace) -> None:
    if arguments.url is not None and not arguments.url.startswith(("http://", "https://")):
        raise UsageError(f"--url takes an address such as http://127.0.0.1:8003/mcp, not {arguments.url!r}")
    wanted = arguments.names or (["all"] if arguments.url is None else [])
    names = tuple(server.name for server in chosen_servers(wanted))
    environment, withheld = _environment(Settings.read())
    place, entry = _render(arguments.client, names, url=arguments.url, environment=environment)
    print(f"# goes into {place}", file=sys.stderr)
    if withheld and arguments.url is None:
        said = ", ".join(withheld)
        print(f"# not in it, since it may be a secret: {said}; the client must pass it to each server", file=sys.stderr)
    print(orjson.dumps(entry, option=orjson.OPT_INDENT_2).decode())


_NOT_FOR_STDIO = {"tokens", "auth_token", "http", "port"}


def _environment(settings: Settings) -> tuple[Json, list[str]]:
    """What is set here and a process that a client starts must hear of; and the names of what may be a secret."""
    told, withheld = {"QUANTDECK_HOME": str(settings.home_path)}, []
    for field_name, field in Settings.model_fields.items():
        if field_name == "home" or field_name in _NOT_FOR_STDIO:
            continue
        called = names_of(PREFIX, field_name, field)
        said = next(((name, os.environ[name]) for name in called if os.environ.get(name)), None)
        nested = {name: value for name, value in os.environ.items() if name.startswith(f"{called[0]}__") and value}
        if said is not None and field.annotation is SecretStr:
            withheld.append(said[0])
        elif said is not None:
            value = getattr(settings, field_name)
            told[said[0]] = str(value.absolute()) if isinstance(value, Path) else said[1]
        told |= nested
    return told, withheld


def _render(
    client: str, names: tuple[str, ...], *, url: str | None, environment: Mapping[str, str]
) -> tuple[str, Json]:
    """Where the entry goes, and the entry: one local process per server; or at one URL all of them, or each by name."""
    place, shape = CLIENTS[client]
    if url is not None:
        at = url.rstrip("/")
        return place, shape({name: {"url": f"{at}/{name}"} for name in names} or {"quantdeck": {"url": url}})
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
