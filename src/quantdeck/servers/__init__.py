"""The ten servers. A folder is a server and lists its tools; a file in it is a tool.

Known by name, so that starting one imports one.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from quantdeck.core.contract import Contract
from quantdeck.core.errors import DeclarationError
from quantdeck.core.server import Server

__all__ = ["NAMES", "ON_REQUEST", "load", "tools"]

NAMES = (
    "strategy-mcp",
    "market-data-mcp",
    "decisions-mcp",
    "strategy-db-mcp",
    "portfolio-mcp",
    "backtest-mcp",
    "backtest-events",
    "pyth-pro",
    "chart-signals",
    "tools-catalog",
)  # fmt: skip
"""Each has its folder here, called as it is but for the hyphens."""

ON_REQUEST = frozenset({"chart-signals"})
"""Servers that `all` leaves out over HTTP: their spec forbids exposure that nobody asked for."""


def tools(package: str, *names: str) -> tuple[Contract, ...]:
    """The tools of a server's folder: a file each, which holds a tool of the same name."""
    return tuple(_tool(package, name) for name in names)


def load(name: str) -> Server:
    """The server of this name."""
    place = f"{__name__}.{name.replace('-', '_')}"
    server = _held(place, "SERVER", f"{__name__} names {name!r}, so there must be a folder {_path(place)}")
    if not isinstance(server, Server) or server.name != name:
        raise DeclarationError(f"{_path(place)}/__init__.py must hold SERVER, a Server whose name is {name!r}")
    return server


def _tool(package: str, name: str) -> Contract:
    place = f"{package}.{name}"
    tool = _held(place, name, f"{package} lists {name!r}; add the file {_path(place)}.py, or mend the name in the list")
    if not isinstance(tool, Contract):
        raise DeclarationError(
            f"{_path(place)}.py must hold the tool {name}: a function named as its file, under its spec's decorator"
        )
    return tool


def _held(place: str, name: str, missing: str) -> Any:
    """What a module holds under a name, or None."""
    try:
        return getattr(import_module(place), name, None)
    except ModuleNotFoundError as error:
        if error.name != place:  # something that it imports
            raise
        raise DeclarationError(missing) from None


def _path(place: str) -> str:
    return place.replace(".", "/")
