"""Where log lines go: structured, through a bounded queue, from a thread of their own.

An stderr that nobody reads fills its pipe; that must not stop the server. What does not fit is
dropped and counted.
"""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import threading
from collections.abc import MutableMapping
from datetime import UTC, datetime
from typing import Any

import orjson
import structlog

__all__ = ["LineWriter", "configure"]


class LineWriter:
    """Writes lines to a file descriptor. Never blocks its caller and never raises."""

    def __init__(self, fd: int, *, max_lines: int = 10_000) -> None:
        self._fd = fd
        self._lines: queue.Queue[bytes | None] = queue.Queue(max_lines)
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self.dropped = 0

    def write(self, line: bytes) -> None:
        """Queue one line, newline included."""
        if self._thread is None:
            self._start()
        try:
            self._lines.put_nowait(line)
        except queue.Full:
            self.dropped += 1

    def close(self, wait_s: float = 1.0) -> None:
        """Give the thread a moment for what is queued; a full pipe is left as it is."""
        if self._thread is not None:
            with contextlib.suppress(queue.Full):
                self._lines.put_nowait(None)
            self._thread.join(wait_s)

    def _start(self) -> None:
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="quantdeck-log", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while (line := self._lines.get()) is not None:
            with contextlib.suppress(OSError):
                rest = memoryview(line)
                while rest:
                    rest = rest[os.write(self._fd, rest) :]


class _ToWriter(logging.Handler):
    """The standard library's loggers (the SDK's, uvicorn's) take the same way."""

    def __init__(self, writer: LineWriter) -> None:
        super().__init__()
        self._writer = writer

    def emit(self, record: logging.LogRecord) -> None:
        with contextlib.suppress(Exception):  # a log line must never be the reason for a failure
            line: dict[str, Any] = {
                "timestamp": datetime.fromtimestamp(record.created, UTC).isoformat(),
                "level": record.levelname.lower(),
                "logger": record.name,
                "event": record.getMessage(),
            }
            if record.exc_info:
                line["exception"] = logging.Formatter().formatException(record.exc_info)
            self._writer.write(orjson.dumps(line) + b"\n")


def configure(writer: LineWriter, level: str = "info") -> None:
    """Send every log line of this process to `writer`."""
    number = logging.getLevelNamesMapping()[level.upper()]

    def render(_: Any, __: str, line: MutableMapping[str, Any]) -> str:
        writer.write(orjson.dumps(line, default=str, option=orjson.OPT_NON_STR_KEYS) + b"\n")
        raise structlog.DropEvent

    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            render,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        cache_logger_on_first_use=True,
    )
    logging.basicConfig(level=number, handlers=[_ToWriter(writer)], force=True)
