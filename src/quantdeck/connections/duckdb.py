"""Parquet files of one-minute bars, by DuckDB in memory. It is an extra: import this module by `extras.load`.

A file is one symbol's month. What is read of it are its sound bars, in order, of several with one open the last;
whatever else somebody may have put there is no bar. Everything here blocks: call it on a thread.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Condition

import duckdb

from quantdeck.core.errors import QueryFailed, Unreachable
from quantdeck.domain.arrays import np
from quantdeck.domain.candles import COLUMNS, Bars, faults, settled
from quantdeck.domain.timeframes import MINUTE

__all__ = ["SOURCE", "BarFiles", "Month"]

SOURCE = "parquet"

_FIGURES = ", ".join(f'CAST("{name}" AS DOUBLE) AS {name}' for name in COLUMNS)
_FILE = "read_parquet(?, hive_partitioning = false)"  # or a folder called a=b would be a column
_READ = f"SELECT epoch_us(time) AS time, {_FIGURES} FROM {_FILE} WHERE time IS NOT NULL"  # noqa: S608 - all ours
_SHAPE = f"DESCRIBE SELECT * FROM {_FILE}"  # noqa: S608 - likewise
_WRITE = """
    COPY (SELECT to_timestamp(time) AS time, open, high, low, close, volume FROM bars ORDER BY time)
    TO '{}' (FORMAT parquet, COMPRESSION snappy)
"""
_OPTIONS: dict[str, str | bool | int | float | list[str]] = {
    "threads": 1,  # a file is small, and other calls want the rest of the machine
    "autoinstall_known_extensions": False,  # nothing is fetched from anywhere
    "autoload_known_extensions": False,
}


@dataclass(frozen=True, slots=True)
class Month:
    """What a file held: its bars, and whether there was nothing else in it."""

    bars: Bars
    is_whole: bool


class BarFiles:
    """Reads and writes them, on any thread."""

    def __init__(self) -> None:
        self._engine = duckdb.connect(config=_OPTIONS)
        # A connection that is busy on another thread refuses to make a cursor, and to close while a cursor of it is.
        self._turn = Condition()
        self._busy = 0

    def close(self) -> None:
        """Let go of it once nothing is read or written any more; nobody begins to, since its adapter closes too."""
        with self._turn:
            self._turn.wait_for(lambda: not self._busy)
            self._engine.close()

    def read(self, path: Path, begins_s: int, ends_s: int) -> Month:
        """What a file holds of a month; FileNotFoundError where it is gone."""
        with self._cursor(path) as cursor:
            named = [_literal(path)]
            found = cursor.execute(_READ, named).fetchnumpy()
            shape = tuple(column[0] for column in cursor.execute(_SHAPE, named).fetchall())
        opened_us = np.asarray(found["time"], dtype=np.int64)
        figures = [np.ma.filled(np.ma.asarray(found[name], dtype=np.float64), np.nan) for name in COLUMNS]
        bars = Bars.of(opened_us // 1_000_000, *figures)
        sound = (opened_us % 1_000_000 == 0) & (bars.time >= begins_s) & (bars.time < ends_s)
        for wrong in faults(bars, MINUTE).values():
            sound &= ~wrong
        if not sound.all():
            bars = Bars(*(column[sound] for column in bars.columns()))
        bars = settled(bars)
        return Month(bars, is_whole=len(bars) == len(opened_us) and shape == ("time", *COLUMNS))

    def write(self, path: Path, bars: Bars) -> None:
        """Make a file of these bars, on the disk when this returns."""
        with self._cursor(path) as cursor:
            cursor.register("bars", dict(zip(("time", *COLUMNS), bars.columns(), strict=True)))
            cursor.execute(_WRITE.format(os.fspath(path).replace("'", "''")))
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    @contextmanager
    def _cursor(self, path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
        """One of its own, for a connection serves one thread at a time. Its errors, in our words."""
        with self._turn:
            cursor = self._engine.cursor()
            self._busy += 1
        try:
            yield cursor
        except duckdb.Error as error:
            _explain(path)
            raise QueryFailed(
                f"{path.name} is damaged, or no Parquet file with the columns time, {', '.join(COLUMNS)}; "
                "move it away, or put a sound copy in its place",
                source=SOURCE,
                file=path.name,
            ) from error
        finally:
            with self._turn:
                cursor.close()
                self._busy -= 1
                self._turn.notify_all()


def _literal(path: Path) -> str:
    """A path in which nothing stands for several: DuckDB takes patterns."""
    return re.sub(r"([*?\[])", r"[\1]", os.fspath(path))


def _explain(path: Path) -> None:
    """Say what keeps a file from being opened, where the system knows; DuckDB has one error for all of it."""
    try:
        with path.open("rb"):
            pass
    except FileNotFoundError:
        raise
    except OSError as error:
        raise Unreachable(f"No connection to the bars: {path.name} may not be opened", source=SOURCE) from error
