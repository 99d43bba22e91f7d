"""`quantdeck export desk`: a portfolio as a file."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from typing import Any

import orjson

from quantdeck.commands import UsageError
from quantdeck.connections.databases import Databases
from quantdeck.core.clock import Clock
from quantdeck.core.errors import SourceError
from quantdeck.core.wire import encode
from quantdeck.settings import Settings
from quantdeck.sources.sql.desk_exchange import take_out

__all__ = ["add", "run"]


def add(command: argparse.ArgumentParser) -> None:
    command.add_argument("file", nargs="?", metavar="FILE.json", help="a new file; without one it is printed")
    command.add_argument("--account", metavar="NAME", help="only this account's (default: all)")


def run(arguments: argparse.Namespace) -> None:
    try:
        told = asyncio.run(_taken(Settings.read(), arguments.account))
    except SourceError as error:
        raise UsageError(error.message) from error
    text = orjson.dumps(orjson.loads(encode(told)), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    if arguments.file is None:
        sys.stdout.write(text.decode())
    else:
        _write(arguments.file, text)


async def _taken(settings: Settings, account: str | None) -> dict[str, Any]:
    databases = Databases(settings)
    try:
        databases.require("desk")
        desk, now = databases.of("desk"), Clock.parse(settings.clock).now()
        return await take_out(desk, as_of=now, account=account, source="demo" if settings.is_demo else desk.source)
    finally:
        await databases.close()


def _write(name: str, text: bytes) -> None:
    """Its owner's alone: it is somebody's money."""
    try:
        with os.fdopen(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(text)
    except FileExistsError as error:
        raise UsageError(f"{name} is there already; name a new file, or remove it") from error
    except OSError as error:
        raise UsageError(f"{name} cannot be written: {error.strerror}") from error
