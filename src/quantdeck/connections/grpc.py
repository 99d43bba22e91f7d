"""A gRPC service, asked over a few connections that are kept. The driver is an extra: it is loaded when first asked."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from quantdeck.core.errors import Busy, Denied, QueryFailed, SourceError, Unreachable
from quantdeck.settings import Grpc as Settings
from quantdeck.settings import MisconfiguredError

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["SIGNATURE", "SOURCE", "Channels", "Place", "RefusedError", "TookTooLong", "UnknownHereError", "place"]

SOURCE = "grpc"

SIGNATURE = "quantdeck"
"""Metadata by which a failure is known to be told in words of ours."""

_PORT = 50051
_MIB = 2**20


class TookTooLong(SourceError):
    """It was not done in the time that the settings give."""


class RefusedError(QueryFailed):
    """The service says that it cannot do what it was asked. Its words are a caller's to see only if it is `ours`."""

    said, ours = "", False


class UnknownHereError(QueryFailed):
    """The service does not know the method."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a service is: host:port, and whether it is spoken to in secret."""

    target: str
    encrypted: bool = False


def place(url: str, settings: Settings) -> Place:
    """What QUANTDECK_BACKTESTER and the group of settings say together; the URL counts first."""
    said = url.partition(":")[2].strip("/")
    name = "QUANTDECK_BACKTESTER" if said else "QUANTDECK_GRPC__URL"
    address = url if said else settings.url
    if "://" not in address:
        address = f"grpc://{address}"
    try:
        parts = urlsplit(address)
        port = parts.port or _PORT
    except ValueError as error:
        raise MisconfiguredError(f"{name} cannot be read as a URL: {_URL}") from error
    rest = parts.path.strip("/") or parts.query or parts.fragment or parts.username or parts.password
    if parts.scheme not in ("grpc", "grpcs") or not parts.hostname or rest:
        raise MisconfiguredError(f"{name} must name a host and a port, and no more: {_URL}")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return Place(f"{host}:{port}", parts.scheme == "grpcs")


_URL = "QUANTDECK_BACKTESTER=grpc://host:50051 (grpcs:// for TLS), or GRPC_HOST=host:50051"


