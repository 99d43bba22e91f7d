"""Reading and replacing the files of single months, whoever else replaces them meanwhile. All of this blocks."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Protocol
from uuid import uuid4

from quantdeck.core.errors import Busy, QueryFailed
from quantdeck.domain.arrays import np
from quantdeck.domain.candles import Bars, joined, settled
from quantdeck.domain.timeframes import MINUTE, Timeframe
from quantdeck.sources.candles.folders import Mark, is_settled, mark
from quantdeck.sources.candles.layout import Name, begins_s

__all__ = ["SOURCE", "BarFiles", "Month", "Months", "unchanged"]

SOURCE = "parquet"

_TRIES = 50
"""How often a file is read again that was replaced while it was read."""
_COUNTS_KEPT = 100_000


class Month(Protocol):
    """What a file holds."""

    @property
    def bars(self) -> Bars: ...
    @property
    def is_whole(self) -> bool: ...


class BarFiles(Protocol):
    """`connections.duckdb.BarFiles`, whose driver is an extra."""

    def read(self, path: Path, begins_s: int, ends_s: int) -> Month: ...
    def write(self, path: Path, bars: Bars) -> None: ...
    def close(self) -> None: ...


def unchanged(marks: Mapping[str, Mark | None]) -> bool:
    """Whether files are those that were marked; one whose next change might not show never is."""
    return all(seen is not None and mark(path) == seen for path, seen in marks.items())


class Months:
    """Files of one month each."""

    def __init__(self, files: BarFiles) -> None:
        self._files = files
        self._counts: dict[tuple[str, int], tuple[Mark, int]] = {}
        self._tidied: set[Path] = set()

    def close(self) -> None:
        self._files.close()

    def read(self, path: str, month: int) -> tuple[Bars, Mark | None]:
        """The bars of a month and the mark of the file that they are of, None where it may change unseen.

        A file that was removed after it was listed has no bars.
        """
        try:
            found, seen = self._read(path, month)
        except FileNotFoundError:
            return Bars.none(), None
        return found.bars, seen if is_settled(seen) else None

    def _read(self, path: str, month: int) -> tuple[Month, Mark]:
        for _ in range(_TRIES):
            before = mark(path)
            if before is None:
                raise FileNotFoundError(path)
            try:
                found = self._files.read(Path(path), begins_s(month), begins_s(month + 1))
            except QueryFailed:
                if mark(path) == before:
                    raise
                continue
            if mark(path) == before:
                return found, before
        raise Busy(f"{Path(path).name} is replaced faster than it can be read; try again", source=SOURCE)

    def count(self, path: str, month: int, timeframe: Timeframe, end_s: int) -> int:
        """How many bars of a length there are before the end; no bar reaches over the end of a month."""
        key, whole = (path, timeframe.seconds), begins_s(month + 1) <= end_s
        kept = self._counts.get(key) if whole else None
        if kept is not None and mark(path) == kept[0]:
            return kept[1]
        bars, seen = self.read(path, month)
        opens = bars.time[: int(bars.time.searchsorted(end_s))]
        number = len(opens) if timeframe == MINUTE else len(np.unique(opens // timeframe.seconds))
        if whole and seen is not None:
            if len(self._counts) >= _COUNTS_KEPT:
                self._counts.clear()
            self._counts[key] = (seen, number)
        return number

    def store(self, folder: Path, name: Name, bars: Bars) -> None:
        """Put bars into the files of their months, in place of those of the same opens; in `folders.writing` only."""
        self._tidy(folder)
        months = bars.time.astype("datetime64[s]").astype("datetime64[M]").astype(np.int64)
        made: list[tuple[Path, Path]] = []
        try:
            for month in np.unique(months).tolist():
                path = folder / name.file(month)
                merged = self._merged(path, month, bars[slice(*np.searchsorted(months, (month, month + 1)).tolist())])
                if merged is not None:
                    made.append((folder / f".{path.name}.{uuid4().hex}.tmp", path))
                    self._files.write(made[-1][0], merged)
            for new, path in made:  # what a power cut takes is the new names: the files before have theirs still
                new.replace(path)
        finally:
            for new, _ in made:
                new.unlink(missing_ok=True)

    def _merged(self, path: Path, month: int, bars: Bars) -> Bars | None:
        """What a file is to hold; None where it holds that. What we would not write again is kept beside it."""
        try:
            old, _ = self._read(str(path), month)
        except FileNotFoundError:
            return bars
        merged = settled(joined([old.bars, bars]))
        if not old.is_whole:
            with suppress(FileExistsError):
                os.link(path, path.with_suffix(".parquet.before"))
        elif all(map(np.array_equal, merged.columns(), old.bars.columns())):
            return None
        return merged

    def _tidy(self, folder: Path) -> None:
        """Remove what a writer left that was killed; nobody else is writing now."""
        if folder not in self._tidied:
            for left in folder.glob(".*.parquet.*.tmp"):
                left.unlink(missing_ok=True)
            self._tidied.add(folder)
