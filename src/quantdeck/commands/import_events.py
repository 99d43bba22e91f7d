"""`quantdeck import events`: a file of JSON lines becomes a run of the event log."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from time import monotonic

from quantdeck.commands import UsageError
from quantdeck.commands.worlds import add_from_demo, add_into_demo, refuse_demo, refuse_made_up
from quantdeck.settings import Settings

__all__ = ["add", "run"]

EXAMPLE = """\
{"type":"candle","data":{"time":1735689600000,"open":100,"high":102,"low":99,"close":101,"volume":5,"securityId":"AAPL"}}
{"type":"indicator_SMA_10","data":{"time":1735689600000,"value":100.5,"sequenceNumber":2}}
{"type":"trade","data":{"time":1735689660000,"price":101.2,"volume":10,"side":"buy","pnL":0,"orderId":17}}
{"type":"state","data":{"time":1735689660000,"position":10,"pnL":-2,"unrealizedPnL":-2,"processState":"Started"}}
{"eventType":"RiskEvent","timestamp":"2025-01-01T00:02:00Z","properties":{"RiskType":"Drawdown","CurrentValue":0.1}}
"""


def add(command: argparse.ArgumentParser) -> None:
    command.add_argument("file", nargs="?", type=Path, metavar="FILE.jsonl", help="the file")
    command.add_argument("--strategy", metavar="NAME", help="what the run's strategy is called")
    command.add_argument("--symbol", metavar="NAME", help="the security of lines that do not tell theirs")
    command.add_argument("--run-id", metavar="GUID", help="the run's id (default: the file's own, or one made of it)")
    command.add_argument(
        "--rejects", type=Path, metavar="FILE", help="lines that are no events (default: FILE.rejects.jsonl)"
    )
    add_into_demo(command)
    add_from_demo(command)
    command.add_argument("--example", action="store_true", help="print a file to begin with, and do nothing")


def run(arguments: argparse.Namespace) -> int:
    if arguments.example:
        sys.stdout.write(EXAMPLE)
        return 0
    if arguments.file is None:
        raise UsageError("name the file to import; `quantdeck import events --example` prints one to begin with")
    settings = Settings.read()
    refuse_demo(settings, arguments)
    return _imported(settings, arguments)


def _imported(settings: Settings, arguments: argparse.Namespace) -> int:
    from quantdeck.events import EventLog, EventLogError
    from quantdeck.events.importing import import_lines, made_up
    from quantdeck.sources.events.embedded import log_path

    path: Path = arguments.file
    rejects = arguments.rejects or path.with_name(f"{path.name}.rejects.jsonl")
    try:
        refuse_made_up(settings, arguments, made_up=made_up(path))
        with EventLog.open(log_path(settings), batch=100_000) as log:
            done = import_lines(
                log,
                path,
                rejects,
                strategy=arguments.strategy,
                run_id=arguments.run_id,
                symbol=arguments.symbol,
                progress=_Bar() if sys.stderr.isatty() else _silent,
            )
    except EventLogError as error:
        raise UsageError(str(error)) from error
    except OSError as error:
        raise UsageError(f"{error.filename or path}: {error.strerror}") from error
    how = "was imported already" if done.resumed and not done.taken else "imported"
    print(f"run {done.run_id}: {done.lines} lines {how}, {done.rejected} of them no events")
    if done.rejected:
        print(f"what was wrong with them: {rejects}")
    return 0


def _silent(done: int, size: int) -> None:
    """Nobody is looking."""


class _Bar:
    """How far it has come, on one line that is written over."""

    def __init__(self) -> None:
        self._said_s = 0.0

    def __call__(self, done: int, size: int) -> None:
        if done < size and monotonic() - self._said_s < 0.1:
            return
        self._said_s = monotonic()
        share = done / size if size else 1.0
        bar = "#" * round(30 * share)
        sys.stderr.write(f"\r[{bar:30}] {share:4.0%}" + ("\n" if done >= size else ""))
        sys.stderr.flush()
