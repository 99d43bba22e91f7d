"""`quantdeck import candles`: bars from files."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from quantdeck.app import open_app
from quantdeck.collectors.bar_files import FileProblem
from quantdeck.collectors.bar_files.columns import FIELDS
from quantdeck.collectors.bar_files.importing import Imported, Wishes, import_file
from quantdeck.collectors.bar_files.progress import Progress
from quantdeck.collectors.bar_files.rejects import Rejects
from quantdeck.collectors.bar_files.times import UNITS, zone
from quantdeck.commands import UsageError, logged
from quantdeck.commands.worlds import add_into_demo, bars_of_a_file
from quantdeck.core.clock import iso
from quantdeck.core.errors import SourceError
from quantdeck.domain.timeframes import TIMEFRAMES
from quantdeck.settings import Settings
from quantdeck.sources.candles import Candles

__all__ = ["add", "run"]

_REASONS_SHOWN = 5


def add(command: argparse.ArgumentParser) -> None:
    command.add_argument("files", nargs="+", type=Path, metavar="FILE", help="CSV (or .csv.gz) or Parquet")
    command.add_argument("--symbol", default="", help="whose bars they are (default: a column's, or the file's name)")
    command.add_argument("--timeframe", choices=tuple(TIMEFRAMES), metavar="LENGTH", help="of the bars (default: told)")
    command.add_argument(
        "--map", action="append", default=[], metavar="FIELD=COLUMN",
        help=f"which column (name, or number from 1) is what, of {', '.join(FIELDS)}; FIELD= for none; repeatable",
    )  # fmt: skip
    command.add_argument("--tz", metavar="ZONE", help="whose times without an offset are: UTC, America/New_York, …")
    command.add_argument("--time-unit", default="", choices=tuple(UNITS), help="of times that are numbers since 1970")
    command.add_argument("--time-format", default="", metavar="FORM", help="of times, such as '%%d.%%m.%%Y %%H:%%M'")
    command.add_argument("--stamped", choices=("open", "close"), default="open", help="what of a bar its time is")
    command.add_argument("--decimal", choices=(".", ","), default=".", help="what fractions begin with")
    command.add_argument("--rejects", type=Path, metavar="FOLDER", help="for rejected rows (default: beside the file)")
    command.add_argument("--replace", action="store_true", help="forget what is stored of a symbol first")
    command.add_argument("--dry-run", action="store_true", help="read and report, and store nothing")
    add_into_demo(command)


def run(arguments: argparse.Namespace) -> int:
    settings = bars_of_a_file(Settings.read(), arguments)
    wishes = _wishes(arguments)
    return logged(settings, _imported(settings, arguments, wishes), level="error")


def _wishes(arguments: argparse.Namespace) -> Wishes:
    try:
        return Wishes(
            symbol=arguments.symbol,
            timeframe=TIMEFRAMES[arguments.timeframe] if arguments.timeframe else None,
            columns=dict(_mapped(arguments.map)),
            tz=zone(arguments.tz) if arguments.tz else None,
            unit=arguments.time_unit,
            form=arguments.time_format,
            comma=arguments.decimal == ",",
            at_close=arguments.stamped == "close",
            replace=arguments.replace,
            dry=arguments.dry_run,
        )
    except FileProblem as problem:
        raise UsageError(str(problem)) from problem


def _mapped(said: list[str]) -> Iterator[tuple[str, str]]:
    for one in said:
        name, equals, column = one.partition("=")
        if not equals or name not in FIELDS:
            raise UsageError(f"--map {one!r} is not FIELD=COLUMN with a field of {', '.join(FIELDS)}")
        yield name, column


@dataclass(slots=True)
class _Totals:
    failed: int = 0
    stored: int = 0


async def _imported(settings: Settings, arguments: argparse.Namespace, wishes: Wishes) -> int:
    """Each file by itself: one that cannot be read does not keep the others out. 1 if there was such a one."""
    totals = _Totals()
    async with open_app(settings, ()) as app:
        candles = app.runtime.source(Candles)
        for path in arguments.files:
            await _one(candles, path, arguments.rejects, wishes, totals)
    if settings.is_demo and totals.stored:
        print("This is a demo world: QUANTDECK_CANDLES=embedded serves these bars there in place of its own.")
    return int(totals.failed > 0)


async def _one(candles: Candles, path: Path, folder: Path | None, wishes: Wishes, totals: _Totals) -> None:
    rejects = Rejects((folder or path.parent) / f"{path.name}.rejects")
    print(path)
    try:
        with Progress(sys.stderr, path.name) as progress:
            done = await import_file(candles, path, wishes, rejects, _say, progress)
    except FileProblem as problem:
        return _failed(path, str(problem), totals)
    except SourceError as error:
        advice = "; --replace forgets those first" if "cannot take bars of" in error.message else ""
        return _failed(path, f"is not imported: {error.message}{advice}", totals)
    _report(done, rejects, dry=wishes.dry)
    totals.stored += done.stored
    totals.failed += done.stored == 0
    return None


def _say(line: str) -> None:
    print(f"  {line}", flush=True)


def _failed(path: Path, why: str, totals: _Totals) -> None:
    totals.failed += 1
    print(f"quantdeck: {path} {why}", file=sys.stderr)


def _report(done: Imported, rejects: Rejects, *, dry: bool) -> None:
    _say(f"{done.rows:,} rows: {done.stored:,} bars {'would be stored' if dry else 'stored'}")
    if done.repeated:
        _say(f"{done.repeated:,} rows are of a bar that comes again later in the file; its last version counts")
    if done.backwards:
        _say(f"{done.backwards:,} rows are out of order, and sorted in")
    if done.rejected:
        _say(f"{done.rejected:,} rows are rejected, and kept in {rejects.path}:")
        for reason, many in rejects.reasons.most_common(_REASONS_SHOWN):
            _say(f"  {many:,}: {reason}")
        if (others := len(rejects.reasons) - _REASONS_SHOWN) > 0:
            _say(f"  and {others} reasons more")
    for symbol, (bars, first_s, last_s) in done.spans.items():
        _say(f"{symbol}: {bars:,} bars from {_at(first_s)} to {_at(last_s)}")


def _at(second: int) -> str:
    return iso(datetime.fromtimestamp(second, UTC))
