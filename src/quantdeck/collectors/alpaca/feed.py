"""One stream, kept up: connected, subscribed, filled in, looked after, and connected again when it is lost."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any

from quantdeck.collectors.alpaca.filling import filled
from quantdeck.connections.alpaca import keys
from quantdeck.core.errors import SourceError
from quantdeck.settings import Alpaca as Settings

if TYPE_CHECKING:
    from quantdeck.collectors.alpaca.collector import Collector
    from quantdeck.collectors.alpaca.stream import Connection
    from quantdeck.domain.candles import Bars

__all__ = ["Feed", "Hopeless", "pause"]

log = logging.getLogger(__name__)

_HOPELESS = {
    402: "Alpaca refused the key; look at ALPACA_API_KEY and ALPACA_SECRET_KEY, which are made anew with every reset "
    "of a paper account",
    409: "Alpaca's plan does not cover this stream; QUANTDECK_ALPACA__FEED=iex is free, sip is not",
}
"""By Alpaca's code what no second try will heal."""
_MEANT = {
    404: "the keys took too long",
    405: "the plan covers fewer symbols",
    406: "there is another connection with these keys, or one that broke a moment ago",
    407: "this machine reads too slowly",
    500: "Alpaca failed",
}
_GRACE_S = 90
"""A bar is surely sent so long after its minute is over, and its correction as well."""


class Hopeless(Exception):
    """Alpaca refuses for good. The sentence says what to change."""


