"""What is missing, asked of REST and written page by page."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

from quantdeck.connections.alpaca import AlpacaApi, Question, Refused
from quantdeck.domain.candles import Bars
from quantdeck.domain.watchlist import is_crypto

__all__ = ["Gap", "filled"]

log = logging.getLogger(__name__)

_AT_ONCE = 100
"""Symbols in one question: they stand in its address."""
_DAY_S = 86_400


@dataclass(slots=True)
class Gap:
    """Bars of a symbol from the start to before the end. What is done is cut off; the rest can be gone on with."""

    symbol: str
    start_s: int
    end_s: int


async def filled(api: AlpacaApi, gaps: Iterable[Gap], keep: Callable[[str, Bars], Awaitable[None]]) -> set[str]:
    """Have every bar of the gaps kept; the symbols that Alpaca does not know. Raises a SourceError."""
    refused = set[str]()
    for together in _groups(gap for gap in gaps if gap.start_s < gap.end_s):
        try:
            await _ask(api, together, keep)
        except Refused:
            for gap in together:
                refused |= await _alone(api, gap, keep)
    return refused


async def _alone(api: AlpacaApi, gap: Gap, keep: Callable[[str, Bars], Awaitable[None]]) -> set[str]:
    """One question for one symbol: a name that is none refuses all that are asked for with it."""
    try:
        await _ask(api, [gap], keep)
    except Refused as error:
        log.error("alpaca_refused_symbol", extra={"fields": {"symbol": gap.symbol, "why": error.message}})  # noqa: TRY400
        gap.start_s = gap.end_s
        return {gap.symbol}
    return set()


async def _ask(api: AlpacaApi, gaps: list[Gap], keep: Callable[[str, Bars], Awaitable[None]]) -> None:
    by_symbol = {gap.symbol: gap for gap in gaps}
    start_s, end_s = min(gap.start_s for gap in gaps), max(gap.end_s for gap in gaps)
    async for page in api.pages(Question(tuple(by_symbol), start_s, end_s)):
        for symbol, bars in page.items():
            gap = by_symbol.get(symbol)
            if gap is None:
                continue
            wanted = bars.between(gap.start_s, gap.end_s)
            if len(wanted):
                await keep(symbol, wanted)
                gap.start_s = int(wanted.time[-1]) + 60
    for gap in gaps:
        gap.start_s = gap.end_s


def _groups(gaps: Iterable[Gap]) -> Iterator[list[Gap]]:
    """Gaps that one question can be asked for: all stocks or all coins, of about the same days."""

    def alike(gap: Gap) -> tuple[bool, int, int]:
        return is_crypto(gap.symbol), gap.start_s // _DAY_S, gap.end_s // _DAY_S

    for _, together in groupby(sorted(gaps, key=alike), alike):
        yield from _parts(list(together))


def _parts(gaps: list[Gap]) -> Iterator[list[Gap]]:
    for at in range(0, len(gaps), _AT_ONCE):
        yield gaps[at : at + _AT_ONCE]
