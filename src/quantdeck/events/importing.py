"""Lines of JSON become a run: the original's debug export, events as the contract has them, and our own export.

A file is read a line at a time. How far it has come is written with each batch of its events, so that an import that
was broken off goes on where it stopped, and one that is done is not done again.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import sqlite3
from codecs import BOM_UTF8
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO
from uuid import NAMESPACE_URL, uuid5

import orjson

from quantdeck.domain.event_aliases import UnknownLineError, moment, of_export, spelt
from quantdeck.domain.event_types import EVENT_TYPES
from quantdeck.events.ids import guid_bytes
from quantdeck.events.log import EventLog
from quantdeck.events.row import Given
from quantdeck.events.run import Run

__all__ = ["FORMAT", "Imported", "import_lines", "made_up"]

FORMAT = "quantdeck.events.1"
"""What the first line of our own export says that the rest is."""

_LONG_NUMBER = re.compile(rb"\d(?:\.?\d){15}")
_BATCH = 5_000
_EDGE_BYTES = 2**20
_FIND = """
    SELECT i.position, i.lines, i.rejected, i.done, r.run_id FROM imports i JOIN runs r ON r.run = i.run
    WHERE i.source = ?
"""
_SECURITIES = "SELECT min(symbol), max(symbol) FROM events WHERE run = ? AND symbol <> '' HAVING count(*) > 0"
_EMPTY = "SELECT run FROM runs r WHERE run_id = ? AND NOT EXISTS (SELECT 1 FROM events e WHERE e.run = r.run)"
_KEEP = """
    INSERT INTO imports (source, run, position, lines, rejected, done) VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT (source) DO UPDATE SET
        position = excluded.position, lines = excluded.lines, rejected = excluded.rejected, done = excluded.done
"""


@dataclass(slots=True)
class Imported:
    """What has become of a file."""

    run_id: str
    lines: int = 0
    rejected: int = 0
    position: int = 0
    resumed: bool = False
    taken: int = 0  # lines of this attempt
    done: bool = False


@dataclass(slots=True)
class _Reading:
    """What is known while the lines go by."""

    symbol: str | None
    ours: bool = False  # the file is our own export: its properties are as they should be
    securities: set[str] = field(default_factory=set)

    @property
    def security(self) -> str | None:
        """Of lines that do not tell theirs: what was said, or the only one that there has been."""
        return self.symbol or (next(iter(self.securities)) if len(self.securities) == 1 else None)


def import_lines(
    log: EventLog,
    path: Path,
    rejects: Path,
    *,
    strategy: str | None = None,
    run_id: str | None = None,
    symbol: str | None = None,
    progress: Callable[[int, int], None] = lambda _done, _size: None,
) -> Imported:
    """Import a file into a run of its own. Lines of which no event can be made are written to `rejects` with why."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        source = _fingerprint(file, size)
        first = _header(file)
        found = _begun(log, source)
        if found is not None and found.done:
            return found
        if found is None:
            found = Imported(run_id or str(first.get("id") or uuid5(NAMESPACE_URL, f"quantdeck import {source}")))
            run = _new_run(log, found.run_id, first, strategy)
        else:
            run = log.rejoin(found.run_id)
        reading = _Reading(symbol, ours=first.get("format") == FORMAT)
        reading.securities.update(log.query(_SECURITIES, run.key) or ())
        _Importing(log, run, source, file, rejects, found, reading, progress, size).go()
    return found


def made_up(path: Path) -> bool:
    """Whether a file says of itself that it comes out of a demo world."""
    with path.open("rb") as file:
        return bool(_header(file).get("source") == "demo")


class _Importing:
    def __init__(
        self,
        log: EventLog,
        run: Run,
        source: str,
        file: BinaryIO,
        rejects: Path,
        found: Imported,
        reading: _Reading,
        progress: Callable[[int, int], None],
        size: int,
    ) -> None:
        self._log, self._run, self._source, self._file = log, run, source, file
        self._rejects, self._found, self._reading = rejects, found, reading
        self._progress, self._size = progress, size
        self._refused: list[bytes] = []

    def go(self) -> None:
        found = self._found
        _cut(self._rejects, found.rejected)
        self._file.seek(found.position)
        for line in self._file:
            found.lines += 1
            found.taken += 1
            found.position += len(line)
            self._take(line)
            if found.lines % _BATCH == 0:
                self._keep()
        found.done = True
        self._keep()
        self._run.finish()

    def _take(self, line: bytes) -> None:
        if not line.strip():
            return
        try:
            given = _event(line, self._run.id, self._reading)
        except UnknownLineError as error:
            self._found.rejected += 1
            told = {
                "line": self._found.lines,
                "why": str(error),
                "text": line[:10_000].decode(errors="replace").rstrip(),
            }
            self._refused.append(orjson.dumps(told) + b"\n")
            return
        if given is not None:
            self._run.take(given)

    def _keep(self) -> None:
        found = self._found
        if self._refused:
            with self._rejects.open("ab") as file:
                file.writelines(self._refused)
            self._refused.clear()

        def so_far(connection: sqlite3.Connection) -> None:
            told = (self._source, self._run.key, found.position, found.lines, found.rejected, found.done)
            connection.execute(_KEEP, told)

        self._log.flush(so_far)
        self._progress(found.position, self._size)