class Channels:
    """One service. Nothing is connected before the first question; what broke is connected anew at the next."""

    def __init__(self, where: Place, settings: Settings) -> None:
        self.where = where
        self._settings = settings
        self._channels: list[Any] = []
        self._asked: Counter[int] = Counter()  # questions in flight, by channel

    async def ask(self, method: str, request: bytes, *, within_s: float | None = None) -> bytes:
        """What the method answers. Whoever stops waiting takes the question back."""
        grpc = self._driver()
        limit = self._settings.message_mb * _MIB
        if len(request) > limit:
            raise QueryFailed(
                f"The message to the backtester has {len(request) / _MIB:.1f} MiB, and may have "
                f"{self._settings.message_mb:g}; ask for fewer bars, or for longer ones.",
                source=SOURCE,
            )
        number, channel = await self._free(grpc)
        self._asked[number] += 1
        try:
            answer: bytes = await channel.unary_unary(method)(request, timeout=within_s or self._settings.deadline_s)
        except grpc.aio.AioRpcError as error:
            raise self._in_our_words(error, within_s) from error
        finally:
            self._asked[number] -= 1
        return answer

    async def close(self) -> None:
        """Close every connection."""
        channels, self._channels = self._channels, []
        for channel in channels:
            await channel.close()

    async def _free(self, grpc: ModuleType) -> tuple[int, Any]:
        """The connection with the least to do, once it is there; a further one is made where all have something."""
        if not self._channels or (self._least() and len(self._channels) < self._settings.max_connections):
            self._channels.append(self._opened(grpc))
        number = min(range(len(self._channels)), key=self._asked.__getitem__)
        channel = self._channels[number]
        if channel.get_state(try_to_connect=True) is not grpc.ChannelConnectivity.READY:
            self._asked[number] += 1
            try:
                async with asyncio.timeout(self._settings.connect_s):
                    await channel.channel_ready()
            except TimeoutError as error:
                raise Unreachable(
                    f"No connection to the backtester at {self.where.target}: it is down or out of reach.",
                    source=SOURCE,
                ) from error
            finally:
                self._asked[number] -= 1
        return number, channel

    def _least(self) -> int:
        return min(self._asked[number] for number in range(len(self._channels)))

    def _driver(self) -> ModuleType:
        os.environ.setdefault("GRPC_VERBOSITY", "ERROR")  # it reads that once; our log says what went wrong
        try:
            import grpc
            import grpc.aio
        except ModuleNotFoundError as error:
            raise Unreachable(
                "The settings name grpc, whose driver is not installed: pip install 'quantdeck[grpc]'", source=SOURCE
            ) from error
        driver: ModuleType = grpc
        return driver

    def _opened(self, grpc: ModuleType) -> Any:
        settings, limit = self._settings, int(self._settings.message_mb * _MIB)
        options = [
            ("grpc.use_local_subchannel_pool", 1),  # or all channels would share one connection
            ("grpc.keepalive_time_ms", int(settings.keepalive_interval_s * 1000)),
            ("grpc.keepalive_timeout_ms", int(settings.keepalive_timeout_s * 1000)),
            ("grpc.http2.ping_timeout_ms", int(settings.keepalive_timeout_s * 1000)),  # or it would be a minute
            ("grpc.keepalive_permit_without_calls", 0),  # many a service hangs up on who asks when it wants nothing
            ("grpc.http2.max_pings_without_data", 0),
            ("grpc.initial_reconnect_backoff_ms", 100),
            ("grpc.min_reconnect_backoff_ms", 100),
            ("grpc.max_reconnect_backoff_ms", 500),
            ("grpc.max_send_message_length", limit),
            ("grpc.max_receive_message_length", limit),
            ("grpc.enable_http_proxy", 0),  # no proxy that nobody chose
            ("grpc.enable_retries", 0),
        ]
        if not self.where.encrypted:
            return grpc.aio.insecure_channel(self.where.target, options)
        return grpc.aio.secure_channel(
            self.where.target, grpc.ssl_channel_credentials(_authority(settings.ca_file)), options
        )

    def _in_our_words(self, error: Any, within_s: float | None) -> SourceError:
        name, said = error.code().name, (error.details() or "")[:4000]
        ours = any(key == SIGNATURE for key, _ in error.trailing_metadata() or ())
        if ours and name == "INTERNAL":
            return QueryFailed(said, source=SOURCE)
        if name == "RESOURCE_EXHAUSTED" and "larger than max" in said.lower():
            name = "TOO_LARGE"
        kind, sentence = _KINDS.get(name, (QueryFailed, "The backtester failed and its log says why."))
        limit_s = within_s or self._settings.deadline_s
        found = kind(sentence.format(at=self.where.target, limit_s=limit_s), source=SOURCE)
        if isinstance(found, RefusedError):
            found.said, found.ours = said, ours
        return found


_REFUSED = (RefusedError, "The backtester cannot run this strategy over these bars.")
_GONE = (Unreachable, "The connection to the backtester at {at} broke, or it is shutting down.")
_STRANGE = (UnknownHereError, "What answers at {at} is no backtester.")
_OUTSIDE = (Denied, "The backtester does not let this program in.")

_KINDS: dict[str, tuple[type[SourceError], str]] = {
    "UNAVAILABLE": _GONE,
    "CANCELLED": _GONE,  # by the other side, in the moment in which it ends
    "DEADLINE_EXCEEDED": (TookTooLong, "Timeout: the backtester did not answer within {limit_s:g} s."),
    "RESOURCE_EXHAUSTED": (Busy, "The backtester is busy with other work; try again."),
    "TOO_LARGE": (
        QueryFailed,
        "The message is larger than the backtester takes; ask for fewer bars, or for longer ones.",
    ),
    "UNIMPLEMENTED": _STRANGE,
    "NOT_FOUND": _STRANGE,
    "UNAUTHENTICATED": _OUTSIDE,
    "PERMISSION_DENIED": _OUTSIDE,
    "INVALID_ARGUMENT": _REFUSED,
    "FAILED_PRECONDITION": _REFUSED,
    "OUT_OF_RANGE": _REFUSED,
}
"""What is said of each status; any other is a failure."""


def _authority(file: Path | None) -> bytes | None:
    """The certificates to trust; None for those that gRPC brings."""
    if file is None:
        return None
    try:
        return file.read_bytes()
    except OSError as error:
        raise MisconfiguredError(f"QUANTDECK_GRPC__CA_FILE cannot be read: {error.strerror}") from error
