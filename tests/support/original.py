"""A log in the schema of the program that the event spec was written for, made from one of ours."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

from quantdeck.domain.event_times import text
from quantdeck.domain.event_types import CATEGORIES, EVENT_TYPES, SEVERITIES
from quantdeck.events.ids import guid_text

__all__ = ["SCHEMA", "UNCHECKED", "as_original"]

SCHEMA = """
    CREATE TABLE BacktestRuns (
        Id TEXT PRIMARY KEY, StartTime TEXT NOT NULL, EndTime TEXT NOT NULL, StrategyConfigHash TEXT NOT NULL,
        CreatedAt TEXT NOT NULL DEFAULT (datetime('now'))
    );
    CREATE TABLE Events (
        Id INTEGER PRIMARY KEY AUTOINCREMENT, EventId TEXT NOT NULL UNIQUE, RunId TEXT NOT NULL,
        Timestamp TEXT NOT NULL, EventType TEXT NOT NULL, Severity TEXT NOT NULL, Category TEXT NOT NULL,
        Properties TEXT NOT NULL, ParentEventId TEXT, ValidationErrors TEXT,
        FOREIGN KEY (RunId) REFERENCES BacktestRuns (Id) ON DELETE CASCADE,
        CHECK (json_valid(Properties)), CHECK (ValidationErrors IS NULL OR json_valid(ValidationErrors))
    );
"""
UNCHECKED = re.sub(r",\s*CHECK \(.*\)\n", "\n", SCHEMA)
"""The same without what keeps texts that are no JSON out."""


def as_original(ours: Path, theirs: Path) -> Path:
    """The same runs and events."""
    source, target = sqlite3.connect(ours), sqlite3.connect(theirs)
    target.executescript(SCHEMA)
    runs = {}
    for run, run_id, config, started, ended, created in source.execute(
        "SELECT run, run_id, config_hash, started, ended, created FROM runs"
    ):
        runs[run] = guid_text(run_id)
        told = (runs[run], text(started or 0), text(ended or 0), config, text(created))
        target.execute("INSERT INTO BacktestRuns VALUES (?, ?, ?, ?, ?)", told)
    rows = source.execute(
        "SELECT event_id, run, at, type, severity, category, properties, parent, errors FROM events ORDER BY id"
    )
    target.executemany(
        "INSERT INTO Events (EventId, RunId, Timestamp, EventType, Severity, Category, Properties, ParentEventId,"
        " ValidationErrors) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            (guid_text(own), runs[run], text(at), EVENT_TYPES[kind], SEVERITIES[severity], CATEGORIES[category],
             properties, parent and guid_text(parent), errors)
            for own, run, at, kind, severity, category, properties, parent, errors in rows
        ),
    )  # fmt: skip
    target.commit()
    source.close()
    target.close()
    return theirs
