"""What the price tools have in common: which feeds are meant, on which channel, and that one hides no other."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import Annotated, Any, TypeVar

from pydantic import Field
from typing_extensions import TypedDict

from quantdeck.core.clock import Now, iso
from quantdeck.core.errors import SourceError, ToolError
from quantdeck.dialects.pyth import ENTITLEMENT, INVALID_INPUT, NOT_FOUND
from quantdeck.domain.pyth_feeds import Ambiguous, Catalog, Feed, Inactive, Unresolved
from quantdeck.domain.pyth_numbers import CHANNELS, basis_points, display, is_faster
from quantdeck.domain.pyth_schedules import schedule_of
from quantdeck.servers.pyth_pro.access import Access
from quantdeck.sources.pyth import InvalidToken, NotEntitled, Pyth, UnknownFeed

__all__ = [
    "Channel",
    "LeftOut",
    "Question",
    "answered",
    "check_channel",
    "feed_not_found",
    "market_state",
    "question",
    "shown",
    "slowest_of",
    "unresolved",
]

T = TypeVar("T")


class LeftOut(TypedDict):
    """A feed that is not among the answer's, and why."""

    price_feed_id: int
    symbol: str | None
    reason: str


Channel = Annotated[str | None, Field(description="Override default channel")]

_ROUNDS = 12
_STATES_KEPT = 2048
_NAMED = 8
_NOT_READY = ("beta", "coming_soon")


def feed_not_found(symbol: str | int) -> str:
    """The spec's sentence."""
    return f"Feed not found: {symbol}. Use get_symbols to discover available feeds."


@dataclass
class Question:
    """Feeds that are asked about, by id in the order of the call; None where the list does not have them."""

    feeds: dict[int, Feed | None]
    channel: str
    catalog: Catalog | None
    token: str | None
    resolved: dict[str, str] = field(default_factory=dict)
    missing: dict[int, str] = field(default_factory=dict)  # feeds without an answer, and why
    refused: dict[int, str] = field(default_factory=dict)  # feeds that the token does not cover, and what was said

    def told(self) -> dict[str, Any]:
        """What an answer says beside its rows."""
        return {
            "channel": self.channel,
            **({"resolved_symbols": self.resolved} if self.resolved else {}),
            **({"missing": self._named(self.missing)} if self.missing else {}),
            **({"not_entitled": self._named(self.refused)} if self.refused else {}),
        }

    def name(self, number: int) -> str | int:
        """A feed's symbol, or its id where the symbol is not known."""
        feed = self.feeds.get(number)
        return number if feed is None else feed.symbol

    def _named(self, feeds: Mapping[int, str]) -> list[dict[str, Any]]:
        return [
            {
                "price_feed_id": number,
                "symbol": feed.symbol if (feed := self.feeds.get(number)) else None,
                "reason": why,
            }
            for number, why in feeds.items()
        ]


def check_channel(channel: str | None) -> None:
    """Refuse a channel that there is none of."""
    if channel is not None and channel not in CHANNELS:
        told = f"Invalid channel: {channel[:80]}. Valid channels: {', '.join(CHANNELS)}"
        raise INVALID_INPUT(told, channel=channel[:80], valid=list(CHANNELS))


def slowest_of(channel: str | None, feeds: Iterable[Feed | None], default: str) -> str:
    """The channel to ask on: the asked one, which no feed may be too slow for, else the default or a slower one."""
    known = [feed for feed in feeds if feed is not None]
    if channel is None:
        needed = [feed.min_channel for feed in known if is_faster(default, feed.min_channel)]
        return max(needed, key=CHANNELS.index, default=default)
    if slow := [feed for feed in known if is_faster(channel, feed.min_channel)]:
        told = "; ".join(f"{feed.symbol} has {feed.min_channel} at the fastest" for feed in slow[:_NAMED])
        raise INVALID_INPUT(
            f"Channel {channel} is too fast: {told}. Use that channel or a slower one, or leave the channel out.",
            channel=channel,
            min_channels={feed.symbol: feed.min_channel for feed in slow},
        )
    return channel


async def question(
    pyth: Pyth,
    access: Access,
    *,
    ids: Sequence[int] | None,
    symbols: Sequence[str] | None,
    channel: str | None,
    needs_token: bool = False,
) -> Question:
    """What is asked, resolved and checked as far as the list of feeds allows; ids count before symbols."""
    check_channel(channel)
    access.note(symbols_queried=[] if ids else list(symbols or ()), feed_ids_queried=list(ids or ()))
    if not ids and not symbols:
        raise INVALID_INPUT("Nothing was asked for: give symbols, such as BTC/USD, or price feed ids.")
    token = await access.for_prices()
    if token is None and needs_token and pyth.wants_token:
        raise InvalidToken(missing=True)
    catalog = await _catalog(pyth, access, token, needed=not ids)
    if ids:
        feeds = {number: catalog.by_id.get(number) if catalog else None for number in ids}
        resolved: dict[str, str] = {}
    else:
        assert catalog is not None
        found = _resolved(catalog, list(dict.fromkeys(symbols or ())))
        feeds = {feed.id: feed for feed in found.values()}
        resolved = {said: feed.symbol for said, feed in found.items() if said != feed.symbol}
    chosen = slowest_of(channel, feeds.values(), access.settings.channel)
    kinds = sorted({feed.asset_type for feed in feeds.values() if feed})
    access.note(num_feeds=len(feeds), channel=chosen, asset_types=kinds, feed_ids_queried=list(feeds))
    return Question(feeds, chosen, catalog, token, resolved)


