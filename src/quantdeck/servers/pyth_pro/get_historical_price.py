"""get_historical_price: what feeds stood at, at a time in the past."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from quantdeck.core.clock import Now, iso
from quantdeck.core.errors import ToolError
from quantdeck.dialects.pyth import INVALID_INPUT, NOT_FOUND
from quantdeck.dialects.pyth import pyth as spec
from quantdeck.domain.pyth_numbers import HISTORY_BEGAN, channel_step_us, exact, iso_of_us, microseconds
from quantdeck.servers.pyth_pro.access import WATERMARK, Access
from quantdeck.servers.pyth_pro.asking import Channel, LeftOut, Question, answered, question
from quantdeck.servers.pyth_pro.showing import Meaning, kinds_of, market_state, shown, sound
from quantdeck.sources.pyth import Pyth, UnknownFeed

NO_PRICE = (
    "No price data available at the requested timestamp. Try a different timestamp or check if the market was open."
)

_DECIMALS = {
    "display_price": "price",
    "display_bid": "best_bid_price",
    "display_ask": "best_ask_price",
    "display_confidence": "confidence",
    "display_ema_price": "ema_price",
    "display_ema_confidence": "ema_confidence",
    "display_funding_rate": "funding_rate",
}

Number = int | str | None


class HistoricalPrice(Meaning):
    """A row as Pyth has it, and in decimal what its integers mean."""

    price_feed_id: int
    publish_time: NotRequired[Number]
    channel: NotRequired[int | str | None]
    price: NotRequired[Number]
    best_bid_price: NotRequired[Number]
    best_ask_price: NotRequired[Number]
    confidence: NotRequired[Number]
    exponent: NotRequired[Number]
    publisher_count: NotRequired[Number]
    served_by: NotRequired[Annotated[str, Field(description="router: the history was out of reach")]]


_KINDS = kinds_of(HistoricalPrice)


class HistoricalPrices(TypedDict):
    prices: list[HistoricalPrice]
    count: int
    timestamp_us: Annotated[int, Field(description="The time that was asked, aligned down to the channel")]
    timestamp: str
    channel: str
    resolved_symbols: NotRequired[dict[str, str]]
    missing: NotRequired[list[LeftOut]]
    not_entitled: NotRequired[list[LeftOut]]
    note: NotRequired[str]
    trial_notice: NotRequired[str]


@spec.tool()
async def get_historical_price(
    pyth: Pyth,
    access: Access,
    now: Now,
    timestamp: Annotated[
        float,
        Field(
            description="Unix timestamp in **seconds or milliseconds** (auto-detected by magnitude; converted to "
            "microseconds internally)"
        ),
    ],
    ids: Annotated[list[int] | None, Field(description="Price feed IDs")] = None,
    symbols: Annotated[
        list[str] | None, Field(description='Symbol names (e.g. ["BTC/USD"]) — resolved to IDs internally')
    ] = None,
    channel: Channel = None,
    priceFeedIds: Annotated[list[int] | None, Field(description="Same as ids")] = None,  # noqa: N803 - on the wire
    price_feed_ids: Annotated[list[int] | None, Field(description="Same as ids")] = None,
) -> HistoricalPrices:
    """Get the price of one or more feeds at one moment since April 2025.

    Find ids or symbols with get_symbols. Read display_price: price is an integer that means price x 10^exponent. For a
    range of time use get_candlestick_data, for now get_latest_price.
    """
    at_us = _moment(timestamp)
    asked = await question(
        pyth, access, ids=unique(ids, priceFeedIds, price_feed_ids), symbols=symbols, channel=channel
    )
    at_us -= at_us % channel_step_us(asked.channel)
    begins_us = int(HISTORY_BEGAN.timestamp()) * 1_000_000
    if at_us < begins_us or (not now.fixed and at_us > now.timestamp() * 1_000_000):
        raise _out_of_range(at_us, now, early=at_us < begins_us)
    asked.leave_out_unready()

    async def ask(left: list[Any]) -> list[dict[str, Any]]:
        return await pyth.prices(left, at_us, asked.channel, token=asked.token, as_of=now)

    try:
        rows = await answered(pyth, access, asked, ask)
    except UnknownFeed:
        rows = []
    if not rows:
        raise NOT_FOUND(NO_PRICE, timestamp=iso_of_us(at_us), feeds=[asked.name(number) for number in asked.feeds])
    access.note(num_feeds_returned=asked.settle(rows, "price_feed_id", lambda _: "no price at that time"))
    at = Now.of(datetime.fromtimestamp(at_us // 1_000_000, UTC), fixed=True)
    answer: Any = {
        "prices": [_row(row, asked, at) for row in rows],
        "count": len(rows),
        "timestamp_us": at_us,
        "timestamp": iso_of_us(at_us),
        **asked.told(),
        **({"trial_notice": WATERMARK} if access.is_trial else {}),
    }
    return answer  # type: ignore[no-any-return]


def unique(*lists: list[int] | None) -> list[int]:
    """The ids of all spellings of one argument, each once and in order."""
    found = list(dict.fromkeys(number for given in lists for number in given or ()))
    if wrong := [number for number in found if not 0 < number < 2**32]:
        raise INVALID_INPUT(f"A price feed id is a positive number; {wrong[0]} is none.", ids=wrong[:5])
    return found


def _moment(timestamp: float) -> int:
    try:
        return microseconds(timestamp)
    except ValueError as error:
        raise INVALID_INPUT(f"Invalid timestamp: {error}.", timestamp=timestamp) from None


def _out_of_range(at_us: int, now: Now, *, early: bool) -> ToolError:
    begins = iso(HISTORY_BEGAN)
    told = f"Prices begin at {begins}" if early else f"That is later than now, {iso(now)}"
    direction = "too_early" if early else "too_late"
    return NOT_FOUND(f"{NO_PRICE} {told}.", timestamp=iso_of_us(at_us) if at_us < _LAST_US else None,
                     direction=direction, valid_from=begins)  # fmt: skip


_LAST_US = 253_402_300_800_000_000


def _row(row: dict[str, Any], asked: Question, at: Now) -> dict[str, Any]:
    told = sound(row, _KINDS)
    number = exact(row["price_feed_id"])
    feed = asked.feeds.get(number or 0)
    exponent = told.get("exponent")
    if exponent is None and feed is not None:
        exponent = feed.exponent
    return {
        **told,
        "price_feed_id": number,
        "symbol": asked.symbol_of(row) if feed is None else feed.symbol,
        **shown(told, _DECIMALS, exponent),
        **market_state(feed, at),
    }
