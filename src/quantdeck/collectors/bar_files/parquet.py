"""Parquet files, read and written by DuckDB in memory. It is an extra: import this module by `extras.load`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

from quantdeck.collectors.bar_files import FileProblem
from quantdeck.collectors.bar_files.rows import Batch
from quantdeck.domain.candles import Bars

__all__ = ["opened", "write"]

_WRITE = """
    COPY (SELECT to_timestamp(time) AS time, open, high, low, close, volume, ? AS symbol FROM bars ORDER BY time)
    TO '{}' (FORMAT parquet, COMPRESSION zstd)
"""


@contextmanager
def opened(path: Path, at_once: int) -> Iterator[tuple[list[str], Iterator[Batch], Callable[[], float]]]:
    """The names of its columns, its rows as text, and how far they have been read."""
    with duckdb.connect(config={"threads": 1}) as engine:
        try:
            columns = engine.execute("DESCRIBE SELECT * FROM read_parquet(?)", [str(path)]).fetchall()
            (total,) = engine.execute("SELECT count(*) FROM read_parquet(?)", [str(path)]).fetchone() or (0,)
            cells = ", ".join(_as_text(column[0], column[1]) for column in columns)
            engine.execute("SET TimeZone = 'UTC'")
            engine.execute(f"SELECT {cells} FROM read_parquet(?)", [str(path)])  # noqa: S608 - names quoted below
        except duckdb.Error as error:
            raise FileProblem("is no Parquet file that can be read, or it is damaged") from error
        done = 0

        def batches() -> Iterator[Batch]:
            nonlocal done
            while rows := _fetched(engine, at_once):
                numbers = range(done + 1, done + 1 + len(rows))
                done += len(rows)
                columns = list(zip(*rows, strict=True))
                yield Batch(numbers, rows, columns)

        yield [column[0] for column in columns], batches(), lambda: done / total if total else 1.0


def _fetched(engine: duckdb.DuckDBPyConnection, at_once: int) -> list[tuple[str, ...]]:
    try:
        return engine.fetchmany(at_once)
    except duckdb.Error as error:
        raise FileProblem("is damaged: not all of its rows can be read") from error


def _as_text(name: str, kind: str) -> str:
    """A column as text that the reader of CSV understands; nothing is lost but what it would refuse."""
    quoted = '"' + name.replace('"', '""') + '"'
    if kind == "TIMESTAMP WITH TIME ZONE":  # whole seconds only, else the fraction is shown and refused
        return f"COALESCE(strftime({quoted} AT TIME ZONE 'UTC', '%Y-%m-%dT%H:%M:%S.%f+00:00'), '')"
    return f"COALESCE(CAST({quoted} AS VARCHAR), '')"


def write(path: Path, symbol: str, bars: Bars) -> None:
    """One series into one file."""
    names = ("time", "open", "high", "low", "close", "volume")
    with duckdb.connect() as engine:
        engine.register("bars", dict(zip(names, bars.columns(), strict=True)))
        engine.execute(_WRITE.format(str(path).replace("'", "''")), [symbol])
