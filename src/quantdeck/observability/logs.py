"""Where log lines go: structured, through a bounded queue, from a thread of their own.

An stderr that nobody reads fills its pipe; that must not stop the server. What does not fit is
dropped and counted.
"""

from __future__ import annotations

import logging
import os
import threading
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import orjson

__all__ = ["LineWriter", "configure", "emit"]

_REST_S = 0.02


class LineWriter:
    """Writes lines to a file descriptor. Never blocks its caller and never raises.

    The thread takes what has come and then rests a moment: woken for each line, it would cost its caller an eighth of
    a quick call.
    """

    def __init__(self, fd: int, *, max_lines: int = 10_000) -> None:
        self._fd = fd
        self._lines: deque[bytes | Mapping[str, Any]] = deque()
        self._in_hand = 0  # lines that the thread has taken and not written yet
        self._max_lines = max_lines
        self._some = threading.Event()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self.dropped = 0

    def write(self, line: bytes | Mapping[str, Any]) -> None:
        """Queue one line, newline included, or what is to become one; it must not change any more."""
        if len(self._lines) + self._in_hand >= self._max_lines:
            self.dropped += 1
            return
        self._lines.append(line)
        if not self._some.is_set():
            self._some.set()
        if self._thread is None:
            self._start()

    def close(self, wait_s: float = 1.0) -> None:
        """Give the thread a moment for what is queued; a full pipe is left as it is."""
        if self._thread is not None:
            self._closing.set()
            self._some.set()
            self._thread.join(wait_s)

    def _start(self) -> None:
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="quantdeck-log", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while self._some.wait():
            self._some.clear()
            while self._lines:
                self._write_what_has_come()
            if self._closing.wait(_REST_S) and not self._lines:
                return

    def _write_what_has_come(self) -> None:
        self._in_hand = len(self._lines)
        taken = [self._lines.popleft() for _ in range(self._in_hand)]
        with suppress(OSError):
            rest = memoryview(b"".join(map(_line, taken)))
            while rest:
                rest = rest[os.write(self._fd, rest) :]
        self._in_hand = 0


def _line(told: bytes | Mapping[str, Any]) -> bytes:
    if isinstance(told, bytes):
        return told
    try:
        return orjson.dumps(told, _said, orjson.OPT_NON_STR_KEYS | orjson.OPT_APPEND_NEWLINE)
    except orjson.JSONEncodeError:
        return b""  # a log line must never be the reason for a failure


class _ToWriter(logging.Handler):
    """Every logger of the process, ours, the SDK's and uvicorn's, as one JSON object a line."""

    def emit(self, record: logging.LogRecord) -> None:
        with suppress(Exception):  # a log line must never be the reason for a failure
            line: dict[str, Any] = {
                "timestamp": datetime.fromtimestamp(record.created, UTC),
                "level": record.levelname.lower(),
                "logger": record.name,
                "event": record.getMessage(),
                **getattr(record, "fields", {}),
            }
            if record.exc_info:
                line["exception"] = logging.Formatter().formatException(record.exc_info)
            _write(line)


_writer: LineWriter | None = None
_events = False


def configure(writer: LineWriter, level: str = "info") -> None:
    """Send every log line of this process to `writer`."""
    global _writer, _events
    number = logging.getLevelNamesMapping()[level.upper()]
    _writer, _events = writer, number <= logging.INFO
    logging.basicConfig(level=number, handlers=[_ToWriter()], force=True)


def emit(event: Mapping[str, Any]) -> None:
    """One call's event. Past the logging machinery, which costs more than many a call."""
    if _events:
        _write({"timestamp": datetime.now(UTC), "level": "info", "event": "call", **event})


def _write(line: Mapping[str, Any]) -> None:
    if _writer is not None:
        _writer.write(line)


def _said(value: Any) -> str:
    """An exception with what lies beneath it, down to the driver's own words; they go to the log only."""
    cause = value.__cause__ if isinstance(value, BaseException) else None
    return str(value) if cause is None else f"{value} <- {type(cause).__name__}: {_said(cause)}"
