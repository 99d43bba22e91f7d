"""`quantdeck evaluate`: run strategies on the newest closed bars, and store what they signal."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from collections.abc import Coroutine
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from quantdeck.app import App, open_app
from quantdeck.collectors.evaluating import Evaluation
from quantdeck.collectors.watching import Watch
from quantdeck.commands import UsageError, logged
from quantdeck.core.clock import iso
from quantdeck.core.errors import SourceError
from quantdeck.demo import topped_up
from quantdeck.domain.symbols import UnknownSymbolError, instrument
from quantdeck.settings import Settings
from quantdeck.sources.candles import Candles
from quantdeck.sources.sql.evaluations import Evaluations

__all__ = ["add", "run"]


def add(command: argparse.ArgumentParser) -> None:
    command.add_argument("--watch", action="store_true", help="go on as each bar closes, until it is ended")
    command.add_argument("--symbol", help="only strategies of this one (default all)")
    command.add_argument("--strategy", metavar="NAME|ID", help="only this spec, or this implementation (default all)")
    command.add_argument("--events", type=Path, metavar="PATH", help="also write what was traded into this event log")


def run(arguments: argparse.Namespace) -> int:
    settings = Settings.read()
    if arguments.watch and settings.clock != "wall":
        raise UsageError("QUANTDECK_CLOCK stands still, so no bar will ever close; unset it, or leave out --watch")
    symbol = None
    if arguments.symbol is not None:
        try:
            symbol = instrument(arguments.symbol)
        except UnknownSymbolError as error:
            raise UsageError(f"{arguments.symbol[:40]!r} {error}") from error
    return logged(settings, _evaluate(settings, symbol, arguments), level="error")


async def _evaluate(settings: Settings, symbol: str | None, arguments: argparse.Namespace) -> None:
    async with open_app(settings, ()) as app:
        try:
            if settings.is_demo:  # whose own strategies are followed ahead of time
                await topped_up(settings, app.databases, app.runtime.clock.now())
            evaluation = Evaluation(
                app.runtime.source(Candles), app.runtime.source(Evaluations), settings.backtests,
                symbol=symbol, strategy=arguments.strategy, events=arguments.events,
            )  # fmt: skip
            if arguments.watch:
                await _until_ended(Watch(evaluation, app.runtime.clock, _tell).run())
            else:
                await _once(app, evaluation)
        except SourceError as error:
            raise UsageError(error.message) from error


async def _once(app: App, evaluation: Evaluation) -> None:
    made = await evaluation.once(_tell, as_of=app.runtime.clock.now())
    for problem in made.problems.values():
        _tell(problem)
    if not made.followed and not made.problems:
        _tell("there is nothing to follow: no implementation that is VALIDATED or DEPLOYED, of these or at all")
    print(made.told())


async def _until_ended(work: Coroutine[Any, Any, None]) -> None:
    """Until SIGTERM or SIGINT, either of which is a good end."""
    loop, task = asyncio.get_running_loop(), asyncio.ensure_future(work)
    numbers = (signal.SIGTERM, signal.SIGINT)
    with suppress(NotImplementedError):  # Windows, where a signal just ends it
        for number in numbers:
            loop.add_signal_handler(number, task.cancel)
    try:
        with suppress(asyncio.CancelledError):
            await task
    finally:
        with suppress(NotImplementedError):
            for number in numbers:
                loop.remove_signal_handler(number)


def _tell(said: str) -> None:
    sys.stderr.write(f"{iso(datetime.now(UTC).replace(microsecond=0))} {said}\n")
    sys.stderr.flush()
