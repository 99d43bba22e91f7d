"""What the commands of the command line share. A file here is a command: `add` its arguments, `run` it."""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from quantdeck.core.server import Server
    from quantdeck.settings import Settings

__all__ = ["UsageError", "chosen_servers", "logged", "up_to"]


class UsageError(ValueError):
    """A call that cannot be understood; the sentence says what can."""


def chosen_servers(names: Sequence[str], *, over_http: bool = False) -> tuple[Server, ...]:
    """The servers of these names; `all` leaves out what must be named to be exposed."""
    from quantdeck import servers

    left_out = servers.ON_REQUEST if over_http else frozenset()
    wanted: list[str] = []
    for name in names:
        if name != "all" and name not in servers.NAMES:
            raise UsageError(f"unknown server {name!r}; there are {', '.join(servers.NAMES)} and all")
        wanted += [n for n in servers.NAMES if n not in left_out] if name == "all" else [name]
    return tuple(servers.load(name) for name in dict.fromkeys(wanted))


def logged(settings: Settings, work: Coroutine[Any, Any, int | None], level: str | None = None) -> int:
    """Run `work` with its log where the settings say: stdout belongs to answers."""
    from quantdeck.observability.logs import LineWriter, configure

    try:
        writer = LineWriter(2 if settings.log_file is None else _opened(settings.log_file))
    except UsageError:
        work.close()  # or Python complains that nobody awaited it
        raise
    configure(writer, level or settings.log_level)
    gc.freeze()
    gc.enable()
    try:
        return asyncio.run(work) or 0
    finally:
        writer.close()


def up_to(most: int) -> Callable[[str], int]:
    """For argparse: a whole number that is not above this."""

    def whole_number(text: str) -> int:
        if not (text.isascii() and text.isdigit() and len(text) < 20 and int(text) <= most):
            raise argparse.ArgumentTypeError(f"must be a whole number from 0 to {most}, not {text[:40]!r}")
        return int(text)

    return whole_number


def _opened(log_file: Path) -> int:
    try:
        return os.open(log_file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    except OSError as error:
        raise UsageError(f"QUANTDECK_LOG_FILE cannot be written: {error.strerror}") from error
