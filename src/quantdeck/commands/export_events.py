"""`quantdeck export events`: a run of the event log as JSON lines."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import AsyncIterator
from dataclasses import asdict
from pathlib import Path
from typing import BinaryIO

from quantdeck.commands import UsageError
from quantdeck.core.clock import Clock
from quantdeck.core.errors import SourceError
from quantdeck.core.wire import encode
from quantdeck.settings import Settings

__all__ = ["add", "run"]

_AT_ONCE = 1000


def add(command: argparse.ArgumentParser) -> None:
    command.add_argument("run_id", nargs="?", metavar="RUN", help="the run's id (default: the newest run)")
    command.add_argument("file", nargs="?", type=Path, metavar="FILE.jsonl", help="a new file; without one: stdout")


def run(arguments: argparse.Namespace) -> None:
    try:
        asyncio.run(_written(Settings.read(), arguments.run_id, arguments.file))
    except SourceError as error:
        raise UsageError(error.message) from error


async def _written(settings: Settings, run_id: str | None, path: Path | None) -> None:
    lines = _lines(settings, run_id)
    first = await anext(lines)  # what cannot be exported leaves no file behind
    with _opened(path) as file:
        file.write(first)
        async for line in lines:
            file.write(line)


async def _lines(settings: Settings, run_id: str | None) -> AsyncIterator[bytes]:
    from quantdeck.events.importing import FORMAT
    from quantdeck.servers.backtest_events.list_backtest_runs import wire_run
    from quantdeck.servers.backtest_events.results import wire_events
    from quantdeck.sources.events import Slice
    from quantdeck.sources.events.embedded import connect_to

    now = Clock.parse(settings.clock).now()
    source = connect_to(settings)
    try:
        if run_id is None:
            found = next(iter((await source.runs(Slice(0, 1), as_of=now))[0]), None)
        else:
            found = await source.run(run_id.lower(), as_of=now)
        if found is None:
            raise UsageError(f"there is no run {run_id}" if run_id else "there is no run in this event log")
        told = {name: value for name, value in asdict(wire_run(found)).items() if name != "eventCount"}
        yield encode({"run": {"format": FORMAT, "source": source.source, **told}}) + b"\n"
        after = 0
        while events := await source.written(found.run_id, after, _AT_ONCE, as_of=now):
            for line in wire_events(found.run_id, events):
                yield line + b"\n"
            after = events[-1].id
    finally:
        await source.close()


def _opened(path: Path | None) -> BinaryIO:
    """Its owner's alone: it is somebody's strategy."""
    try:
        if path is None:
            return os.fdopen(os.dup(sys.stdout.fileno()), "wb")
        return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
    except FileExistsError as error:
        raise UsageError(f"{path} is there already; name a new file, or remove it") from error
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from error
