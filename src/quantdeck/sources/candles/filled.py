"""A store of bars, and Alpaca for the symbols that it lacks, where there is a key for that.

What Alpaca says is passed on and not stored: a window that somebody asked for once would look like a whole series with
holes ever after (ADR 30). Whoever wants it stored collects it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any, Self

from quantdeck.connections.alpaca import SOURCE
from quantdeck.core.clock import Clock, Now
from quantdeck.core.errors import NotConfigured
from quantdeck.domain.candles import Bars
from quantdeck.domain.timeframes import Timeframe
from quantdeck.settings import Settings
from quantdeck.sources.candles import Candles, Series, Storage
from quantdeck.sources.candles.alpaca import AlpacaCandles, is_sold_there

if TYPE_CHECKING:
    from quantdeck.core.call import Call

__all__ = ["Filled", "filled"]


def filled(store: Candles, settings: Settings) -> Candles:
    """The store with Alpaca behind it, or as it is where it is a demo's or Alpaca itself."""
    if settings.is_demo or store.source == SOURCE:
        return store
    return Filled(store, AlpacaCandles(settings.alpaca, Clock.parse(settings.clock), tuple))


class Filled(Candles):
    """See the port. A symbol is read from one place; a series that had not begun by then in the store is lacking."""

    def __init__(self, store: Candles, vendor: Candles, call: Call | None = None) -> None:
        self.journal = store.journal
        self.store, self.vendor = store, vendor
        self._call = call
        self._told: dict[str, None] = {}

    @property
    def source(self) -> str:  # type: ignore[override]  # the store's, which may change
        return self.store.source

    def _for_call(self, call: Call) -> Self:
        return type(self)(self.store, self.vendor, call)

    async def ping(self) -> None:
        try:
            await self.store.ping()
        except NotConfigured:
            await self.vendor.ping()

    async def revision(self) -> Any:
        return await self.store.revision()

    async def close(self) -> None:
        """Let go of Alpaca; the store is closed by who opened it."""
        await self.vendor.close()

    async def symbols(self, *, as_of: Now) -> list[str]:
        try:
            return await self.store.symbols(as_of=as_of)
        except NotConfigured:  # nothing is stored, and nobody can list what Alpaca has
            return []

    async def series(self, symbol: str, *, as_of: Now) -> Series | None:
        store, found = await self._lookup(symbol, as_of)
        return found if store is self.store else await store.series(symbol, as_of=as_of)

    async def between(self, symbol: str, timeframe: Timeframe, start: datetime, end: datetime, *, as_of: Now) -> Bars:
        return await (await self._of(symbol, as_of)).between(symbol, timeframe, start, end, as_of=as_of)

    async def newest(self, symbol: str, timeframe: Timeframe, count: int, *, skip: int = 0, as_of: Now) -> Bars:
        return await (await self._of(symbol, as_of)).newest(symbol, timeframe, count, skip=skip, as_of=as_of)

    async def page(
        self, symbol: str, timeframe: Timeframe, count: int, *, skip: int = 0, as_of: Now
    ) -> tuple[Bars, int]:
        return await (await self._of(symbol, as_of)).page(symbol, timeframe, count, skip=skip, as_of=as_of)

    async def count(self, symbol: str, timeframe: Timeframe, *, as_of: Now) -> int:
        return await (await self._of(symbol, as_of)).count(symbol, timeframe, as_of=as_of)

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[None]:
        async with AsyncExitStack() as held:
            with suppress(NotConfigured):
                await held.enter_async_context(self.store.snapshot())
            yield

    async def store_of(self, symbol: str, *, as_of: Now) -> Candles:
        return await (await self._of(symbol, as_of)).store_of(symbol, as_of=as_of)

    async def storage(self, *, as_of: Now) -> Storage:
        return await self.store.storage(as_of=as_of)

    async def write(self, symbol: str, base: Timeframe, bars: Bars) -> int:
        return await self.store.write(symbol, base, bars)

    async def forget(self, symbol: str) -> None:
        await self.store.forget(symbol)

    async def _of(self, symbol: str, as_of: Now) -> Candles:
        return (await self._lookup(symbol, as_of))[0]

    async def _lookup(self, symbol: str, as_of: Now) -> tuple[Candles, Series | None]:
        """Who is asked for a symbol, which the answer names; and the series, where the store has it."""
        try:
            found = await self.store.series(symbol, as_of=as_of)
        except NotConfigured:
            if not is_sold_there(symbol):
                raise
            found = None
        chosen = self.store if found is not None or not is_sold_there(symbol) else self.vendor
        if self._call is not None:
            self._told.setdefault((await chosen.store_of(symbol, as_of=as_of)).source)
            self._call.source = ",".join(self._told)
        return chosen, found

    # What the reads above do not come to.

    async def _all(self) -> list[Series]:
        raise NotImplementedError

    async def _series(self, symbol: str) -> Series | None:
        raise NotImplementedError

    async def _between(self, series: Series, start_s: int, end_s: int) -> Bars:
        raise NotImplementedError

    async def _before(self, series: Series, end_s: int, count: int) -> Bars:
        raise NotImplementedError

    async def _counted(self, series: Series, timeframe: Timeframe, end_s: int) -> int:
        raise NotImplementedError

    async def _write(self, symbol: str, base: Timeframe, bars: Bars) -> None:
        raise NotImplementedError
