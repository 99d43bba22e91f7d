"""`quantdeck client-config`: what to paste into a client so that it starts, or finds, our servers."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson
from pydantic import BaseModel

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


_ITS_OWN = {"home", "tokens", "auth_token", "hmac_secret", "http", "port", "log_file"}
"""What is said in full, is HTTP's alone, or belongs to one process."""


def _environment(settings: Settings) -> tuple[Json, list[str]]:
    """What is set here and a process that a client starts must hear of; and the names of what may be a secret."""
    told, withheld = {"QUANTDECK_HOME": str(settings.home_path)}, []
    for name, secret in _names(Settings, PREFIX):
        if not (said := os.environ.get(name)):
            continue
        if secret or "://" in said:  # there may be a password in an address
            withheld.append(name)
        else:
            told[name] = said
    return told, withheld


def _names(model: type[BaseModel], prefix: str) -> Iterator[tuple[str, bool]]:
    """Every name in the environment, and whether a secret may stand there."""
    for field_name, field in model.model_fields.items():
        if model is Settings and field_name in _ITS_OWN:
            continue
        called, kind = names_of(prefix, field_name, field), field.annotation
        within = isinstance(kind, type) and issubclass(kind, BaseModel)
        inside = list(_names(kind, f"{called[0]}__")) if within else []  # type: ignore[arg-type]
        secret = "SecretStr" in repr(kind) or any(holds for _, holds in inside)
        yield from ((name, secret) for name in called)
        yield from inside


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
