"""A file's rows into a store of bars. Every row is stored, or counted as an earlier version of one, or rejected.

Safe to repeat: a bar that is stored already is replaced by itself, so whoever breaks an import off runs it again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import tzinfo
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quantdeck.collectors.bar_files import FileProblem
from quantdeck.collectors.bar_files.columns import Columns, guessed
from quantdeck.collectors.bar_files.lengths import detected
from quantdeck.collectors.bar_files.rejects import Rejects
from quantdeck.collectors.bar_files.rows import Batch, Rows, opened
from quantdeck.collectors.bar_files.seen import Seen
from quantdeck.collectors.bar_files.times import TimeReader, UnreadableTime, reader
from quantdeck.domain.candles import COLUMNS, Bars, faults, joined
from quantdeck.domain.symbols import UnknownSymbolError, instrument
from quantdeck.domain.timeframes import DAY, Timeframe
from quantdeck.sources.candles import Candles

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Imported", "Wishes", "import_file"]

_AT_ONCE, _KEPT = 200_000, 1_000_000
"""Bars of a symbol that are written at once, and of all symbols that are kept in memory until then."""


@dataclass(frozen=True, slots=True)
class Wishes:
    """What somebody said of files; what is empty is guessed."""

    symbol: str = ""
    timeframe: Timeframe | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    tz: tzinfo | None = None
    unit: str = ""
    form: str = ""
    comma: bool = False  # decimal
    at_close: bool = False  # times are those of closes
    replace: bool = False
    dry: bool = False


@dataclass(slots=True)
class Imported:
    """What became of a file's rows: `rows` = `stored` + `repeated` + the rejected."""

    rows: int = 0
    stored: int = 0
    repeated: int = 0
    backwards: int = 0
    rejected: int = 0
    spans: dict[str, tuple[int, int, int]] = field(default_factory=dict)  # by symbol: bars, first open, last open


@dataclass(slots=True)
class _Plan:
    columns: Columns
    times: TimeReader
    base: Timeframe
    symbol: str


async def import_file(
    candles: Candles,
    path: Path,
    wishes: Wishes,
    rejects: Rejects,
    say: Callable[[str], None],
    advance: Callable[[float, int], None],
) -> Imported:
    """Import one file. `say` is told what was guessed before anything is stored, `advance` how far it has come."""
    with opened(path) as rows, rejects:
        first = next(rows.batches, None)
        if first is None:
            raise FileProblem("has names of columns and no rows")
        plan = _planned(rows, first, path, wishes)
        for line in _told(plan, wishes):
            say(line)
        return await _Import(candles, plan, wishes, rejects).run(rows, first, advance)


def _planned(rows: Rows, first: Batch, path: Path, wishes: Wishes) -> _Plan:
    sample = [column[0] for column in first.columns]
    columns = guessed(rows.names, sample, wishes.columns, named=rows.named)
    symbol = "" if "symbol" in columns.place and not wishes.symbol else _symbol(path, wishes)
    times = reader(_cells_of_time(first, columns)[:2000], tz=wishes.tz, unit=wishes.unit, form=wishes.form)
    base = wishes.timeframe or _length(first, columns, times)
    if times.days and base != DAY:
        raise FileProblem(f"has dates and no times of day, so its bars cannot be of {base}")
    return _Plan(columns, times, base, symbol)


def _length(first: Batch, columns: Columns, times: TimeReader) -> Timeframe:
    """The length of the bars; also of those with dates, which may be a week or a month apart."""
    opens = _sampled(first, columns, times)
    if times.days and all(len(set(some)) < 2 for some in opens):
        return DAY
    base = detected(opens)
    odd = [at for some in opens for at in some if at % base.seconds]
    if base != DAY and 2 * len(odd) > sum(map(len, opens)):
        raise FileProblem(
            f"has bars that are {base} apart and open at {odd[0] % base.seconds // 60} minutes past those of {base}, "
            "which begin at whole multiples of it in UTC; import finer bars"
        )
    return base


def _sampled(first: Batch, columns: Columns, times: TimeReader) -> list[list[int]]:
    """The opens of the first rows, by symbol."""
    cells = _cells_of_time(first, columns)
    names = first.columns[columns.place["symbol"]] if "symbol" in columns.place else [""] * len(cells)
    found: dict[str, list[int]] = {}
    for name, cell in zip(names, cells, strict=True):
        try:
            found.setdefault(name, []).append(times.read(cell))
        except UnreadableTime:
            continue
    return list(found.values())


