"""NATS: one connection that is made when it is first needed and comes back by itself, and JetStream over it.

While it is gone every question fails at once; nothing is buffered for a server that may never come back.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import urlsplit

from nats import errors as driver
from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js import errors as stream_driver
from nats.js.api import KeyValueConfig, StreamConfig
from nats.js.kv import KeyValue

from quantdeck.core.errors import Busy, Denied, QueryFailed, SourceError, Unreachable
from quantdeck.settings import MisconfiguredError
from quantdeck.settings import Nats as Settings

__all__ = ["SOURCE", "Nats"]

SOURCE = "nats"

T = TypeVar("T")

_AGAIN_S = 0.1
"""Between two attempts to come back."""


class Nats:
    """One server, or a cluster by one of its addresses. Nothing is connected before the first question."""

    def __init__(self, url: str, settings: Settings) -> None:
        _check(url)
        self._url = url
        self.settings = settings
        self._client: Client | None = None
        self._buckets: dict[str, KeyValue] = {}
        self._connecting = asyncio.Lock()
        self._closed = False

    async def ping(self) -> None:
        """Return if it answers and keeps streams."""
        await self._asked(lambda jetstream: jetstream.account_info())

    async def close(self) -> None:
        """Close the connection. There is no way back."""
        self._closed = True
        async with self._connecting:
            if self._client is not None:
                await _close(self._client)

    async def get(self, bucket: str, key: str) -> tuple[bytes, int] | None:
        """A value and its revision; None where there is none."""

        async def read(_: JetStreamContext) -> tuple[bytes, int] | None:
            try:
                entry = await (await self._bucket(bucket)).get(key)
            except stream_driver.KeyNotFoundError:
                return None
            return entry.value or b"", entry.revision or 0

        return await self._asked(read)

    async def put(self, bucket: str, key: str, value: bytes, *, after: int | None) -> bool:
        """Write where nobody else has since that revision, or where there was none; whether it was written."""

        async def write(_: JetStreamContext) -> bool:
            place = await self._bucket(bucket)
            try:
                await (place.create(key, value) if after is None else place.update(key, value, last=after))
            except stream_driver.KeyWrongLastSequenceError:
                return False
            return True

        return await self._asked(write)

    async def last_write(self, bucket: str) -> int:
        """A number that every write to a bucket makes larger."""

        async def read(jetstream: JetStreamContext) -> int:
            await self._bucket(bucket)
            return (await jetstream.stream_info(f"KV_{bucket}")).state.last_seq

        return await self._asked(read)

    async def publish(self, subject: str, data: bytes, headers: Mapping[str, str]) -> None:
        """Tell whoever listens, and wait until the server has heard it."""
        client = await self._connected()
        with _in_our_words():
            await client.publish(subject, data, headers=dict(headers))
            await client.flush(timeout=max(1, round(self.settings.read_s)))

    @contextlib.asynccontextmanager
    async def consumer(self, subject: str, durable: str) -> AsyncIterator[Any]:
        """A pull subscription to a subject of the stream, in order and one message at a time; others may share it."""
        from nats.js.api import ConsumerConfig

        async def subscribed(jetstream: JetStreamContext) -> Any:
            await self._stream(jetstream, subject)
            config = ConsumerConfig(max_ack_pending=1, ack_wait=self.settings.ack_s)
            return await jetstream.pull_subscribe(subject, durable, stream=self.settings.stream, config=config)

        subscription = await self._asked(subscribed)
        try:
            yield subscription
        finally:
            with contextlib.suppress(Exception):  # the connection may be gone, and the subscription with it
                await subscription.unsubscribe()

    async def _stream(self, jetstream: JetStreamContext, subject: str) -> None:
        """The stream that holds a subject; made where there is none."""
        try:
            await jetstream.stream_info(self.settings.stream)
        except stream_driver.NotFoundError:
            await jetstream.add_stream(StreamConfig(name=self.settings.stream, subjects=[subject]))

    async def _bucket(self, name: str) -> KeyValue:
        if name not in self._buckets:
            assert self._client is not None
            jetstream = self._client.jetstream(timeout=self.settings.read_s)
            try:
                self._buckets[name] = await jetstream.key_value(name)
            except stream_driver.NotFoundError:
                self._buckets[name] = await jetstream.create_key_value(KeyValueConfig(bucket=name))
        return self._buckets[name]

    async def _asked(self, ask: Callable[[JetStreamContext], Awaitable[T]]) -> T:
        client = await self._connected()
        with _in_our_words():
            async with asyncio.timeout(self.settings.read_s):
                return await ask(client.jetstream(timeout=self.settings.read_s))

    async def _connected(self) -> Client:
        client = self._client
        if client is None or client.is_closed:
            async with self._connecting:
                if self._client is None or self._client.is_closed:
                    self._client = await self._connect()
                client = self._client
        if not client.is_connected:
            raise Unreachable("The connection to NATS broke; it is being made again.", source=SOURCE)
        return client

    async def _connect(self) -> Client:
        if self._closed:
            raise Unreachable("The connection to NATS was closed.", source=SOURCE)
        self._buckets.clear()
        client = Client()
        with _in_our_words():
            try:
                async with asyncio.timeout(self.settings.connect_s):
                    await client.connect(
                        self._url,
                        name="quantdeck",
                        error_cb=_unheard,
                        connect_timeout=max(1, round(self.settings.connect_s)),
                        max_reconnect_attempts=-1,
                        reconnect_time_wait=_AGAIN_S,  # type: ignore[arg-type]  # it takes any number
                        pending_size=2**20,
                    )
            except BaseException:
                await _close(client)
                raise
        return client


async def _unheard(error: Exception) -> None:
    """Its own way would be a traceback on stderr each time; whoever asks is told."""


async def _close(client: Client) -> None:
    with contextlib.suppress(Exception):
        await client.close()


@contextlib.contextmanager
def _in_our_words() -> Any:
    try:
        yield
    except SourceError:
        raise
    except (driver.AuthorizationError, driver.InvalidUserCredentialsError) as error:
        raise Denied("NATS refused the credentials.", source=SOURCE) from error
    except (stream_driver.ServiceUnavailableError, driver.NoRespondersError) as error:
        raise Unreachable("NATS has no JetStream, or not yet; start nats-server with -js.", source=SOURCE) from error
    except (driver.TimeoutError, TimeoutError) as error:
        raise Unreachable("The connection to NATS timed out.", source=SOURCE) from error
    except stream_driver.APIError as error:
        if error.code is not None and error.code >= 500:
            raise Busy("NATS cannot do this just now; try again.", source=SOURCE) from error
        raise QueryFailed("NATS refused the question.", source=SOURCE) from error
    except (driver.Error, OSError) as error:
        if "authorization violation" in str(error).lower():
            raise Denied("NATS refused the credentials.", source=SOURCE) from error
        raise Unreachable("No connection to NATS: it is down or out of reach.", source=SOURCE) from error


def _check(url: str) -> None:
    """A MisconfiguredError that does not repeat the URL: there may be a password in it."""
    try:
        parts = urlsplit(url)
        wrong = not parts.hostname or parts.port == 0 or parts.path.strip("/") or parts.query
    except ValueError:
        wrong = True
    if wrong:
        raise MisconfiguredError(
            "QUANTDECK_NATS names no server; write nats://user:password@host:4222 (tls:// for TLS), characters with a "
            "meaning in URLs percent-encoded"
        )
