"""The process that speaks with a Ray cluster, and the only one of ours that imports Ray.

It is told tasks and batches of points on stdin and tells what they came to on stdout, in frames. A task goes into the
cluster's object store once. It ends with its input, and the cluster drops what it was doing then.

    heard   ("task", key, Task)  ("forget", key)  ("batch", number, key, points)  ("cancel", number)
    told    ("ready", processors)  ("processors", many)  ("told", number, outcomes, seconds)  ("lost", number)
            ("failed", sentence), which is the last
"""

from __future__ import annotations

import logging
import os
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from secrets import token_hex
from threading import Thread
from time import monotonic
from typing import IO, Any

import ray
from ray.exceptions import RayError, RayTaskError

from quantdeck import __version__
from quantdeck.backtesting.sweeps import Outcome, Point, Task
from quantdeck.backtesting.sweeps.frames import framed, receive_sync

__all__ = ["main"]

_LOOK_S = 0.02
"""How long a new batch waits to be heard while others are computed."""

_COUNT_S = 1.0
"""How old the number of processors may be: nodes come and go."""

_CONNECT_S = 5.0


def _computed(task: Task, batch: list[Point], version: str) -> tuple[list[Outcome], float]:
    """What a node does; its own time, without the way there."""
    if version != __version__:
        raise RuntimeError(f"it has quantdeck {__version__}")
    begun = monotonic()
    return task.outcomes(batch), monotonic() - begun


class _Driver:
    def __init__(self, tell: Callable[..., None]) -> None:
        self._tell = tell
        # Ray itself does again what a node's end took with it, so often; what it gives up is told as lost.
        self._remote = ray.remote(num_cpus=1, max_retries=3, scheduling_strategy="SPREAD")(_computed)
        self._tasks: dict[int, Any] = {}
        self._pending: dict[Any, int] = {}
        self._processors, self._counted_s = 0, 0.0

    def work(self, heard: SimpleQueue[Any]) -> None:
        """Until the input has ended."""
        self._count("ready")
        while True:
            with suppress(Empty):
                while True:
                    message = heard.get(block=not self._pending)
                    if message is None:
                        return
                    self._hear(*message)
            if self._pending:
                ready, _ = ray.wait(list(self._pending), num_returns=1, timeout=_LOOK_S)
                for one in ready:
                    self._outcome(one, self._pending.pop(one))
            if monotonic() - self._counted_s > _COUNT_S:
                self._count("processors")

    def _hear(self, kind: str, key: int, *said: Any) -> None:
        if kind == "task":
            self._tasks[key] = ray.put(said[0])
        elif kind == "forget":
            self._tasks.pop(key, None)
        elif kind == "batch":
            task, batch = said
            self._pending[self._remote.remote(self._tasks[task], batch, __version__)] = key
        else:
            for one in [one for one, number in self._pending.items() if number == key]:
                ray.cancel(one, force=True)
                del self._pending[one]

    def _outcome(self, one: Any, number: int) -> None:
        try:
            outcomes, took_s = ray.get(one)
        except RayTaskError:
            raise
        except RayError:
            self._tell("lost", number)
        else:
            self._tell("told", number, outcomes, took_s)

    def _count(self, kind: str) -> None:
        resources: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]
        many, self._counted_s = int(resources.get("CPU", 0)), monotonic()
        if many != self._processors or kind == "ready":
            self._processors = many
            self._tell(kind, many)


def serve(address: str, asked: IO[bytes], tell: Callable[..., None]) -> None:
    """Connect, and work until the input ends."""
    try:
        _connect(address)
    except Exception as error:  # noqa: BLE001 - Ray raises of every kind; whoever waits must hear of it
        hint = "" if "RAY_AUTH_MODE" in os.environ else "; one that wants a token wants RAY_AUTH_MODE=token here too"
        tell("failed", f"No Ray cluster answers at {address!r}: connection failed with {type(error).__name__}{hint}")
        return
    heard: SimpleQueue[Any] = SimpleQueue()
    Thread(target=_listen, args=(asked, heard), daemon=True).start()
    try:
        _Driver(tell).work(heard)
    except RayTaskError as error:
        tell("failed", f"A node of the Ray cluster cannot compute ({_said(error)}); each needs quantdeck {__version__}")
    except Exception as error:  # noqa: BLE001 - likewise
        tell("failed", f"The connection to the Ray cluster was lost ({type(error).__name__})")
    finally:
        ray.shutdown()


def _connect(address: str) -> None:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nobody else is told what is computed here
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if colon and port.isdigit():  # or it would be tried for minutes
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT_S).close()
    own: dict[str, Any] = {}
    if address == "local":
        own["include_dashboard"] = False
        if "RAY_AUTH_MODE" not in os.environ:  # or Ray writes a token into the user's home, which other clusters obey
            os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": token_hex(32)}
    ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, namespace="quantdeck", **own)


def _listen(asked: IO[bytes], heard: SimpleQueue[Any]) -> None:
    with suppress(EOFError):
        while True:
            heard.put(receive_sync(asked))
    heard.put(None)


def _said(error: RayTaskError) -> str:
    return f"{type(error.cause).__name__}: {error.cause}"[:200]


def main() -> None:
    frames = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what Ray prints is no frame

    def tell(*what: Any) -> None:
        frames.write(framed(what))
        frames.flush()

    with suppress(BrokenPipeError):
        serve(sys.argv[1], sys.stdin.buffer, tell)


if __name__ == "__main__":
    main()