def _symbol(path: Path, wishes: Wishes) -> str:
    from quantdeck.collectors.bar_files.names import symbol_of_file

    if not wishes.symbol:
        return symbol_of_file(path)
    try:
        return instrument(wishes.symbol)
    except UnknownSymbolError as error:
        raise FileProblem(f"--symbol {wishes.symbol!r} {error}") from error


def _told(plan: _Plan, wishes: Wishes) -> list[str]:
    lines = [f"columns: {plan.columns}"]
    if unused := plan.columns.unused:
        lines.append(f"not used: {', '.join(unused)}")
    if "volume" not in plan.columns.place:
        lines.append("volume: none in the file, stored as 0")
    meant = "closes" if wishes.at_close else "opens"
    lines.append(f"times: {plan.times.words}; they are when a bar {meant}")
    why = "as --timeframe says" if wishes.timeframe else "told by how far apart they are"
    lines.append(f"bars of {plan.base}, {why}")
    lines.append(f"symbol: {plan.symbol or 'of each row'}")
    return lines


def _cells_of_time(batch: Batch, columns: Columns) -> Sequence[str]:
    days = batch.columns[columns.place["time"]] if batch.columns else []
    clock = columns.place.get("clock")
    if clock is None or not batch.columns:
        return days
    return [f"{day.strip()} {_padded(hour.strip())}" for day, hour in zip(days, batch.columns[clock], strict=True)]


def _padded(clock: str) -> str:
    """9:30, 0930 and 93000 as 09:30:00."""
    if clock.isdigit() and len(clock) in {3, 4, 5, 6}:
        clock = clock.zfill(4 if len(clock) < 5 else 6)
        return ":".join(clock[at : at + 2] for at in range(0, len(clock), 2))
    return f"0{clock}" if len(clock) > 1 and clock[1] == ":" else clock