class Feed:
    """Stocks, or coins. `connected` and `unheard` (symbols that the stream does not take) say how it is."""

    def __init__(self, collector: Collector, settings: Settings, *, coins: bool) -> None:
        self.symbols: dict[str, None] = {}
        self.connected = False
        self.unheard: tuple[str, ...] = ()
        self._collector = collector
        self._settings = settings
        self._coins = coins
        path = "/v1beta3/crypto/us" if coins else f"/v2/{settings.feed}"
        self._url = f"{settings.stream_url}{path}"
        self._more = asyncio.Event()
        self._heard_at = 0.0
        self._bars = 0  # of this connection
        self._looked_back = set[str]()
        self._settled: dict[str, int] = {}  # of the last fill the newest bars that a stream has surely sent

    @property
    def name(self) -> str:
        return "coins" if self._coins else "stocks"

    def add(self, symbol: str) -> None:
        self.symbols.setdefault(symbol)
        self._more.set()

    async def run(self) -> None:
        """Until cancelled, or Hopeless."""
        failures = 0
        while True:
            while not self.symbols:
                self._more.clear()
                await self._more.wait()
            self._bars = 0
            why = await self._connection_of_its_own()
            code = getattr(why.__cause__, "code", 0)
            if code in _HOPELESS:
                raise Hopeless(_HOPELESS[code])
            failures = 1 if self._bars else failures + 1
            pause_s = self._pause(failures)
            told = {
                "stream": self.name,
                "why": _MEANT.get(code, str(why)),
                "code": code,
                "again_in_s": round(pause_s, 1),
            }
            log.warning("alpaca_stream_lost", extra={"fields": told})
            await asyncio.sleep(pause_s)

    async def fill(self) -> None:
        """Fetch what is missing of every symbol. Raises a SourceError."""
        await self._fill(tuple(self.symbols))

    async def _connection_of_its_own(self) -> _Over:
        """From its opening to its end, and why it ended. There is never a second one beside it."""
        from quantdeck.collectors.alpaca.stream import Connection

        ends = list[_Over]()
        connection = Connection(self._url, *keys(self._settings), self._on_bar, coins=self._coins)
        try:
            await _ending(connection.open())
            self._collector.memory.begin(tuple(self.symbols))
            self._collector.owe(tuple(self.symbols))
            async with asyncio.TaskGroup() as group:
                group.create_task(_ending(connection.listen()))
                group.create_task(_ending(self._attend(connection)))
        except* _Over as over:
            ends += [end for end in over.exceptions if isinstance(end, _Over)]
        finally:
            self.connected = False
            await asyncio.shield(connection.close())
        return ends[0]

    async def _attend(self, connection: Connection) -> None:
        """Subscribe, fill in what is missing, and look whether it still lives; again for symbols that come later."""
        while True:
            self._more.clear()
            self.unheard = await connection.subscribe(tuple(self.symbols))
            self._tell(connection)
            await self._fill_until_done()
            await self._watch()

    def _tell(self, connection: Connection) -> None:
        self.connected = True
        log.info("alpaca_stream_open", extra={"fields": {"stream": self.name, "symbols": len(connection.symbols)}})
        if self.unheard:
            told = {"stream": self.name, "symbols": ",".join(self.unheard)}
            log.warning("alpaca_symbol_limit", extra={"fields": {**told, "instead": "asked for every minute"}})

    async def _watch(self) -> None:
        """Return when there are symbols to come; ends where it is silent and bars are made all the same."""
        self._heard_at = time.monotonic()
        while not self._more.is_set():
            waits_s = self._settings.stall_s - (time.monotonic() - self._heard_at)
            try:
                async with asyncio.timeout(max(min(waits_s, self._settings.flush_s), 0.01)):
                    await self._more.wait()
            except TimeoutError:
                await self._look()

    async def _look(self) -> None:
        """Ask for what the stream does not bring, and for everything where it is silent."""
        if left := tuple(symbol for symbol in self.symbols if symbol in self._collector.owed or symbol in self.unheard):
            await self._try_to_fill(left)
        if time.monotonic() - self._heard_at < self._settings.stall_s:
            return
        if await self._try_to_fill(tuple(symbol for symbol in self.symbols if symbol not in self.unheard)):
            raise _Over(f"nothing came for {self._settings.stall_s:g} s while bars were made")
        self._heard_at = time.monotonic()

    async def _fill_until_done(self) -> None:
        failures = 0
        while not self._more.is_set():
            try:
                await self._fill(tuple(self.symbols))
                break
            except SourceError as error:
                failures += 1
                pause_s = self._pause(failures)
                self._tell_not_filled(error, again_in_s=round(pause_s, 1))
                await asyncio.sleep(pause_s)

    async def _try_to_fill(self, symbols: tuple[str, ...]) -> bool:
        """Whether there were bars that the stream ought to have brought."""
        before = {symbol: self._collector.newest(symbol) for symbol in symbols}
        try:
            await self._fill(symbols, overlap_s=0)
        except SourceError as error:
            self._tell_not_filled(error)
            return False
        return any(self._settled.get(symbol, 0) > known for symbol, known in before.items())

    async def _fill(self, symbols: tuple[str, ...], **since: int) -> None:
        collector, new = self._collector, [symbol for symbol in symbols if symbol not in self._looked_back]
        gaps, earlier = collector.gaps(symbols, **since), await collector.earlier(new)
        self._settled = {}
        settled_s = time.time() - 60 - _GRACE_S

        async def keep(symbol: str, bars: Bars) -> None:
            await collector.keep(symbol, bars)
            if places := int(bars.time.searchsorted(settled_s)):
                self._settled[symbol] = max(self._settled.get(symbol, 0), int(bars.time[places - 1]))

        with collector.owing([*gaps, *earlier]):
            refused = await filled(collector.api, gaps, keep) | await filled(collector.api, earlier, keep)
        self._looked_back |= set(new)
        for symbol in refused:
            self.symbols.pop(symbol, None)

    def _tell_not_filled(self, error: SourceError, **more: float) -> None:
        log.warning("alpaca_not_filled", extra={"fields": {"stream": self.name, "why": error.message, **more}})

    def _pause(self, failures: int) -> float:
        return pause(failures, self._settings.backoff_s, self._settings.backoff_max_s)

    def _on_bar(self, bar: dict[str, Any]) -> None:
        self._heard_at = time.monotonic()
        self._bars += 1
        try:
            row = (float(bar["o"]), float(bar["h"]), float(bar["l"]), float(bar["c"]), float(bar["v"]))
            symbol, opened_s = str(bar["S"]), int(bar["t"].seconds)
        except (KeyError, TypeError, ValueError, AttributeError):
            log.warning("unreadable_bar", extra={"fields": {"bar": str(bar)[:200]}})
            return
        self._collector.hear(symbol, opened_s, row)


class _Over(Exception):
    """A connection has ended; where Alpaca ended it, its cause has the code."""


async def _ending(work: Awaitable[None]) -> None:
    from quantdeck.collectors.alpaca.stream import Lost

    try:
        await work
    except Lost as lost:
        raise _Over(str(lost)) from lost


def pause(failures: int, first_s: float, longest_s: float) -> float:
    """Twice as long each time, and of that between a half and the whole: not all come back at once."""
    whole = min(first_s * 2.0 ** min(failures - 1, 30), longest_s)
    return whole / 2 + random.random() * whole / 2  # noqa: S311 - it spreads connections, and keeps no secret