def _fingerprint(file: BinaryIO, size: int) -> str:
    """By which a file is known again: its size and both its ends."""
    digest = sha256(f"{size}\n".encode())
    digest.update(file.read(_EDGE_BYTES))
    file.seek(max(0, size - _EDGE_BYTES))
    digest.update(file.read(_EDGE_BYTES))
    file.seek(0)
    return digest.hexdigest()


def _header(file: BinaryIO) -> dict[str, Any]:
    """What the first line says of the run, where it is of our own export; nothing otherwise."""
    try:
        read = _loads(file.readline(_EDGE_BYTES))
    except ValueError:
        read = None
    file.seek(0)
    told = read.get("run") if isinstance(read, dict) else None
    return told if isinstance(told, dict) else {}


def _begun(log: EventLog, source: str) -> Imported | None:
    row = log.query(_FIND, source)
    if row is None:
        return None
    position, lines, rejected, done, run_id = row
    return Imported(run_id, lines, rejected, position, resumed=True, done=bool(done))


def _new_run(log: EventLog, run_id: str, first: Mapping[str, Any], strategy: str | None) -> Run:
    if log.query(_EMPTY, guid_bytes(run_id)) is not None:  # of an import that got no further
        return log.rejoin(run_id)
    parameters = first.get("parameters")
    return log.run(
        strategy or first.get("strategy"),
        parameters if isinstance(parameters, dict) else None,
        run_id=run_id,
        start=first.get("startTime"),
        end=first.get("endTime"),
        config_hash=first.get("strategyConfigHash"),
        created_at=first.get("createdAt"),
        guids=False,
    )


def _event(line: bytes, run_id: str, reading: _Reading) -> Given | None:
    """None for the line that tells of the run itself."""
    try:
        read = _loads(line)
    except ValueError as error:
        raise UnknownLineError(f"not JSON: {error}") from None
    if not isinstance(read, dict):
        raise UnknownLineError("not a JSON object")
    if isinstance(read.get("run"), dict):
        return None
    if isinstance(read.get("type"), str) and isinstance(read.get("data"), dict):
        alias = of_export(read["type"], read["data"], run_id, reading.security)
        if isinstance(symbol := alias.properties.get("SecuritySymbol"), str):
            reading.securities.add(symbol)
        return Given(alias.kind, alias.at, alias.properties, None, alias.severity, alias.category)
    told = {name[:1].lower() + name[1:]: value for name, value in read.items()}
    if "eventType" not in told:
        raise UnknownLineError("neither a `type` with `data` nor an `eventType`")
    return _given(told, reading)


def _given(told: Mapping[str, Any], reading: _Reading) -> Given:
    """An event as the contract has it, or as the original's logger wrote it into its table."""
    properties, errors = _read(told.get("properties")), _read(told.get("validationErrors"))
    at: Any = told.get("timestamp")
    if isinstance(properties, dict) and not reading.ours:
        if "time" in properties:  # the simulated time; `timestamp` is when it was logged
            at = moment(properties.pop("time")) or at
        properties = spelt(properties)
        if told["eventType"] in EVENT_TYPES and reading.symbol is not None:
            properties.setdefault("SecuritySymbol", reading.symbol)
    return Given(
        told["eventType"],
        moment(at) if isinstance(at, (int, float)) else at,
        properties,
        told.get("parentEventId"),
        told.get("severity"),
        told.get("category"),
        told.get("eventId"),
        [entry for entry in errors if isinstance(entry, dict)] if isinstance(errors, list) else None,
        reading.ours,
    )


def _read(told: Any) -> Any:
    """A column of JSON comes as text."""
    if isinstance(told, str):
        try:
            return _loads(told.encode(errors="surrogatepass"))
        except ValueError:
            return told
    return told


def _loads(line: bytes) -> Any:
    """JSON, with decimals where floats have too few digits. A mark of UTF-8 before it is no part of it."""
    line = line.removeprefix(BOM_UTF8)
    read = orjson.loads(line)
    if _LONG_NUMBER.search(line):
        with contextlib.suppress(RecursionError):  # it stops a little earlier
            return json.loads(line, parse_float=Decimal)
    return read


def _cut(rejects: Path, lines: int) -> None:
    """Leave of an earlier attempt's rejects those that were counted: the rest comes again."""
    if not rejects.exists():
        return
    kept = rejects.read_bytes().splitlines(keepends=True)[:lines]
    if kept:
        rejects.write_bytes(b"".join(kept))
    else:
        rejects.unlink()
