"""get_latest_price: what feeds stand at now."""

from __future__ import annotations

from typing import Annotated, Any, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from quantdeck.core.clock import Now
from quantdeck.dialects.pyth import INVALID_INPUT
from quantdeck.dialects.pyth import pyth as spec
from quantdeck.domain.pyth_feeds import Feed
from quantdeck.domain.pyth_numbers import exact
from quantdeck.domain.pyth_types import snake
from quantdeck.servers.pyth_pro.access import WATERMARK, Access
from quantdeck.servers.pyth_pro.asking import Channel, LeftOut, Question, answered, question
from quantdeck.servers.pyth_pro.get_historical_price import unique
from quantdeck.servers.pyth_pro.showing import Meaning, kinds_of, market_state, shown, sound
from quantdeck.sources.pyth import KeyTypes, Pyth

DEFAULTS = ("price", "bestBidPrice", "bestAskPrice", "confidence", "exponent", "publisherCount")

_ALWAYS = ("exponent", "feedUpdateTimestamp", "marketSession")
"""Asked for in any case: a mantissa without its exponent says nothing, and a price must not look newer than it is."""

_SIGNED = frozenset(("evm", "solana", "leEcdsa", "leUnsigned", "leSigned"))

_DECIMALS = {
    "display_price": "price",
    "display_bid": "bestBidPrice",
    "display_ask": "bestAskPrice",
    "display_confidence": "confidence",
    "display_ema_price": "emaPrice",
    "display_ema_confidence": "emaConfidence",
    "display_funding_rate": "fundingRate",
}

Number = int | str | None


class LatestPrice(Meaning):
    """A row as Pyth sent it, and in decimal what its integers mean."""

    priceFeedId: int
    price: NotRequired[Number]
    bestBidPrice: NotRequired[Number]
    bestAskPrice: NotRequired[Number]
    confidence: NotRequired[Number]
    exponent: NotRequired[Number]
    publisherCount: NotRequired[Number]
    marketSession: NotRequired[str | None]
    feedUpdateTimestamp: NotRequired[Number]
    age_ms: NotRequired[Annotated[float, Field(description="How old the feed's own price is")]]
    is_fresh: NotRequired[Annotated[bool, Field(description="False: an old price is carried on")]]


_KINDS = kinds_of(LatestPrice)


class LatestPrices(TypedDict):
    timestampUs: str | int
    priceFeeds: list[LatestPrice]
    channel: str
    resolved_symbols: NotRequired[dict[str, str]]
    missing: NotRequired[list[LeftOut]]
    not_entitled: NotRequired[list[LeftOut]]
    note: NotRequired[str]
    trial_notice: NotRequired[str]


_OURS = LatestPrices.__annotations__.keys() - {"timestampUs"}


@spec.tool()
async def get_latest_price(
    pyth: Pyth,
    access: Access,
    now: Now,
    symbols: Annotated[list[str] | None, Field(description='Symbol names (e.g. ["BTC/USD", "ETH/USD"])')] = None,
    priceFeedIds: Annotated[  # noqa: N803 - its name on the wire
        list[int] | None, Field(description="Numeric feed IDs")
    ] = None,
    properties: Annotated[
        list[str] | None,
        Field(
            description="Properties to return; default price, bestBidPrice, bestAskPrice, confidence, exponent, "
            "publisherCount. Others: emaPrice, emaConfidence, fundingRate, fundingTimestamp, fundingRateInterval, "
            "marketSession, feedUpdateTimestamp"
        ),
    ] = None,
    channel: Channel = None,
    ids: Annotated[list[int] | None, Field(description="Same as priceFeedIds")] = None,
    price_feed_ids: Annotated[list[int] | None, Field(description="Same as priceFeedIds")] = None,
) -> LatestPrices:
    """Get the current price of one or more feeds; needs a Pyth Pro token.

    Find symbols with get_symbols; BTC/USD is understood, and many feeds fit into one call. Read display_price (price is
    an integer), and look at is_fresh and market_open before you trade on it. For the past use get_historical_price or
    get_candlestick_data.
    """
    wanted = await _properties(pyth, properties)
    asked = await question(
        pyth,
        access,
        ids=unique(priceFeedIds, ids, price_feed_ids),
        symbols=symbols,
        channel=channel,
        needs_token=True,
    )
    access.note(properties=wanted)
    upstream = list(dict.fromkeys((*wanted, *_ALWAYS)))

    async def ask(left: list[Any]) -> dict[str, Any]:
        return await pyth.latest(left, upstream, asked.channel, token=asked.token, as_of=now)

    told = await answered(pyth, access, asked, ask)
    rows = told["priceFeeds"]
    access.note(num_feeds_returned=asked.settle(rows, "priceFeedId", _why_missing))
    hidden = frozenset() if properties is None else frozenset(_ALWAYS) - frozenset(wanted)
    answer: Any = {
        **{name: held for name, held in told.items() if name not in _SIGNED and name not in _OURS},
        "priceFeeds": [_row(row, told.get("timestampUs"), asked, now, hidden) for row in rows],
        **asked.told(),
        **({"trial_notice": WATERMARK} if access.is_trial else {}),
    }
    return answer  # type: ignore[no-any-return]


async def _properties(pyth: Pyth, given: list[str] | None) -> list[str]:
    """Each once and in order; what has underscores is understood. One that is new may be the service's."""
    if not given:
        return list(DEFAULTS)
    spelt = _spellings(pyth.known)
    if any(name not in spelt for name in given):
        spelt = _spellings(await pyth.learn())
    if unknown := [name[:40] for name in given if name not in spelt]:
        valid = list(dict.fromkeys(spelt.values()))
        told = f"Invalid property: {', '.join(unknown[:5])}. Valid properties: {', '.join(valid)}"
        raise INVALID_INPUT(told, properties=unknown[:5], valid=valid)
    return list(dict.fromkeys(spelt[name] for name in given))


def _spellings(known: KeyTypes) -> dict[str, str]:
    return {spelling: name for name in known.properties for spelling in (name, snake(name))}


def _why_missing(feed: Feed | None) -> str:
    return "no data now" if feed is None or feed.state == "stable" else f"its state is {feed.state}"


def _row(row: dict[str, Any], at_us: Any, asked: Question, now: Now, hidden: frozenset[str]) -> dict[str, Any]:
    told = sound(row, _KINDS)
    number = exact(row["priceFeedId"])
    feed = asked.feeds.get(number or 0)
    exponent = told.get("exponent", None if feed is None else feed.exponent)
    return {
        **{name: held for name, held in told.items() if name not in hidden and name not in _SIGNED},
        "priceFeedId": number,
        "symbol": asked.symbol_of(row) if feed is None else feed.symbol,
        **shown(told, _DECIMALS, exponent),
        **_freshness(at_us, told.get("feedUpdateTimestamp")),
        **market_state(feed, now),
    }


def _freshness(at_us: Any, updated_us: Any) -> dict[str, Any]:
    at, updated = exact(at_us), exact(updated_us)
    if at is None or updated is None:
        return {}
    return {"age_ms": (at - updated) / 1000, "is_fresh": at == updated}
