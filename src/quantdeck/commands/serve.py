"""`quantdeck serve`: MCP servers over stdio or HTTP."""

from __future__ import annotations

import argparse

from quantdeck.commands import UsageError, chosen_servers, logged
from quantdeck.settings import Settings

__all__ = ["add", "run"]


def add(command: argparse.ArgumentParser) -> None:
    command.add_argument("names", nargs="+", metavar="NAME", help="a server, several, or `all`")
    command.add_argument("--http", action="store_true", help="serve over HTTP instead of stdio")
    command.add_argument("--host", help="address to bind (default 127.0.0.1; any other needs a token)")
    command.add_argument("--port", type=int, help="port to bind (default 8003; 0 takes a free one)")
    command.add_argument("--stateless", action="store_true", help="no sessions: replicas need no stickiness")
    command.add_argument("--trusted-proxies", help="addresses whose forwarded headers are believed")


def run(arguments: argparse.Namespace) -> int:
    if not arguments.http and (only := [option for option, given in _of_http(arguments) if given]):
        raise UsageError(f"{', '.join(only)} means something over HTTP only; add --http")
    from quantdeck.transports.sdk_import import lean

    lean(http=arguments.http)
    servers, settings = chosen_servers(arguments.names, over_http=arguments.http), Settings.read()
    if not arguments.http:
        from quantdeck.transports.process import serve_app

        return logged(settings, serve_app(settings, servers))
    from quantdeck.transports.http import serve_http

    chosen = {
        "host": arguments.host,
        "port": arguments.port if arguments.port is not None else settings.port,
        "trusted_proxies": arguments.trusted_proxies.split(",") if arguments.trusted_proxies else None,
    }
    http = settings.http.model_copy(update={k: v for k, v in chosen.items() if v is not None})
    settings = settings.model_copy(update={"http": http})
    return logged(settings, serve_http(settings, servers, stateless=arguments.stateless))


def _of_http(arguments: argparse.Namespace) -> list[tuple[str, bool]]:
    return [
        ("--host", arguments.host is not None),
        ("--port", arguments.port is not None),
        ("--stateless", arguments.stateless),
        ("--trusted-proxies", arguments.trusted_proxies is not None),
    ]
