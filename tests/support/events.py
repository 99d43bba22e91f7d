"""What tests of event logs share: a time, ids, and a run that is written in a few lines."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from quantdeck.events import EventLog, Run
from tests.support.desk import NOON, uid

__all__ = ["DAY_ONE", "KNOWN", "RUN", "at", "begin", "guid"]

DAY_ONE = datetime(2025, 1, 1, tzinfo=UTC)
"""Where simulated time begins."""
KNOWN = NOON - timedelta(days=1)
"""When the runs of tests became known; they ask at NOON."""
RUN = uid("run")

guid = uid


def at(hours: float = 0.0) -> datetime:
    """So long after simulated time began."""
    return DAY_ONE + timedelta(hours=hours)


@contextmanager
def begin(path: Path, name: str = "run", **said: Any) -> Iterator[Run]:
    """A run in the log at this path; both are closed in the end."""
    told = {"run_id": uid(name), "created_at": KNOWN, "start": at(), "end": at(24 * 365), **said}
    with EventLog.open(path) as log, log.run(**told) as run:
        yield run
