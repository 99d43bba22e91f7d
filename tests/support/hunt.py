"""Hunts for Pyth's tokens in all that the suite brings forth, and fails the test in which one comes out.

A plugin, on in every run. Every token of the tests has MARK in it, and a real one that a live run is given is hunted by
itself. What is looked through: answers and errors, the exceptions that they come from, log records and log lines,
what a test prints, and what the processes print that it starts. Nothing is replaced: what is wrapped does what it did.
"""

from __future__ import annotations

import asyncio.subprocess
import logging
import os
import subprocess
from collections.abc import Callable, Generator
from functools import cached_property, wraps
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError

from quantdeck.core.errors import SourceError, ToolError
from quantdeck.core.wire import Answer
from quantdeck.observability.logs import LineWriter

__all__ = ["MARK", "look"]

MARK = "hunted-7f3a9c"
"""In every token that a test has for Pyth, whether a service knows it or not."""

_hunted = [token.encode() for token in (MARK, os.environ.get("PYTH_PRO_E2E_TOKEN", "").strip()) if token]
_found: list[str] = []


def look(where: str, *said: Any) -> None:
    """Take note if a token is in what was said."""
    for one in said:
        text = one if isinstance(one, bytes) else str(one).encode("utf-8", "replace")
        if any(token in text for token in _hunted):
            _found.append(where)


def _chain(error: BaseException | None) -> Generator[str, None, None]:
    while error is not None:
        yield f"{error!r} {error}"
        error = error.__cause__ or error.__context__


class _Records(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        fields = getattr(record, "fields", {})
        errors = (*fields.values(), (record.exc_info or (None, None))[1])
        chains = [text for one in errors if isinstance(one, BaseException) for text in _chain(one)]
        look(f"a log record of {record.name}", record.getMessage(), fields, *chains)


def _listened(kind: type, name: str, where: str, heard: Callable[..., tuple[Any, ...]]) -> None:
    """Have what `heard` picks out of a method's arguments looked through."""
    method = getattr(kind, name)

    @wraps(method)
    def listening(self: Any, *arguments: Any, **named: Any) -> Any:
        look(where, *heard(*arguments, **named))
        return method(self, *arguments, **named)

    setattr(kind, name, listening)


def _listen() -> None:
    told = Answer.__dict__["encoded"].func

    def encoded(self: Answer) -> bytes:
        body: bytes = told(self)
        look("an answer", body, self.text, self.meta, self.headers, self.raw)
        return body

    heard = cached_property(encoded)
    heard.__set_name__(Answer, "encoded")
    Answer.encoded = heard  # type: ignore[method-assign,assignment]

    def all_of_it(*arguments: Any, **named: Any) -> tuple[Any, ...]:
        return (*arguments, named)

    _listened(MCPError, "__init__", "a JSON-RPC error", all_of_it)
    _listened(ToolError, "__init__", "a tool's error", all_of_it)
    _listened(SourceError, "__init__", "a source's error", all_of_it)
    _listened(LineWriter, "write", "a log line", all_of_it)

    communicate = subprocess.Popen.communicate

    @wraps(communicate)
    def communicated(self: Any, *arguments: Any, **named: Any) -> Any:
        told = communicate(self, *arguments, **named)
        look("what a process printed", *told)
        return told

    subprocess.Popen.communicate = communicated  # type: ignore[method-assign]
    communicate_later = asyncio.subprocess.Process.communicate

    @wraps(communicate_later)
    async def communicated_later(self: Any, *arguments: Any, **named: Any) -> Any:
        told = await communicate_later(self, *arguments, **named)
        look("what a process printed", *told)
        return told

    asyncio.subprocess.Process.communicate = communicated_later  # type: ignore[method-assign]


_records = _Records()


def pytest_configure() -> None:
    _listen()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    logging.getLogger().addHandler(_records)  # again, where a test has had the program set up its log


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[Any]) -> Generator[None, Any, Any]:
    report = yield
    for title, text in report.sections:
        look(title, text)
    if _found and report.outcome == "passed":
        report.outcome = "failed"
        report.longrepr = f"a token of Pyth came out, in: {', '.join(sorted(set(_found)))}"
    if call.when == "teardown" or report.outcome == "failed":
        _found.clear()
    return report
