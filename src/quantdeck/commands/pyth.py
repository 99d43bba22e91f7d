"""`quantdeck pyth`: pyth-pro alone, by the flags and names of the Pyth Pro spec."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping

from quantdeck.commands import UsageError, chosen_servers, logged
from quantdeck.settings import Settings

__all__ = ["add", "run"]

DEFAULT_PORT = 8080

_FLAGS = {
    "token": (
        "QUANTDECK_PYTH__ACCESS_TOKEN",
        "Pyth Pro token; better in PYTH_PRO_ACCESS_TOKEN, where no `ps` shows it",
    ),
    "channel": ("QUANTDECK_PYTH__CHANNEL", "channel of calls that name none (default fixed_rate@200ms)"),
    "router-url": ("QUANTDECK_PYTH__ROUTER_URL", "where the router is"),
    "history-url": ("QUANTDECK_PYTH__HISTORY_URL", "where the history is"),
    "log-level": ("QUANTDECK_LOG_LEVEL", "debug, info (the default), warn, error"),
    "log-file": ("QUANTDECK_LOG_FILE", "where the log goes (default stderr)"),
    "timeout": ("QUANTDECK_PYTH__REQUEST_TIMEOUT_MS", "longest wait for Pyth, in milliseconds (default 10000)"),
}
"""By flag the setting that it is, and what it means."""


def add(command: argparse.ArgumentParser) -> None:
    command.add_argument("mode", choices=("stdio", "http"), help="how clients reach it")
    for flag, (_, words) in _FLAGS.items():
        command.add_argument(f"--{flag}", help=words)
    command.add_argument("--port", type=int, help=f"port of http (default {DEFAULT_PORT}; 0 takes a free one)")


def run(arguments: argparse.Namespace) -> int:
    over_http = arguments.mode == "http"
    if arguments.port is not None and not over_http:
        raise UsageError("--port means something over http only")
    from quantdeck.transports.sdk_import import lean

    lean(http=over_http)
    settings = Settings.read(_environment(arguments, os.environ))
    servers = chosen_servers(["pyth-pro"], over_http=over_http)
    if not over_http:
        from quantdeck.transports.process import serve_app

        return logged(settings, serve_app(settings, servers))
    from quantdeck.transports.http import serve_http

    http = settings.http.model_copy(update={"port": settings.port})
    return logged(settings, serve_http(settings.model_copy(update={"http": http}), servers))


def _environment(arguments: argparse.Namespace, environ: Mapping[str, str]) -> dict[str, str]:
    """The environment with the flags in it, which count first; PORT is a name that only this command knows."""
    given = {setting: getattr(arguments, flag.replace("-", "_")) for flag, (setting, _) in _FLAGS.items()}
    said = {**environ, **{setting: value for setting, value in given.items() if value is not None}}
    port = arguments.port
    if port is None:
        names = ("QUANTDECK_PORT", "MCP_SERVER_PORT", "PORT")
        port = next((said[name] for name in names if said.get(name)), DEFAULT_PORT)
    return {**said, "QUANTDECK_PORT": str(port)}
