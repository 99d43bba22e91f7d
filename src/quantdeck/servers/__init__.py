"""The ten servers. A folder is a server and lists its tools; a file in it is a tool.

By name and place, so that starting one imports one.
"""

from __future__ import annotations

from importlib import import_module

from quantdeck.core.contract import Contract
from quantdeck.core.server import Server

__all__ = ["NAMES", "ON_REQUEST", "load", "tools"]

_PLACES = {
    "strategy-mcp": "strategy_mcp",
}

NAMES = tuple(_PLACES)

ON_REQUEST = frozenset({"chart-signals"})
"""Servers that `all` leaves out over HTTP: their spec forbids exposure that nobody asked for."""


def tools(package: str, *names: str) -> tuple[Contract, ...]:
    """The tools of a server's folder: a file each, which holds a tool of the same name."""
    return tuple(getattr(import_module(f"{package}.{name}"), name) for name in names)


def load(name: str) -> Server:
    """The server of this name."""
    server: Server = import_module(f"quantdeck.servers.{_PLACES[name]}").SERVER
    return server
