"""What our log is held against: the original's schema and SQL without indexes, and rows written by the bare driver."""

import sqlite3
from contextlib import closing
from pathlib import Path
from time import perf_counter

from benchmarks.event_rows import RUN
from quantdeck.events.schema import statements
from tests.support.original import as_original

_AGGREGATE = """
    SELECT COUNT(*), AVG(CAST(json_extract(Properties, '$.Value') AS REAL)),
        MIN(CAST(json_extract(Properties, '$.Value') AS REAL)), MAX(CAST(json_extract(Properties, '$.Value') AS REAL))
    FROM Events WHERE RunId = ? AND EventType = 'IndicatorCalculation'
        AND Timestamp BETWEEN '0000' AND '9999'
"""
_ROOTS = "SELECT EventId FROM Events WHERE RunId = ? AND EventType = 'TradeExecution'"
_LACKS = """
    SELECT NOT EXISTS (
        SELECT 1 FROM Events c WHERE c.ParentEventId = ? AND c.RunId = ? AND c.EventType = 'PositionUpdate'
    )
"""
_SAMPLE = 100
_ROWS = "SELECT event_id, run, at, type, severity, category, properties, parent, errors FROM events ORDER BY id"
_INSERT = """
    INSERT INTO events (event_id, run, at, type, severity, category, properties, parent, errors)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
"""


def original(ours: Path, folder: Path) -> dict[str, float]:
    """Seconds of the original's aggregate and of its search for incomplete sequences, scaled up from some roots."""
    with closing(sqlite3.connect(as_original(ours, folder / "original.db"))) as connection:
        begun = perf_counter()
        connection.execute(_AGGREGATE, (RUN,)).fetchone()
        aggregated = perf_counter() - begun
        roots = connection.execute(_ROOTS, (RUN,)).fetchall()
        begun = perf_counter()
        for (root,) in roots[:: max(1, len(roots) // _SAMPLE)][:_SAMPLE]:
            connection.execute(_LACKS, (root, RUN)).fetchone()
        searched = (perf_counter() - begun) / _SAMPLE * len(roots)
    return {"aggregate": aggregated, "incomplete": searched}


def bare(ours: Path, target: Path, batch: int = 1000) -> float:
    """Seconds in which the bare driver writes the same rows into the same schema, in batches of the same size."""
    with closing(sqlite3.connect(ours)) as source:
        rows = source.execute(_ROWS).fetchall()
        run = source.execute("SELECT * FROM runs").fetchone()
    with closing(sqlite3.connect(target, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        for statement in statements():
            connection.execute(statement)
        connection.execute(f"INSERT INTO runs VALUES ({', '.join('?' * len(run))})", run)  # noqa: S608 - marks only
        begun = perf_counter()
        for place in range(0, len(rows), batch):
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(_INSERT, rows[place : place + batch])
            connection.execute("COMMIT")
        return perf_counter() - begun
