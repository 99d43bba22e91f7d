"""Copy the demo market into a store of bars, for trying one out: by days, and on from where a copy was broken off."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

from quantdeck.core.clock import Now
from quantdeck.core.errors import NotConfigured, QueryFailed
from quantdeck.domain.demo_market import DAY_S
from quantdeck.domain.timeframes import MINUTE
from quantdeck.sources.candles import Candles
from quantdeck.sources.candles.demo import DemoCandles

__all__ = ["copied"]

_STEP_S = 10 * DAY_S
"""So much is written at once, and so much at most is done again after a break."""


async def copied(symbol: str, store: Candles, *, seed: int, days: int, now: Now) -> AsyncIterator[int]:
    """Write what the store lacks of that many days up to now; how many bars, after each step.

    What is there stays one piece, from its first bar to its last, so that the two say what is missing: also where
    the last is older than that.
    """
    market = DemoCandles.of(seed)
    end_s = MINUTE.floor(now.timestamp())
    start_s = end_s - days * DAY_S
    try:
        there = await store.series(symbol, as_of=now)
    except NotConfigured:  # a home without bars, which the first write gives it
        there = None
    if there is None:
        first_s = next_s = start_s
    else:
        await _refuse_another(symbol, store, market, now)
        first_s, next_s = there.first_s, there.last_s + MINUTE.seconds
    later = [(at, min(at + _STEP_S, end_s)) for at in range(next_s, end_s, _STEP_S)]
    earlier = [(max(at - _STEP_S, start_s), at) for at in range(first_s, start_s, -_STEP_S)]
    for begin_s, until_s in (*later, *earlier):
        bars = await market.between(symbol, MINUTE, _at(begin_s), _at(until_s), as_of=now)
        yield await store.write(symbol, MINUTE, bars)


async def _refuse_another(symbol: str, store: Candles, market: DemoCandles, now: Now) -> None:
    """Bars that are not this market's are somebody's, and stay."""
    stored = await store.newest(symbol, MINUTE, 1, as_of=now)
    opened = _at(int(stored.time[0]))
    ours = await market.between(symbol, MINUTE, opened, opened + timedelta(minutes=1), as_of=now)
    if ours.close.tolist() != stored.close.tolist():
        raise QueryFailed(
            f"The store has bars of {symbol} that are not the demo market's of this seed, and they are not "
            "overwritten. Choose another store, or leave this symbol out",
            source=store.source,
        )


def _at(second: int) -> datetime:
    return datetime.fromtimestamp(second, UTC)