class _Import:
    """One run over one file."""

    def __init__(self, candles: Candles, plan: _Plan, wishes: Wishes, rejects: Rejects) -> None:
        self._candles, self._plan, self._wishes, self._rejects = candles, plan, wishes, rejects
        self._waiting: dict[str, list[Bars]] = {}
        self._seen: dict[str, Seen] = {}
        self._symbols: dict[str, str] = {}
        self._replaced: set[str] = set()
        self._done = Imported()

    async def run(self, rows: Rows, first: Batch, advance: Callable[[float, int], None]) -> Imported:
        for batch in chain([first], rows.batches):
            self._take(batch)
            for symbol in self._ripe():
                await self._store(symbol)
            advance(rows.progress(), self._done.rows)
        for symbol in list(self._waiting):
            await self._store(symbol)
        return self._summed()

    def _take(self, batch: Batch) -> None:
        self._done.rows += len(batch.lines) + len(batch.torn)
        for torn in batch.torn:
            self._reject(*torn)
        if not batch.lines:
            return
        bars, reasons = self._bars(batch)
        good = self._judged(bars, reasons)
        for at in sorted(reasons):
            self._reject(batch.lines[at], reasons[at], batch.row(at))
        for symbol, part in self._by_symbol(batch, bars, good):
            seen = self._seen.setdefault(symbol, Seen(self._plan.base))
            repeated, backwards = seen.add(part.time)
            self._done.repeated += repeated
            self._done.backwards += backwards
            self._waiting.setdefault(symbol, []).append(part)

    def _reject(self, line: int, reason: str, row: str) -> None:
        self._done.rejected += 1
        self._rejects.add(line, reason, row)

    def _bars(self, batch: Batch) -> tuple[Bars, dict[int, str]]:
        """All rows as bars, and why some are none; those have a time or numbers that mean nothing."""
        reasons: dict[int, str] = {}
        time = self._opens(_cells_of_time(batch, self._plan.columns), reasons, underscored=batch.underscored)
        numbers = []
        for name in COLUMNS:
            place = self._plan.columns.place.get(name)
            cells = batch.columns[place] if place is not None else None
            said = {"comma": self._wishes.comma, "underscored": batch.underscored}
            numbers.append(_numbers(cells, len(batch.lines), name, reasons, **said))
        if "symbol" in self._plan.columns.place and not self._plan.symbol:
            for at, name in enumerate(batch.columns[self._plan.columns.place["symbol"]]):
                if (symbol := self._named(name)).startswith("!"):
                    reasons.setdefault(at, symbol[1:])
        return Bars.of(time, *numbers), reasons

    def _opens(self, cells: Sequence[str], reasons: dict[int, str], *, underscored: bool) -> NDArray[np.int64]:
        import numpy as np

        times, base = self._plan.times, self._plan.base
        read = times.day if base == DAY else times.read
        found = np.zeros(len(cells), dtype=np.int64)
        try:
            if times.per_s and base != DAY and not underscored:
                found[:] = _whole(np.fromiter(map(int, cells), dtype=np.int64, count=len(cells)), times.per_s)
            else:
                found[:] = np.fromiter(map(read, cells), dtype=np.int64, count=len(cells))
        except (ValueError, OverflowError):
            for at, cell in enumerate(cells):
                try:
                    found[at] = read(cell)
                except UnreadableTime as error:
                    reasons[at] = str(error)
                except OverflowError:
                    reasons[at] = f"time is beyond all calendars: {cell[:40]!a}"
        return found - base.seconds if self._wishes.at_close and not times.days else found

    def _judged(self, bars: Bars, reasons: dict[int, str]) -> NDArray[np.bool_]:
        """Which rows are bars that can be; of the others the first reason is kept."""
        import numpy as np

        good = np.ones(len(bars), dtype=bool)
        good[list(reasons)] = False
        for fault, mask in faults(bars, self._plan.base).items():
            for at in np.flatnonzero(mask & good).tolist():
                reasons[at] = fault
            good &= ~mask
        return good

    def _by_symbol(self, batch: Batch, bars: Bars, good: NDArray[np.bool_]) -> list[tuple[str, Bars]]:
        import numpy as np

        def picked(which: Any) -> Bars:
            return Bars(*(column[which] for column in bars.columns()))

        if self._plan.symbol:
            return [(self._plan.symbol, bars if good.all() else picked(good))] if good.any() else []
        codes: dict[str, int] = {}
        names = batch.columns[self._plan.columns.place["symbol"]]
        code = np.array([codes.setdefault(self._symbols[name], len(codes)) for name in names])
        there = np.flatnonzero(good)
        order = there[code[there].argsort(kind="stable")]
        symbols = list(codes)
        parts = np.split(order, np.flatnonzero(np.diff(code[order])) + 1)
        return [(symbols[code[part[0]]], picked(part)) for part in parts if len(part)]

    def _named(self, name: str) -> str:
        """The symbol of a cell, or ! and why it is none."""
        if name not in self._symbols:
            try:
                self._symbols[name] = instrument(name.strip())
            except UnknownSymbolError as error:
                self._symbols[name] = f"!symbol {error}: {name[:40]!a}"
        return self._symbols[name]

    def _ripe(self) -> list[str]:
        sizes = {symbol: sum(map(len, parts)) for symbol, parts in self._waiting.items()}
        if sum(sizes.values()) > _KEPT:
            return list(sizes)
        return [symbol for symbol, size in sizes.items() if size >= _AT_ONCE]

    async def _store(self, symbol: str) -> None:
        bars = joined(self._waiting.pop(symbol))
        if self._wishes.dry:
            return
        if self._wishes.replace and symbol not in self._replaced:
            self._replaced.add(symbol)
            await self._candles.forget(symbol)
        await self._candles.write(symbol, self._plan.base, bars)

    def _summed(self) -> Imported:
        done = self._done
        done.stored = done.rows - done.rejected - done.repeated
        done.spans = {symbol: (seen.held, seen.first_s, seen.last_s) for symbol, seen in sorted(self._seen.items())}
        return done


def _whole(numbers: NDArray[np.int64], per_s: int) -> NDArray[np.int64]:
    seconds = numbers // per_s
    if (seconds * per_s != numbers).any():
        raise ValueError("some are between two seconds")
    return seconds


def _numbers(
    cells: Sequence[str] | None, many: int, name: str, reasons: dict[int, str], *, comma: bool, underscored: bool
) -> NDArray[np.float64]:
    import numpy as np

    if cells is None:
        return np.zeros(many)
    if comma:
        cells = [cell.replace(",", ".") for cell in cells]
    try:
        if not (underscored and any("_" in cell for cell in cells)):  # which float() would pass over
            return np.fromiter(map(float, cells), dtype=np.float64, count=many)
    except ValueError:
        pass
    found = np.zeros(many)
    for at, cell in enumerate(cells):
        try:
            found[at] = float("" if "_" in cell else cell)
        except ValueError:
            reasons.setdefault(at, f"{name} is no number: {cell[:40]!a}" if cell.strip() else f"{name} is empty")
    return found
