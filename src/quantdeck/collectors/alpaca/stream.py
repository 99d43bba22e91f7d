"""One connection to one of Alpaca's streams, by Alpaca's own client: every private touch of it is in this file.

Its own loop is not used: it connects again for ever after what can never heal, tells nobody that it did, so that
nothing would be filled in, and takes five seconds to stop. What is used is its connection and how it reads frames.
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
_BARS = frozenset("bu")
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


class _Frames:
    """What is done with a frame, in place of looking for a handler of each symbol."""

    heard: Heard
    answered: Callable[[bool], None]

    async def _dispatch(self, msg: dict[str, Any]) -> None:
        kind = msg.get("T")
        if kind in _BARS:
            self.heard(msg)
        elif kind == "subscription":
            self.answered(True)
        elif kind == "error":
            if msg.get("code") != _LIMIT_EXCEEDED:
                raise Refused(int(msg.get("code") or 0), str(msg.get("msg")))
            self.answered(False)  # what was subscribed to before still is

    async def _auth(self) -> None:
        await self._ws.send(msgpack.packb({"action": "auth", "key": self._api_key, "secret": self._secret_key}))  # type: ignore[attr-defined]
        (told, *_) = msgpack.unpackb(await self._ws.recv())  # type: ignore[attr-defined]
        if told.get("T") == "error":  # theirs keeps the words and drops the code
            raise Refused(int(told.get("code") or 0), str(told.get("msg")))
        if told.get("msg") != "authenticated":
            raise Lost("the stream did not say that it took the key")


class _Stocks(_Frames, StockDataStream):
    pass


class _Coins(_Frames, CryptoDataStream):
    pass


async def _never(bar: Any) -> None:
    """Of each subscription there has to be a handler; `_dispatch` calls none."""


class Connection:
    """`open` it, `listen` until it ends, and `close` it before another is made: Alpaca allows one."""

    def __init__(self, url: str, key: str, secret: str, heard: Heard, *, coins: bool) -> None:
        kind = _Coins if coins else _Stocks
        self._stream = kind(key, secret, raw_data=True, url_override=url, websocket_params=dict(_SOCKET))
        self._stream.heard = heard
        self._stream.answered = self._on_answer
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
        """Hear bars until the connection ends, which raises Lost."""
        try:
            await self._stream._consume()  # noqa: SLF001
        except Lost:
            raise
        except (OSError, WebSocketException, ValueError, TypeError, KeyError, msgpack.UnpackException) as error:
            raise _lost(error) from error
        raise Lost("the stream ended")

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
            taken = await asyncio.wait_for(self._asked, _ANSWER_S)
        except (TimeoutError, OSError, WebSocketException) as error:
            raise _lost(error) from error
        if taken:
            self.symbols = (*self.symbols, *symbols)
        else:
            self._stream.unsubscribe_bars(*symbols)
            self._stream.unsubscribe_updated_bars(*symbols)
        return taken

    def _on_answer(self, taken: bool) -> None:
        if self._asked is not None and not self._asked.done():
            self._asked.set_result(taken)


def _lost(error: Exception) -> Lost:
    return Lost(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)
