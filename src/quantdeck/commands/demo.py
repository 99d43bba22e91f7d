"""`quantdeck demo`: make a home a demo world."""

from __future__ import annotations

import argparse
import asyncio

from quantdeck.commands import UsageError, up_to
from quantdeck.core.errors import SourceError
from quantdeck.demo import make
from quantdeck.settings import Settings

__all__ = ["add", "run"]


def add(command: argparse.ArgumentParser) -> None:
    command.add_argument("--seed", type=up_to(2**63 - 1), default=7, help="another seed, another world (default 7)")
    command.add_argument(
        "--days", type=up_to(3650), default=30, help="how many days back it is lived in (default 30, at most 3650)"
    )
    command.add_argument("--quiet", action="store_true", help="say nothing when it is done")


def run(arguments: argparse.Namespace) -> None:
    settings = Settings.read()
    try:
        made = asyncio.run(make(settings, seed=arguments.seed, days=arguments.days))
    except SourceError as error:
        raise UsageError(error.message) from error
    if not arguments.quiet:
        print(f"Demo world (seed {arguments.seed}) in {settings.home_path}: {made}")
        print('Ask it: quantdeck call get_top_strategies \'{"symbol": "BTC/USD"}\'')
