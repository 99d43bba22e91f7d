"""One connection to one of Alpaca's streams, by Alpaca's own client: every private touch of it is in this file.

Its own loop is not used: it connects again for ever after what can never heal, tells nobody that it did, so that
nothing would be filled in, and takes five seconds to stop. What is used is how it connects and what it sends.
"""

from __future__ import annotations

import asyncio
import logging
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # it uses what websockets calls legacy
    import msgpack
    from alpaca.data.live import CryptoDataStream, StockDataStream
    from websockets.exceptions import WebSocketException

__all__ = ["Connection", "Heard", "Lost", "Refused"]

Heard = Callable[[dict[str, Any]], None]
"""Told of each bar as it came: S, t (a Timestamp), o, h, l, c, v, and T: b, or u where it corrects."""

_OPENING_S, _ANSWER_S, _CLOSING_S = 20.0, 15.0, 5.0
_LIMIT_EXCEEDED = 405
_BARS = frozenset(("b", "u"))
_SOCKET = {"ping_interval": 10, "ping_timeout": 30, "max_queue": 1024, "close_timeout": 2}

# At debug it writes down every frame, also the one with the keys.
logging.getLogger("websockets").setLevel(logging.INFO)


class Lost(Exception):
    """There is no connection, or none any more."""


class Refused(Lost):
    """Alpaca said why: `code` is its own."""

    def __init__(self, code: int, said: str) -> None:
        super().__init__(f"{said} ({code})")
        self.code = code


class _Keys:
    """Shows the keys as the client does, which keeps the words of a refusal and drops its code."""

    _ws: Any
    _api_key: str
    _secret_key: str

    async def _auth(self) -> None:
        await self._ws.send(msgpack.packb({"action": "auth", "key": self._api_key, "secret": self._secret_key}))
        (told, *_) = msgpack.unpackb(await self._ws.recv())
        if told.get("T") == "error":
            raise _refused(told)
        if told.get("msg") != "authenticated":
            raise Lost("the stream did not say that it took the key")


class _Stocks(_Keys, StockDataStream):
    pass


class _Coins(_Keys, CryptoDataStream):
    pass


async def _never(bar: Any) -> None:
    """Of each subscription there has to be a handler; here none is called."""


class Connection:
    """`open` it, `listen` until it ends, and `close` it before another is made: Alpaca allows one."""

    def __init__(self, url: str, key: str, secret: str, heard: Heard, *, coins: bool) -> None:
        kind = _Coins if coins else _Stocks
        self._stream = kind(key, secret, raw_data=True, url_override=url, websocket_params=dict(_SOCKET))
        self._heard = heard
        self._asked: asyncio.Future[bool] | None = None
        self._turn = asyncio.Lock()
        self.symbols: tuple[str, ...] = ()

    async def open(self) -> None:
        """Connect and show the keys; raises Lost."""
        try:
            async with asyncio.timeout(_OPENING_S):
                await self._stream._start_ws()  # noqa: SLF001 - see the module
        except Lost:
            raise
        except (TimeoutError, OSError, WebSocketException, ValueError, EOFError) as error:
            raise _lost(error) from error

    async def listen(self) -> None:
        """Hear bars until the connection ends, which raises Lost.

        Its own loop waits by `wait_for`, which before Python 3.12 may lose a cancellation.
        """
        try:
            while True:
                frame = await self._stream._ws.recv()  # noqa: SLF001
                for message in msgpack.unpackb(frame):
                    self._on_message(message)
        except Lost:
            raise
        except (OSError, WebSocketException, ValueError, TypeError, AttributeError, msgpack.UnpackException) as error:
            raise _lost(error) from error

    async def subscribe(self, symbols: Sequence[str]) -> tuple[str, ...]:
        """Ask for bars and their corrections, while somebody listens; those that Alpaca does not take."""
        async with self._turn:
            wanted = [symbol for symbol in symbols if symbol not in self.symbols]
            if not wanted or await self._offered(wanted):
                return ()
            taken, refused = 0, len(wanted)
            while refused - taken > 1:
                middle = (taken + refused) // 2
                if await self._offered(wanted[taken:middle]):
                    taken = middle
                else:
                    refused = middle
            return tuple(wanted[taken:])

    async def close(self) -> None:
        with suppress(Exception):  # whatever state it is in, it is over
            async with asyncio.timeout(_CLOSING_S):
                await self._stream.close()

    async def _offered(self, symbols: Sequence[str]) -> bool:
        self._asked = asyncio.get_running_loop().create_future()
        self._stream.subscribe_bars(_never, *symbols)
        self._stream.subscribe_updated_bars(_never, *symbols)
        try:
            await self._stream._send_subscribe_msg()  # noqa: SLF001
            async with asyncio.timeout(_ANSWER_S):
                taken = await self._asked
        except (TimeoutError, OSError, WebSocketException) as error:
            raise _lost(error) from error
        if taken:
            self.symbols = (*self.symbols, *symbols)
        else:
            self._stream.unsubscribe_bars(*symbols)
            self._stream.unsubscribe_updated_bars(*symbols)
        return taken

    def _on_message(self, message: dict[str, Any]) -> None:
        kind = message.get("T")
        if kind in _BARS:
            self._heard(message)
        elif kind == "subscription":
            self._answer(taken=True)
        elif kind == "error":
            if message.get("code") != _LIMIT_EXCEEDED:
                raise _refused(message)
            self._answer(taken=False)  # what was subscribed to before still is

    def _answer(self, *, taken: bool) -> None:
        if self._asked is not None and not self._asked.done():
            self._asked.set_result(taken)


def _refused(message: dict[str, Any]) -> Refused:
    code = message.get("code")
    return Refused(code if isinstance(code, int) else 0, str(message.get("msg"))[:100])


def _lost(error: Exception) -> Lost:
    return Lost(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)