async def _catalog(pyth: Pyth, access: Access, token: str | None, *, needed: bool) -> Catalog | None:
    """The list of feeds. Who asks by id can do without."""
    try:
        return await access.timed(pyth.catalog(token=token))
    except InvalidToken:
        raise
    except SourceError:
        if needed:
            raise
        return None


def _resolved(catalog: Catalog, symbols: Sequence[str]) -> dict[str, Feed]:
    found: dict[str, Feed] = {}
    problems: list[ToolError] = []
    for said in symbols:
        try:
            found[said] = catalog.resolve(said)
        except Unresolved as error:
            problems.append(unresolved(error))
    if problems:
        first = problems[0]
        lines = "\n".join(problem.message for problem in problems[:_NAMED])
        raise ToolError(first.code, lines, {"unresolved": [problem.details for problem in problems[:_NAMED]]})
    return found


def unresolved(error: Unresolved) -> ToolError:
    """What is said of a symbol that does not mean one feed."""
    if isinstance(error, Ambiguous):
        names = [feed.symbol for feed in error.feeds]
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        told = (
            f"Ambiguous symbol: {error.symbol} could be {', '.join(names[:_NAMED])}{more}. Write one of them in full."
        )
        return INVALID_INPUT(told, symbol=error.symbol, candidates=names[:_NAMED])
    if isinstance(error, Inactive):
        names = [feed.symbol for feed in error.feeds][:_NAMED]
        told = f"{feed_not_found(error.symbol)} It is no longer published: {', '.join(names)}."
        return NOT_FOUND(told, symbol=error.symbol, inactive=names)
    return NOT_FOUND(feed_not_found(error.symbol), symbol=error.symbol)


async def answered(
    pyth: Pyth, access: Access, asked: Question, ask: Callable[[list[int]], Awaitable[T]], *, ready_only: bool
) -> T:
    """What Pyth says of the feeds that it will speak of; those that it will not are left in the question, with why.

    One feed that a token does not cover has the whole batch refused, so it is asked again without.
    """
    if ready_only:
        asked.missing |= {
            number: f"not ready: its state is {feed.state}"
            for number, feed in asked.feeds.items()
            if feed is not None and feed.state in _NOT_READY
        }
    for _ in range(_ROUNDS):
        left = [number for number in asked.feeds if number not in asked.missing and number not in asked.refused]
        if not left:
            break
        try:
            return await access.timed(ask(left))
        except NotEntitled as error:
            if error.feed_id not in left:
                raise
            if asked.refused:  # a second one: there may be many, and the service names one at a time
                covered = await access.timed(pyth.covered(token=asked.token))
                asked.refused |= {number: _NOT_COVERED for number in left if number not in covered}
            asked.refused[error.feed_id] = error.reason
        except UnknownFeed as error:
            unknown = [number for number in left if number == error.feed_id] or _not_listed(asked, left)
            if not unknown:
                raise
            asked.missing |= dict.fromkeys(unknown, "no such feed")
    raise _nothing_left(asked)


_NOT_COVERED = "not covered by this token"


def _not_listed(asked: Question, ids: list[int]) -> list[int]:
    return [number for number in ids if asked.catalog is not None and number not in asked.catalog.by_id]


def _nothing_left(asked: Question) -> ToolError:
    if asked.refused:
        number, why = next(iter(asked.refused.items()))
        told = f"Your Pyth Pro access token does not cover {asked.name(number)}: {why}."
        return ENTITLEMENT(told, not_entitled=list(asked.refused))
    number, why = next(iter(asked.missing.items()))
    told = feed_not_found(asked.name(number)) if why == "no such feed" else f"{asked.name(number)} is {why}."
    return NOT_FOUND(told, missing=list(asked.missing))


def market_state(feed: Feed | None, at: Now) -> Mapping[str, Any]:
    """Whether a feed's market is open, and when that changes; None where its schedule is not known."""
    return _state("" if feed is None else feed.schedule, int(at.timestamp()) // 60)


@lru_cache(_STATES_KEPT)
def _state(schedule: str, minute: int) -> Mapping[str, Any]:
    """By the minute, which is as finely as markets open and close: a page of feeds has few schedules."""
    read = schedule_of(schedule)
    if read is None:
        return {"market_open": None}
    state = read.state(datetime.fromtimestamp(minute * 60, UTC))
    changes = {} if state.changes_at is None else {"market_changes_at": iso(state.changes_at)}
    return {"market_open": state.is_open, **changes}


def shown(row: Mapping[str, Any], names: Mapping[str, str], exponent: Any) -> dict[str, Any]:
    """What a row's integers mean: `names` are its members by what they are called in decimal."""
    held = {name: display(row.get(member), exponent) for name, member in names.items()}
    price, bid, ask = (row.get(names[f"display_{name}"]) for name in ("price", "bid", "ask"))
    spread = None
    if held.get("display_bid") and held.get("display_ask"):
        spread = basis_points(int(ask) - int(bid), price)  # type: ignore[arg-type]  # or neither could be shown
    parts = {"confidence_bps": basis_points(row.get("confidence"), price), "spread_bps": spread}
    return {name: value for name, value in {**held, **parts}.items() if value is not None}
