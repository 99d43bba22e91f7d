"""The process's own two descriptors as asyncio transports.

Pipes and sockets are served by the event loop. Anything else (a terminal, a regular file, /dev/null), and any platform
without pipes, is served by one daemon thread each way, so that no terminal we share is ever made non-blocking.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import stat
import sys
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["claimed", "open_reader", "open_writer"]

CHUNK_BYTES = 64 * 1024


@contextlib.contextmanager
def claimed(stdin_fd: int, stdout_fd: int) -> Iterator[tuple[int, int]]:
    """Private copies of the two descriptors, while the originals lead nowhere and to stderr.

    So a stray print or a child process reads nothing and writes nothing on the wire. On exit the copies get back the
    blocking mode they came with, since a shell or a parent may hold the same open file.
    """
    copies = _copy_above_standard(stdin_fd), _copy_above_standard(stdout_fd)
    modes = [os.get_blocking(copy) for copy in copies]
    _divert(stdin_fd, stdout_fd)
    try:
        yield copies
    finally:
        for copy, blocking in zip(copies, modes, strict=True):
            os.set_blocking(copy, blocking)
        # Not closed: a thread may still be blocked on one of them, and the process is about to end.


def _copy_above_standard(fd: int) -> int:
    copy = os.dup(fd)
    if copy > 2:  # whoever started us may have closed one of 0, 1 and 2
        return copy
    try:
        return _copy_above_standard(copy)
    finally:
        os.close(copy)


def _divert(stdin_fd: int, stdout_fd: int) -> None:
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, stdin_fd)
    try:
        os.dup2(2, stdout_fd)
    except OSError:  # no stderr
        os.dup2(nowhere, stdout_fd)
    os.close(nowhere)


async def open_reader(fd: int, protocol: asyncio.Protocol, *, apart_from: int) -> asyncio.ReadTransport:
    """Feed the protocol from a descriptor; `apart_from` is the one that is written."""
    if _fit_for_the_loop(fd, apart_from):
        file = os.fdopen(fd, "rb", buffering=0, closefd=False)
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, file)
        return transport
    return _ThreadReader(fd, protocol)


async def open_writer(fd: int, protocol: asyncio.BaseProtocol, *, apart_from: int) -> asyncio.WriteTransport:
    """Write to a descriptor, pausing the protocol when the other side does not keep up."""
    if _fit_for_the_loop(fd, apart_from):
        file = os.fdopen(fd, "wb", buffering=0, closefd=False)
        transport, _ = await asyncio.get_running_loop().connect_write_pipe(lambda: protocol, file)
        return transport
    return _ThreadWriter(fd, protocol)


def _fit_for_the_loop(fd: int, other: int) -> bool:
    mode = os.fstat(fd).st_mode
    if sys.platform == "win32" or not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
        return False
    # One socket both ways (inetd): asyncio takes input on a write pipe for the client's farewell.
    # One pipe for output and log (2>&1): made non-blocking it would make logging fail when full.
    return not (_one_file(fd, other) or _one_file(fd, 2))


def _one_file(fd: int, other: int) -> bool:
    try:
        return os.path.sameopenfile(fd, other)
    except OSError:  # closed
        return False


class _ThreadReader(asyncio.ReadTransport):
    """Reads in a thread, one chunk at a time, the next only when the protocol has taken the last."""

    def __init__(self, fd: int, protocol: asyncio.Protocol) -> None:
        super().__init__()
        self._fd = fd
        self._protocol = protocol
        self._loop = asyncio.get_running_loop()
        self._wanted = threading.Event()
        self._paused = self._closed = False
        self._wanted.set()
        protocol.connection_made(self)
        threading.Thread(target=self._read, name="stdin", daemon=True).start()

    def pause_reading(self) -> None:
        self._paused = True

    def resume_reading(self) -> None:
        self._paused = False
        self._wanted.set()

    def close(self) -> None:
        self._closed = True

    def _read(self) -> None:
        chunk = b"?"
        while chunk and not self._closed:
            self._wanted.wait()
            self._wanted.clear()
            try:
                chunk = os.read(self._fd, CHUNK_BYTES)
            except OSError:  # a terminal that has gone
                chunk = b""
            with contextlib.suppress(RuntimeError):  # the loop has gone
                self._loop.call_soon_threadsafe(self._deliver, chunk)

    def _deliver(self, chunk: bytes) -> None:
        if self._closed:
            return
        if not chunk:
            self._protocol.eof_received()
            return
        self._protocol.data_received(chunk)
        if not self._paused:
            self._wanted.set()


class _ThreadWriter(asyncio.WriteTransport):
    """Writes in a thread, in order; pauses the protocol from the high-water mark until nothing waits."""

    def __init__(self, fd: int, protocol: asyncio.BaseProtocol) -> None:
        super().__init__()
        self._fd = fd
        self._protocol = protocol
        self._loop = asyncio.get_running_loop()
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._waiting_bytes = 0
        self._high_bytes = CHUNK_BYTES
        self._paused = False
        protocol.connection_made(self)
        threading.Thread(target=self._write, name="stdout", daemon=True).start()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._waiting_bytes += len(data)
        self._lines.put(bytes(data))
        self._pause_when_high()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high_bytes = CHUNK_BYTES if high is None else high
        self._pause_when_high()

    def _pause_when_high(self) -> None:
        if self._waiting_bytes > self._high_bytes and not self._paused:
            self._paused = True
            self._protocol.pause_writing()

    def abort(self) -> None:
        self._lines.put(None)

    def is_closing(self) -> bool:
        """Never: a second end in the queue is not read."""
        return False

    def _write(self) -> None:
        fault: OSError | None = None
        try:
            while (line := self._lines.get()) is not None:
                self._write_whole(line)
                self._loop.call_soon_threadsafe(self._written, len(line))
        except OSError as e:
            fault = e
        except RuntimeError:  # the loop has gone
            return
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._lost, fault)

    def _write_whole(self, line: bytes) -> None:
        view = memoryview(line)
        while view:
            view = view[os.write(self._fd, view) :]

    def _written(self, size: int) -> None:
        self._waiting_bytes -= size
        if self._paused and not self._waiting_bytes:
            self._paused = False
            self._protocol.resume_writing()

    def _lost(self, fault: OSError | None) -> None:
        self._protocol.connection_lost(fault)
