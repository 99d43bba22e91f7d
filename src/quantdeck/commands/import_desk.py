"""`quantdeck import desk`: a portfolio from a file, all of it or nothing."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections import Counter
from pathlib import Path

from quantdeck.commands import UsageError
from quantdeck.commands.worlds import add_from_demo, add_into_demo, refuse_demo, refuse_made_up
from quantdeck.connections.databases import Databases
from quantdeck.core.clock import Clock
from quantdeck.core.errors import SourceError
from quantdeck.settings import Settings
from quantdeck.sources.sql.desk_exchange import bring_in
from quantdeck.sources.sql.desk_file import DeskFile, FileProblems, read

__all__ = ["add", "run"]

EXAMPLE = """\
{
  "accounts": [
    {"total_balance": 25000, "margin_used": 7300}
  ],
  "positions": [
    {"symbol": "BTC/USD", "side": "LONG", "size": 0.1, "entry_price": 61000, "current_price": 64500,
     "opened_at": "2026-01-05T10:00:00Z"},
    {"symbol": "EUR/USD", "side": "SHORT", "size": 1000, "entry_price": 1.12}
  ],
  "risk_limits": [
    {"max_position_pct": 0.3, "max_exposure_pct": 0.8, "max_open_positions": 10, "max_daily_loss_pct": 0.05}
  ]
}
"""


def add(command: argparse.ArgumentParser) -> None:
    command.add_argument("file", nargs="?", metavar="FILE.json", help="the file; - for what is piped in")
    command.add_argument("--replace", action="store_true", help="remove other positions of the file's accounts")
    add_into_demo(command)
    add_from_demo(command)
    command.add_argument("--example", action="store_true", help="print a file to begin with, and do nothing")


def run(arguments: argparse.Namespace) -> int:
    if arguments.example:
        sys.stdout.write(EXAMPLE)
        return 0
    if arguments.file is None:
        raise UsageError("name the file to import; `quantdeck import desk --example` prints one to begin with")
    settings = Settings.read()
    try:
        file = read(_contents(arguments.file), account=settings.account)
        refuse_demo(settings, arguments)
        refuse_made_up(settings, arguments, made_up=file.source == "demo")
        counts = asyncio.run(_brought(settings, file, replace=arguments.replace))
    except FileProblems as error:
        problems = "".join(f"\n  {problem}" for problem in error.problems)
        raise UsageError(f"{arguments.file} is not imported, nor any part of it:{problems}") from None
    except SourceError as error:
        raise UsageError(error.message) from error
    for table, counted in counts.items():
        print(f"{table}: {_told(counted)}")
    return 0


async def _brought(settings: Settings, file: DeskFile, *, replace: bool) -> dict[str, Counter[str]]:
    databases = Databases(settings)
    try:
        await databases.make_desk()
        databases.require("desk")
        now = Clock.parse(settings.clock).now()
        return await bring_in(databases.of("desk"), file, now=now, account=settings.account, replace=replace)
    finally:
        await databases.close()


def _contents(name: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise UsageError(f"{name} cannot be read: {error.strerror}") from error


def _told(counted: Counter[str]) -> str:
    return ", ".join(f"{number} {words}" for words, number in counted.items() if number) or "nothing to do"
