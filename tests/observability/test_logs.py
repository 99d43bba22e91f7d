"""Log lines go to a thread of their own: nobody who reads them, or does not, can stop the server."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator

import orjson
import pytest

from quantdeck.observability import logs
from quantdeck.observability.logs import LineWriter, configure


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for end in ends:
        try:
            os.close(end)
        except OSError:  # the test has closed it
            continue


@pytest.fixture
def configured(pipe) -> Iterator[LineWriter]:
    """This process's log, written into a pipe; put back as it was in the end."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    state = logs._writer, logs._events
    writer = LineWriter(pipe[1])
    configure(writer)
    yield writer
    root.handlers[:], root.level = handlers, level
    logs._writer, logs._events = state


def lines(pipe: tuple[int, int], writer: LineWriter) -> list[bytes]:
    writer.close(wait_s=10)
    os.close(pipe[1])
    with os.fdopen(os.dup(pipe[0]), "rb") as reader:
        return reader.read().splitlines()


def test_lines_arrive_in_order(pipe):
    writer = LineWriter(pipe[1])
    for number in range(100):
        writer.write(b"%d\n" % number)
    assert lines(pipe, writer) == [b"%d" % number for number in range(100)]
    assert writer.dropped == 0


def test_a_full_pipe_that_nobody_reads_never_blocks_and_what_is_lost_is_counted(pipe):
    writer = LineWriter(pipe[1], max_lines=10)
    line = b"x" * 65_536 + b"\n"  # one fills the pipe
    for _ in range(1000):
        writer.write(line)
    assert writer.dropped == 1000 - 10
    writer.close(wait_s=0.01)  # does not wait for a pipe that stays full
    os.close(pipe[0])
    while writer._thread is not None and writer._thread.is_alive():  # or it would write to whoever gets the number next
        writer.close(wait_s=0.05)


def test_a_reader_that_went_away_stops_nothing(pipe):
    writer = LineWriter(pipe[1])
    os.close(pipe[0])
    for _ in range(10):
        writer.write(b"line\n")
    writer.close(wait_s=10)
    assert writer.dropped == 0


def test_closing_a_writer_that_never_wrote_is_nothing(pipe):
    LineWriter(pipe[1]).close()


def test_no_thread_is_started_before_the_first_line(pipe):
    writer = LineWriter(pipe[1])
    assert writer._thread is None
    writer.write(b"line\n")
    assert writer._thread is not None
    assert writer._thread.daemon, "a full pipe must not keep the process from ending"
    writer.close(wait_s=10)


def test_every_logger_of_the_process_takes_the_same_way(pipe, configured):
    logging.getLogger("some.library").warning("odd: %s", "thing")
    logging.getLogger("quantdeck.core.call").error("source_failed", extra={"fields": {"tool": "look"}})
    told = [orjson.loads(line) for line in lines(pipe, configured)]
    assert [line["event"] for line in told] == ["odd: thing", "source_failed"]
    assert [line["level"] for line in told] == ["warning", "error"]
    assert told[1]["tool"] == "look"
    assert all(line["timestamp"].endswith("+00:00") for line in told)


def test_an_exception_is_told_with_its_traceback(pipe, configured):
    error = ValueError("the reason")
    logging.getLogger("quantdeck").error("unexpected", exc_info=error)
    (line,) = lines(pipe, configured)
    assert "the reason" in orjson.loads(line)["exception"]


def test_a_failure_in_a_field_is_told_down_to_the_drivers_own_words(pipe, configured):
    failure = RuntimeError("The database does not answer.")
    failure.__cause__ = OSError("no route to db.internal")
    logging.getLogger("quantdeck").warning("source_failed", extra={"fields": {"why": failure}})
    (line,) = lines(pipe, configured)
    assert orjson.loads(line)["why"] == "The database does not answer. <- OSError: no route to db.internal"


def test_what_is_below_the_level_is_not_told(pipe, configured):
    logging.getLogger("quantdeck").debug("detail")
    assert lines(pipe, configured) == []
