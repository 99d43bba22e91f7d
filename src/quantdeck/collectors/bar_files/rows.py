"""The rows of a file, in batches of columns, each row with its line so that a bad one can be found again."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice, repeat
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from quantdeck.collectors.bar_files import FileProblem, parquet_driver
from quantdeck.collectors.bar_files.columns import has_names

__all__ = ["Batch", "Rows", "opened"]

AT_ONCE = 50_000
_DELIMITERS = ",;\t|"
_HEAD = 20


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows as columns of text, the line of each and how it was written; and what could not even be cut into cells."""

    lines: Sequence[int]
    written: Sequence[str | tuple[str, ...]]
    columns: Sequence[Sequence[str]]
    torn: Sequence[tuple[int, str, str]] = field(default=())  # line, reason, as it was written
    underscored: bool = True  # whether there may be a _ in a cell

    def row(self, at: int) -> str:
        """One as it was written."""
        written = self.written[at]
        return written.rstrip("\r\n") if isinstance(written, str) else ",".join(written)


@dataclass(frozen=True, slots=True)
class Rows:
    """A file that is open: its columns' names, its batches, and how far one has come, from 0 to 1."""

    names: Sequence[str]
    named: bool
    batches: Iterator[Batch]
    progress: Callable[[], float]


@contextmanager
def opened(path: Path) -> Iterator[Rows]:
    """A file of bars, CSV (packed by gzip or not) or Parquet; what it is is seen by its first bytes."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            first = file.read(4)
            file.seek(0)
            if first == b"PAR1":
                with parquet_driver().opened(path, AT_ONCE) as (names, batches, progress):
                    yield Rows(names, True, batches, progress)
                return
            if not size:
                raise FileProblem("is empty")
            packed = first[:2] == b"\x1f\x8b"
            plain: Any = gzip.GzipFile(fileobj=file) if packed else file
            text = io.TextIOWrapper(plain, encoding=_encoding(file, packed=packed), errors="replace", newline="")
            names, named, batches = _delimited(text)
            yield Rows(names, named, batches, lambda: min(file.tell() / size, 1.0))
    except (gzip.BadGzipFile, EOFError) as error:
        raise FileProblem("is packed by gzip and damaged or cut off") from error
    except OSError as error:
        raise FileProblem(f"cannot be read: {error.strerror or error}") from error


def _encoding(file: BinaryIO, *, packed: bool) -> str:
    head = b"" if packed else file.read(2)
    if not packed:
        file.seek(0)
    return "utf-16" if head in {b"\xff\xfe", b"\xfe\xff"} else "utf-8-sig"  # terminals on Windows write the first


def _delimited(text: TextIO) -> tuple[list[str], bool, Iterator[Batch]]:
    head = list(islice(text, _HEAD))
    blank = next((at for at, line in enumerate(head) if line.strip()), None)
    if blank is None:
        raise FileProblem("has no rows")
    head = head[blank:]
    delimiter = _delimiter([line for line in head if line.strip()])
    first = _cells(head[0].rstrip("\r\n"), delimiter)
    if first is None or len(first) < 2:
        raise FileProblem("is no table of columns; the first line is " + ascii(head[0].strip()[:60]))
    named = has_names(first)
    names = [cell.strip() for cell in first] if named else [str(nth) for nth in range(1, len(first) + 1)]
    return names, named, _batches(text, head[named:], blank + named + 1, delimiter, len(first))


def _delimiter(lines: Sequence[str]) -> str:
    """What cuts the first lines into the most columns, the same number in each if there is such."""

    def worth(delimiter: str) -> tuple[bool, int]:
        counts = {line.count(delimiter) for line in lines}
        return len(counts) == 1 and 0 not in counts, max(counts)

    return max(_DELIMITERS, key=worth)


def _batches(text: TextIO, head: list[str], number: int, delimiter: str, width: int) -> Iterator[Batch]:
    while lines := [*head, *islice(text, AT_ONCE)]:
        yield _even(lines, number, delimiter, width) or _batch(enumerate(lines, number), delimiter, width)
        number += len(lines)
        head = []


def _even(lines: list[str], number: int, delimiter: str, width: int) -> Batch | None:
    """Rows of which each has all its columns and none a quote, cut all at once: half the time of the whole import."""
    if set(map(str.count, lines, repeat(delimiter))) != {width - 1}:
        return None
    text = "".join(lines)
    if '"' in text or "\r" in text.replace("\r\n", "\n"):
        return None
    cells = text.replace("\r\n", delimiter).replace("\n", delimiter).split(delimiter)
    columns = [cells[place : len(lines) * width : width] for place in range(width)]
    return Batch(range(number, number + len(lines)), lines, columns, underscored="_" in text)


def _batch(taken: Iterable[tuple[int, str]], delimiter: str, width: int) -> Batch:
    numbers: list[int] = []
    written: list[str] = []
    rows: list[list[str]] = []
    torn: list[tuple[int, str, str]] = []
    for number, ended in taken:
        line = ended.rstrip("\r\n")
        cells = line.split(delimiter) if '"' not in line else _cells(line, delimiter)
        if cells is not None and len(cells) > width and not any(map(str.strip, cells[width:])):
            cells = cells[:width]  # many programs end each row with a delimiter, and not the names
        if cells is not None and len(cells) == width:
            numbers.append(number)
            written.append(line)
            rows.append(cells)
        elif line.strip():
            torn.append((number, _tear(cells, width), line))
    return Batch(numbers, written, list(zip(*rows, strict=True)), torn)


def _cells(line: str, delimiter: str) -> list[str] | None:
    """A line with quotes; a quote that is not closed ends with its line, or it would swallow the rest of the file."""
    if '"' not in line:
        return line.split(delimiter)
    try:
        return next(csv.reader([line], delimiter=delimiter, strict=True))
    except (csv.Error, StopIteration):
        return None


def _tear(cells: list[str] | None, width: int) -> str:
    return "quotes are not closed" if cells is None else f"has {len(cells)} columns where there are {width}"
