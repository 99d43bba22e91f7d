"""The process of the service: its address, its options, and how it ends.

The first SIGTERM or SIGINT lets nothing more in and waits for what is being computed; a second one waits for nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import sys
from collections.abc import Callable, Iterator

import grpc
from grpc_health.v1 import health, health_pb2_grpc
from grpc_health.v1._async import HealthServicer
from grpc_health.v1.health_pb2 import HealthCheckResponse
from grpc_reflection.v1alpha import reflection

from quantdeck.backtesting.messages.peers import OURS
from quantdeck.backtesting.service.answering import NAME, Answering, Stored
from quantdeck.settings import Backtests, MisconfiguredError
from quantdeck.sources.backtester.inprocess import InProcess

__all__ = ["MESSAGE_BYTES", "serve"]

MESSAGE_BYTES = 64 * 2**20

_BESIDE = 64
"""Calls beside backtests that are let in at once: questions about health, reflection."""

_FLUSH_S = 0.5
"""For the last answers to leave; who watches the health of a service that ends is sent away after it."""

OPTIONS = [
    ("grpc.max_receive_message_length", MESSAGE_BYTES),
    ("grpc.max_send_message_length", MESSAGE_BYTES),
    # Clients may ask as often as they like whether we are there, also when they want nothing.
    ("grpc.http2.max_ping_strikes", 0),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 5_000),
    ("grpc.keepalive_permit_without_calls", 1),
    # A client that is gone without a word is found out, and its work ended.
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.http2.ping_timeout_ms", 10_000),  # or it would be a minute
    ("grpc.so_reuseport", 0),  # or two services share a port, and nobody is told
]


def _keep_memory() -> None:
    """Let the C library keep what messages took: to have it anew from the system costs half of a short backtest."""
    import ctypes

    with contextlib.suppress(OSError, AttributeError):  # another C library has no such thing
        for option in (_TRIM_THRESHOLD, _MMAP_THRESHOLD):
            ctypes.CDLL(None).mallopt(option, _KEPT_BYTES)


_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_KEPT_BYTES = 32 * 2**20


async def serve(host: str, port: int, settings: Backtests, stored: Stored) -> None:
    """Serve until a signal asks to stop. Raises MisconfiguredError where it cannot begin."""
    _check_free(host, port)
    _keep_memory()
    runner = InProcess(settings.processes)
    answering = Answering(runner, stored, settings.processes + settings.waiting)
    server = grpc.aio.server(options=OPTIONS, maximum_concurrent_rpcs=settings.processes + settings.waiting + _BESIDE)
    server.add_generic_rpc_handlers((answering.handler(),))
    healthy = HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(healthy, server)
    reflection.enable_server_reflection((NAME, health.SERVICE_NAME, reflection.SERVICE_NAME), server)
    bound = server.add_insecure_port(_place(host, port))
    await server.start()
    for name in (NAME, OURS):
        await healthy.set(name, HealthCheckResponse.SERVING)
    asked, again = asyncio.Event(), asyncio.Event()
    with _signals(lambda: again.set() if asked.is_set() else asked.set()):
        sys.stderr.write(f"quantdeck: serving backtests on grpc://{_place(host, bound)}\n")
        sys.stderr.flush()
        await asked.wait()
        await healthy.enter_graceful_shutdown()
        await _drained(server, answering, again, settings.drain_s)


async def _drained(server: grpc.aio.Server, answering: Answering, again: asyncio.Event, drain_s: float) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(server.stop(drain_s))
        waits = [group.create_task(answering.idle.wait()), group.create_task(again.wait())]
        await asyncio.wait(waits, timeout=drain_s, return_when=asyncio.FIRST_COMPLETED)
        for one in waits:
            one.cancel()
        await server.stop(None if again.is_set() else _FLUSH_S)


@contextlib.contextmanager
def _signals(heard: Callable[[], None]) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGTERM, signal.SIGINT)
    with contextlib.suppress(NotImplementedError):  # Windows, where a signal just ends it
        for number in numbers:
            loop.add_signal_handler(number, heard)
    try:
        yield
    finally:
        with contextlib.suppress(NotImplementedError):
            for number in numbers:
                loop.remove_signal_handler(number)


def _place(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _check_free(host: str, port: int) -> None:
    """gRPC would say no more than that it cannot."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        raise MisconfiguredError(
            f"{_place(host, port)} cannot be bound: {error.strerror}; choose another with --host or --port"
        ) from error
