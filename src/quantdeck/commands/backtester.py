"""`quantdeck backtester`: run backtests for other programs, over gRPC."""

from __future__ import annotations

import argparse
import ipaddress
import os

from quantdeck.app import open_app
from quantdeck.commands import UsageError, logged
from quantdeck.connections import extras
from quantdeck.core.errors import NotConfigured, SourceError
from quantdeck.domain.strategy_specs import StrategySpec
from quantdeck.settings import Settings
from quantdeck.sources.sql.definitions import Definitions

__all__ = ["add", "run"]


def add(command: argparse.ArgumentParser) -> None:
    command.add_argument("--host", default="127.0.0.1", help="address to bind (default 127.0.0.1)")
    command.add_argument("--port", type=int, default=50051, help="port to bind (default 50051; 0 takes a free one)")
    command.add_argument("--open", action="store_true", help="allow an address that other machines can reach")


def run(arguments: argparse.Namespace) -> int:
    if not 0 <= arguments.port <= 65535:
        raise UsageError(f"{arguments.port} is no port; there are 1 to 65535, and 0 for a free one")
    if not (arguments.open or _is_loopback(arguments.host)):
        raise UsageError(
            f"{arguments.host} can be reached from other machines, and whoever reaches it can have it compute; "
            "say --open if your network sees to who does, or bind 127.0.0.1"
        )
    settings = Settings.read()
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")  # gRPC reads it once; our log says what went wrong
    return logged(settings, _serve(settings, arguments.host, arguments.port))


async def _serve(settings: Settings, host: str, port: int) -> None:
    try:
        serving = extras.load("quantdeck.backtesting.service.serving", extra="grpc")
    except SourceError as error:
        raise UsageError(error.message) from error
    async with open_app(settings, ()) as app:

        async def stored(name: str) -> StrategySpec | None:
            try:
                definitions = app.runtime.source(Definitions)
                found: StrategySpec | None = await definitions.named(name, as_of=app.runtime.clock.now())
            except NotConfigured:  # a service needs no home
                return None
            return found

        await serving.serve(host, port, settings.backtests, stored)


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
