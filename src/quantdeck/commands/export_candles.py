"""`quantdeck export candles`: bars into files."""

from __future__ import annotations

import argparse
import sys
from datetime import datetime
from pathlib import Path

from quantdeck.app import App, open_app
from quantdeck.collectors.bar_files import FileProblem
from quantdeck.collectors.bar_files.exporting import export_csv, export_parquet, pieces
from quantdeck.collectors.bar_files.names import file_of
from quantdeck.collectors.bar_files.progress import Progress
from quantdeck.commands import UsageError, logged
from quantdeck.core.clock import Now
from quantdeck.core.errors import SourceError
from quantdeck.domain.symbols import UnknownSymbolError, instrument
from quantdeck.domain.timeframes import TIMEFRAMES, FinerThanStored
from quantdeck.settings import Settings
from quantdeck.sources.candles import Candles

__all__ = ["add", "run"]


def add(command: argparse.ArgumentParser) -> None:
    command.add_argument("symbols", nargs="*", metavar="SYMBOL", help="whose bars (default: all)")
    form = command.add_mutually_exclusive_group()
    form.add_argument("--csv", action="store_true", help="write CSV, which is the default")
    form.add_argument("--parquet", action="store_true", help="write Parquet")
    command.add_argument("--timeframe", choices=tuple(TIMEFRAMES), metavar="LENGTH", help="(default: as stored)")
    command.add_argument("--start", type=_instant, metavar="INSTANT", help="first open, such as 2026-01-15T09:30:00Z")
    command.add_argument("--end", type=_instant, metavar="INSTANT", help="opens before this")
    command.add_argument("--out", type=Path, default=Path(), metavar="FOLDER", help="for the files (default: here)")


def run(arguments: argparse.Namespace) -> int:
    settings = Settings.read()
    return logged(settings, _exported(settings, arguments), level="error")


def _instant(text: str) -> datetime:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is no instant with an offset, such as 2026-01-15T09:30:00Z")
    return at


async def _exported(settings: Settings, arguments: argparse.Namespace) -> int:
    """A file for each symbol. What closes after the world's clock is in none."""
    async with open_app(settings, ()) as app:
        candles, as_of = app.runtime.source(Candles), app.runtime.clock.now()
        try:
            symbols = [_symbol(said) for said in arguments.symbols] or await candles.symbols(as_of=as_of)
            wrote = [await _one(app, candles, symbol, arguments, as_of) for symbol in symbols]
        except SourceError as error:
            raise UsageError(error.message) from error
        except FinerThanStored as error:
            raise UsageError(str(error)) from error
    if not wrote:
        print("there are no bars", file=sys.stderr)
    if settings.is_demo and any(wrote):
        print("They are a demo world's bars, made up, and their files are named so.", file=sys.stderr)
    return int(not all(wrote) or not wrote)


def _symbol(said: str) -> str:
    try:
        return instrument(said)
    except UnknownSymbolError as error:
        raise UsageError(f"{said[:40]!r} {error}") from error


async def _one(app: App, candles: Candles, symbol: str, arguments: argparse.Namespace, as_of: Now) -> bool:
    series = await candles.series(symbol, as_of=as_of)
    if series is None:
        print(f"quantdeck: there are no bars of {symbol}", file=sys.stderr)
        return False
    timeframe = TIMEFRAMES[arguments.timeframe] if arguments.timeframe else series.base
    start_s = timeframe.floor(series.first_s)
    if arguments.start:
        start_s = max(start_s, timeframe.ceil(arguments.start.timestamp()))
    end_s = series.last_s + 1
    if arguments.end:
        end_s = min(end_s, timeframe.ceil(arguments.end.timestamp()))
    demo = ".demo" if app.settings.is_demo else ""
    path = arguments.out / file_of(symbol, timeframe, f"{demo}.parquet" if arguments.parquet else f"{demo}.csv")
    parts = pieces(candles, symbol, timeframe, start_s, end_s, as_of)
    write = export_parquet if arguments.parquet else export_csv
    try:
        with Progress(sys.stderr, path.name) as progress:
            bars = await write(path, symbol, parts, progress)
    except FileProblem as problem:
        raise UsageError(f"{path} {problem}") from problem
    print(f"{path}: {bars:,} bars of {timeframe}")
    return True
