"""A collector on a stub that does everything to it that may happen, and whether nothing is lost."""

from __future__ import annotations

import asyncio
import random
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quantdeck.collectors.alpaca.collector import Collector
from quantdeck.collectors.alpaca.owed import Owed
from quantdeck.core.errors import NotConfigured
from quantdeck.domain.candles import Bars
from quantdeck.domain.timeframes import MINUTE
from quantdeck.domain.watchlist import DEFAULT
from quantdeck.settings import Alpaca
from quantdeck.sources.candles import Candles
from tests.support.alpaca_stub import KEY, SECRET, AlpacaStub, alpaca
from tests.support.bars import FAR, every, rows, walk
from tests.support.candle_stores import Place

__all__ = ["Soaked", "soak"]

_CHUNK = 50
"""Bars of a symbol that become known at once."""
_CORRECTED = 4
"""Of the newest of them; a real correction comes a minute and a half after its bar at most."""


@dataclass(frozen=True)
class Soaked:
    bars: int
    seconds: float
    connections: int
    most_connected: int
    lost: dict[str, int]  # by symbol, the bars in which the store differs


async def soak(place: Place, home: Path, *, symbols: int, bars: int, drops: int, flush_s: float = 0.5) -> Soaked:
    """Reveal bars chunk by chunk: in disorder, twice, corrected, and some while nobody is connected."""
    names = DEFAULT.symbols[-symbols:]
    dice = random.Random(7)
    with alpaca(lingers_s=0.05) as stub:
        first_s = MINUTE.floor(time.time()) - 60 * (bars + 2)
        world = {name: walk(every(60, first_s, bars), seed=number) for number, name in enumerate(names)}
        chunks = range(0, bars, _CHUNK)
        dropped = set(dice.sample(range(1, len(chunks)), drops))
        async with place.open() as store:
            collector = Collector(
                _settings(stub, flush_s), store, Owed(home / "alpaca.json", ""), days=bars // 1440 + 2
            )
            await collector.add(names)
            running = asyncio.create_task(collector.run())
            await _listening(stub, len(names))
            began = time.perf_counter()
            for number, at in enumerate(chunks):
                if number in dropped:
                    await asyncio.to_thread(stub.do, stub.stream.drop)
                elif number - 2 in dropped:
                    await _listening(stub, len(names))
                for name, whole in world.items():
                    await asyncio.to_thread(_reveal, stub, name, whole[at : at + _CHUNK], dice)
            await _listening(stub, len(names))
            lost = await _compared(stub, store, names)
            seconds = time.perf_counter() - began
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running
            await collector.close()
        return Soaked(len(names) * bars, seconds, stub.stream.accepted, stub.stream.most_connected, lost)


def _settings(stub: AlpacaStub, flush_s: float) -> Alpaca:
    given: dict[str, Any] = {"api_key": KEY, "secret_key": SECRET, "data_url": stub.data_url}
    return Alpaca.model_validate(
        {**given, "stream_url": stub.stream_url, "flush_s": flush_s, "backoff_s": 0.05, "backoff_max_s": 0.2}
    )


async def _listening(stub: AlpacaStub, many: int) -> None:
    while len(await asyncio.to_thread(stub.do, stub.stream.subscribed)) < many:  # noqa: ASYNC110 - on another thread
        await asyncio.sleep(0.01)


def _reveal(stub: AlpacaStub, name: str, bars: Bars, dice: random.Random) -> None:
    places = [*range(len(bars)), *dice.sample(range(len(bars)), 5)]
    dice.shuffle(places)
    stub.reveal(name, Bars(*(column[places] for column in bars.columns())))
    newest = bars[-_CORRECTED:]
    better = Bars(newest.time, newest.open, newest.high * 1.01, newest.low, newest.close, newest.volume + 1)
    stub.reveal(name, better, kind="u")


async def _compared(stub: AlpacaStub, store: Candles, names: tuple[str, ...]) -> dict[str, int]:
    """What differs when nothing more comes: ten times as long as a write takes nothing has changed."""
    before, same = dict[str, int](), 0
    while same < 10:
        lost = {name: await _differing(stub, store, name) for name in names}
        if not any(lost.values()):
            return {}
        same = same + 1 if lost == before else 0
        before = lost
        await asyncio.sleep(0.5)
    return {name: many for name, many in before.items() if many}


async def _differing(stub: AlpacaStub, store: Candles, name: str) -> int:
    try:
        held = rows(await store.newest(name, MINUTE, 10**6, as_of=FAR))
    except NotConfigured:
        held = []
    sent = await asyncio.to_thread(stub.do, lambda: stub.market.all(name))
    return len(set(held) ^ set(sent))
