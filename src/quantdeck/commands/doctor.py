"""`quantdeck doctor`: what each source is, whether it answers, and what to set."""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
from collections.abc import Mapping
from dataclasses import asdict, replace
from difflib import get_close_matches
from typing import Any

from quantdeck import __version__
from quantdeck.app import App, Health, open_app
from quantdeck.commands import chosen_servers, logged
from quantdeck.core.server import Server
from quantdeck.core.wire import encode
from quantdeck.settings import Http, MisconfiguredError, Settings

__all__ = ["add", "run"]

PATIENCE_S = 10.0

_EXTRAS = {
    "alpaca": "alpaca",
    "grpc": "grpc",
    "parquet": "duckdb",
    "postgresql": "asyncpg",
    "redis": "redis",
    "sandbox": "pydantic_monty",
}
"""Extras, and a module by which to see that one is installed."""


def add(command: argparse.ArgumentParser) -> None:
    command.add_argument("--json", action="store_true", help="as JSON")


def run(arguments: argparse.Namespace) -> int:
    settings = Settings.read()
    return logged(settings, _examine(settings, chosen_servers(["all"]), as_json=arguments.json), level="error")


async def _examine(settings: Settings, servers: tuple[Server, ...], *, as_json: bool) -> int:
    """Print the findings; 1 if a source that should answer does not, or a server would refuse to start."""
    async with open_app(settings, servers) as app:
        found = [_advised(health) for health in await _sources(app)]
    refused = [*_unusable_home(settings), *_unservable(settings)]
    report = {
        "version": __version__,
        "home": str(settings.home_path),
        "world": "demo" if settings.is_demo else "real",
        "clock": settings.clock,
        "sources": [{key: said for key, said in asdict(health).items() if key != "setting"} for health in found],
        "warnings": [*refused, *_vain(settings, servers)],
        "extras": {name: importlib.util.find_spec(module) is not None for name, module in _EXTRAS.items()},
    }
    print(encode(report).decode() if as_json else _told(report, found))
    return int(bool(refused) or any(health.status == "unhealthy" for health in found))


async def _sources(app: App) -> list[Health]:
    try:
        async with asyncio.timeout(PATIENCE_S):
            return await app.health()
    except TimeoutError:
        advice = f"connection timeout: no answer within {PATIENCE_S:.0f} s"
        return [Health("database", app.databases.kind, "unhealthy", advice)]


def _advised(health: Health) -> Health:
    """With the setting to look at, where the source's own sentence names none."""
    if not health.setting or "QUANTDECK_" in health.advice:
        return health
    return replace(health, advice=f"{health.advice.rstrip('.')}. {health.setting} says where it is")


def _unusable_home(settings: Settings) -> list[str]:
    home = settings.home_path
    return [f"QUANTDECK_HOME names {home}, which is no folder"] if home.exists() and not home.is_dir() else []


def _unservable(settings: Settings) -> list[str]:
    """Why `serve --http` would refuse to start; a stdio server would not mind."""
    if settings.tokens is None and settings.http.host == Http().host:
        return []  # nothing to refuse, and nothing to import
    from quantdeck.transports.auth import Tokens
    from quantdeck.transports.http import checked_place

    try:
        checked_place(settings.http, guarded=Tokens(settings).required)
    except MisconfiguredError as error:
        return [f"serve --http would refuse to start: {error}"]
    return []


def _vain(settings: Settings, servers: tuple[Server, ...]) -> list[str]:
    """What is said of tools that there are none of, or on which it has no effect."""
    tools = {name: tool for server in servers for tool in server.tools for name in (tool.name, tool.listed)}
    unkept = {name for name, tool in tools.items() if tool.policy.cache_s is None or tool.policy.effect}
    unlimited = {name for name, tool in tools.items() if tool.dialect.limited is None}
    by_tool: list[tuple[str, Mapping[str, float], set[str], str]] = [
        ("QUANTDECK_CACHE__TTL_S", settings.cache.ttl_s, unkept, "whose answers are never kept"),
        ("QUANTDECK_DEADLINE_S", settings.deadline_s, set(), ""),
        ("QUANTDECK_PER_MINUTE", settings.per_minute, unlimited, "whose spec has no code to refuse a call with"),
    ]
    return [
        _unknown(name, setting, sorted(tools)) if name not in tools else f"{setting} names {name!r}, {why}: no effect"
        for setting, said, vain, why in by_tool
        for name in said
        if name not in tools or name in vain
    ]


def _unknown(name: str, setting: str, known: list[str]) -> str:
    near = get_close_matches(name, known, n=1)
    return f"{setting} names {name!r}, which is no tool" + (f"; did you mean {near[0]!r}?" if near else "")


def _told(report: dict[str, Any], found: list[Health]) -> str:
    lines = [
        f"quantdeck {report['version']}",
        f"home      {report['home']} ({report['world']} world)",
        f"clock     {report['clock']}",
        "",
        *(f"{_SIGNS[health.status]} {health.source:12} {health.kind:12} {_state(health)}" for health in found),
    ]
    wanting = [health.advice for health in found if health.status != "healthy"]
    advice = dict.fromkeys(f"  {said}" for said in [*wanting, *report["warnings"]] if said)
    missing = [name for name, there in report["extras"].items() if not there]
    if missing:
        advice[f"  not installed: {', '.join(missing)} (pip install 'quantdeck[{','.join(missing)}]')"] = None
        if "sandbox" in missing:
            advice["  execute_analysis of pyth-pro is listed where quantdeck[sandbox] is installed"] = None
    return "\n".join([*lines, *(["", *advice] if advice else [])])


def _state(health: Health) -> str:
    """What is said of one that is well is no advice."""
    return f"healthy: {health.advice}" if health.status == "healthy" and health.advice else health.status


_SIGNS = {"healthy": "+", "unhealthy": "!", "disabled": "-"}
