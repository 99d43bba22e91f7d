"""get_candlestick_data: how a feed's price moved."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Annotated, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from quantdeck.core.clock import Now, iso
from quantdeck.core.errors import SourceError, ToolError
from quantdeck.dialects.pyth import INVALID_INPUT, NOT_FOUND
from quantdeck.dialects.pyth import pyth as spec
from quantdeck.domain.pyth_feeds import Feed, Unresolved
from quantdeck.servers.pyth_pro.access import WATERMARK, Access
from quantdeck.servers.pyth_pro.asking import Channel, check_channel, feed_not_found, slowest_of, unresolved
from quantdeck.sources.pyth import RESOLUTIONS, CandleColumns, InvalidToken, Pyth, UnknownFeed, closes_at

MAX_CANDLES = 500
HINT = "narrow your time range or use a larger resolution"

_FIRST_LOOK = 10 * MAX_CANDLES
_WIDER = 8
_LONGEST = 120
_LATEST_S = 10**11
"""Seconds of the year 5138: what is later was meant in milliseconds."""


class Candles(TypedDict):
    s: str
    t: Annotated[list[int], Field(description="When each candle opened, Unix seconds, ascending")]
    o: list[float]
    h: list[float]
    l: list[float]  # noqa: E741 - its name on the wire
    c: list[float]
    v: list[float]
    count: int
    truncated: bool
    returned: NotRequired[int]
    total_available: NotRequired[Annotated[int, Field(description="In the whole range, where it was counted")]]
    hint: NotRequired[str]
    note: NotRequired[str]
    symbol: Annotated[str, Field(description="The feed's full symbol")]
    channel: str
    last_unfinished: NotRequired[Annotated[bool, Field(description="The last candle has not closed yet")]]
    trial_notice: NotRequired[str]


@spec.tool()
async def get_candlestick_data(
    pyth: Pyth,
    access: Access,
    now: Now,
    symbol: Annotated[str, Field(min_length=1, description='Trading pair (e.g. "BTC/USD")')],
    resolution: Annotated[
        str,
        Field(
            description="Candle size: `1`, `5`, `15`, `30`, `60`, `240`, `D`, `W`, `M`",
            json_schema_extra={"enum": list(RESOLUTIONS)},
        ),
    ],
    from_: Annotated[int, Field(gt=0, description="Start time (Unix seconds)")],
    to: Annotated[int, Field(gt=0, description="End time (Unix seconds)")],
    channel: Channel = None,
) -> Candles:
    """Fetch OHLC candlestick data for one symbol, for charting, technical analysis and backtesting.

    Find the symbol with get_symbols; BTC/USD is understood. Times are Unix seconds, prices are in the quote currency.
    At most 500 candles: of more the newest are kept, and truncated is true. For the price now use get_latest_price.
    """
    check_channel(channel, pyth.known)
    _check(resolution, from_, to)
    access.note(symbols_queried=[symbol], num_feeds=1)
    token = await access.for_prices()
    feed = await _feed(pyth, access, symbol, token)
    full = symbol.strip()[:_LONGEST] if feed is None else feed.symbol
    chosen = slowest_of(channel, [feed], access.settings.channel)
    kinds, ids = ([], []) if feed is None else ([feed.asset_type], [feed.id])
    access.note(channel=chosen, asset_types=kinds, feed_ids_queried=ids)

    end_s = to if now.fixed else min(to, int(now.timestamp()))

    async def found_on(chosen: str) -> tuple[CandleColumns, bool]:
        async def ask(begin_s: int, end_s: int) -> CandleColumns:
            return await access.timed(pyth.candles(full, resolution, begin_s, end_s, chosen, token=token, as_of=now))

        return await _newest(ask, resolution, from_, end_s)

    try:
        found, whole = await found_on(chosen)
    except UnknownFeed:
        if feed is not None:
            raise _no_feed(symbol) from None
        chosen = await _slowest(pyth, access, symbol, full, channel, chosen, token)
        access.note(channel=chosen)
        found, whole = await found_on(chosen)
    if not len(found):
        begin, end = (iso(datetime.fromtimestamp(at, UTC)) for at in (from_, to))
        told = f"No candles of {full} at resolution {resolution} between {begin} and {end}."
        raise NOT_FOUND(f"{told} Try a different time range or check if the market was open.", symbol=full)
    access.note(num_feeds_returned=1)
    return _answer(found, whole, full, chosen, resolution, now, is_trial=access.is_trial)


def _check(resolution: str, from_: int, to: int) -> None:
    if resolution not in RESOLUTIONS:
        told = f"Invalid OHLC resolution: {resolution[:20]}. Valid: {', '.join(RESOLUTIONS)}"
        raise INVALID_INPUT(told, resolution=resolution[:20], valid=list(RESOLUTIONS))
    if max(from_, to) >= _LATEST_S:
        raise INVALID_INPUT("from and to are Unix seconds; these look like milliseconds. Divide them by 1000.")
    if from_ > to:
        raise INVALID_INPUT("from is later than to; give the start of the range first.")


async def _feed(pyth: Pyth, access: Access, symbol: str, token: str | None) -> Feed | None:
    """Which feed is meant. Where the list cannot be had the symbol is taken as it is: the service knows full ones."""
    try:
        return (await access.timed(pyth.catalog(token=token))).resolve(symbol)
    except Unresolved as error:
        raise unresolved(error) from None
    except InvalidToken:
        raise
    except SourceError:
        return None


async def _slowest(
    pyth: Pyth, access: Access, symbol: str, full: str, asked: str | None, used: str, token: str | None
) -> str:
    """The channel on which there are candles at all, where the one used is too fast.

    Of such a channel the service says what it says of an unknown symbol; the list of feeds, which would tell, is not
    there.
    """
    slowest = pyth.known.channels[-1]
    if used == slowest or not await access.timed(pyth.has_chart(full, slowest, token=token)):
        raise _no_feed(symbol)
    if asked is not None:
        told = f"Channel {asked} is too fast for {full}. Use a slower one, or leave the channel out."
        raise INVALID_INPUT(told, channel=asked, symbol=full)
    return slowest


def _no_feed(symbol: str) -> ToolError:
    return NOT_FOUND(feed_not_found(symbol[:_LONGEST]), symbol=symbol[:_LONGEST])


async def _newest(
    ask: Callable[[int, int], Awaitable[CandleColumns]], resolution: str, begin_s: int, end_s: int
) -> tuple[CandleColumns, bool]:
    """The candles at the end of a range, enough of them; and whether they are all that the range has.

    Nobody wants to carry 288,000 to keep 500: what is looked through grows only while the market was mostly closed.
    """
    if begin_s > end_s:  # all of it lies ahead
        return CandleColumns([], [], [], [], [], []), True
    reach_s = _FIRST_LOOK * RESOLUTIONS[resolution]
    while True:
        start_s = max(begin_s, end_s - reach_s)
        found = await ask(start_s, end_s)
        if len(found) > MAX_CANDLES or start_s == begin_s:
            return found, start_s == begin_s
        reach_s *= _WIDER


def _answer(
    found: CandleColumns, whole: bool, symbol: str, channel: str, resolution: str, now: Now, *, is_trial: bool
) -> Candles:
    kept = found[max(len(found) - MAX_CANDLES, 0) :]
    truncated = len(kept) < len(found) or not whole
    answer: Candles = {
        "s": "ok", "t": kept.t, "o": kept.o, "h": kept.h, "l": kept.l, "c": kept.c, "v": kept.v,
        "count": len(kept), "truncated": truncated, "symbol": symbol, "channel": channel,
    }  # fmt: skip
    if truncated:
        since = iso(datetime.fromtimestamp(kept.t[0], UTC))
        answer |= {"returned": len(kept), "hint": HINT, "note": f"The newest are kept; they begin at {since}"}
        if whole:
            answer["total_available"] = len(found)
    if closes_at(kept.t[-1], resolution) > now.timestamp():
        answer["last_unfinished"] = True
    if is_trial:
        answer["trial_notice"] = WATERMARK
    return answer
