"""What an analysis does beside computing: it calls the server, and it writes to a console. Both are bounded here."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from quantdeck.sources.sandbox import MOST_CALLS, Ask, RefusedError, Report

__all__ = ["Calls", "Console", "shown"]

_METHODS = frozenset({"getSymbols", "getCandlestickData", "getHistoricalPrice", "getLatestPrice"})
_AT_ONCE = 4
_LONGEST_REPLY = 4 * 2**20
_LONGEST_CONSOLE = 65_536 + 1024
_MOST_LINES = 1_001

_CONTROL = {number: 0x2400 + number for number in range(32) if chr(number) not in "\t\n"} | {127: 0x2421}


def shown(text: str) -> str:
    """The code's own words with what moves a terminal's cursor made visible."""
    return text.translate(_CONTROL)


class Console:
    """Lines that the code has written. An engine leaves out what is too much; else the rest is lost here."""

    def __init__(self, lines: list[str]) -> None:
        self._lines, self._left = lines, _LONGEST_CONSOLE

    def write(self, line: str) -> None:
        if self._left > 0 and len(self._lines) < _MOST_LINES:
            self._lines.append(shown(line[: self._left]))
            self._left -= len(line) + 1


@dataclass
class Calls:
    """The code's calls to the server: counted, bounded, and timed while any is on its way."""

    ask: Ask
    report: Report
    _made: int = 0
    _running: int = 0
    _since: float = 0.0
    _slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE))

    async def __call__(self, method: str, arguments: Any) -> bytes:
        """The answer as JSON; RefusedError says what the code may know."""
        counts = self.report.calls
        self._made += 1
        if self._made > MOST_CALLS:
            counts["refused"] += 1
            raise RefusedError("limit", f"An analysis may make {MOST_CALLS} calls; ask for more in each.")
        if method not in _METHODS or not isinstance(arguments, list):
            counts["refused"] += 1
            raise RefusedError("invalid_input", "pyth has no such method, or takes no such arguments.")
        try:
            with self._timed():
                async with self._slots:
                    told = await self.ask(method, arguments)
        except RefusedError:
            counts["failed"] += 1
            raise
        if len(told) > _LONGEST_REPLY:
            counts["refused"] += 1
            raise RefusedError("limit", f"The answer is longer than {_LONGEST_REPLY} bytes; ask for less.")
        counts["ok"] += 1
        return told

    @contextmanager
    def _timed(self) -> Iterator[None]:
        if not self._running:
            self._since = time.perf_counter()
        self._running += 1
        try:
            yield
        finally:
            self._running -= 1
            if not self._running:
                self.report.host_wait_ms += (time.perf_counter() - self._since) * 1000
