"""What the price tools have in common: which feeds are meant, on which channel, and that one hides no other."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeVar

from pydantic import Field
from typing_extensions import TypedDict

from quantdeck.core.errors import SourceError, ToolError
from quantdeck.dialects.pyth import ENTITLEMENT, INVALID_INPUT, NOT_FOUND
from quantdeck.domain.pyth_feeds import Ambiguous, Catalog, Feed, Inactive, Unresolved
from quantdeck.domain.pyth_numbers import exact, is_faster, pace_us
from quantdeck.servers.pyth_pro.access import Access
from quantdeck.sources.pyth import InvalidToken, KeyTypes, NotEntitled, Pyth, Refused, UnknownFeed

__all__ = [
    "Channel",
    "LeftOut",
    "Question",
    "answered",
    "check_channel",
    "feed_not_found",
    "question",
    "slowest_of",
    "unresolved",
]

T = TypeVar("T")


class LeftOut(TypedDict):
    """A feed that is not among the answer's, and why."""

    price_feed_id: int | None
    symbol: str | None
    reason: str


Channel = Annotated[str | None, Field(description="Override default channel")]

_ROUNDS = 12
_NAMED = 8
_LONGEST = 120
_NOT_READY = ("beta", "coming_soon")
_UNKNOWN = "no such feed"


def feed_not_found(symbol: str | int) -> str:
    """The spec's sentence."""
    return f"Feed not found: {symbol}. Use get_symbols to discover available feeds."


@dataclass
class Question:
    """Feeds that are asked about, in the order of the call, and what their list says of them.

    Each by its id; by its symbol, as it was written, where the list cannot be had.
    """

    feeds: dict[int | str, Feed | None]
    channel: str
    catalog: Catalog | None
    token: str | None
    resolved: dict[str, str] = field(default_factory=dict)
    missing: dict[int | str, str] = field(default_factory=dict)  # feeds without an answer, and why
    refused: dict[int | str, str] = field(default_factory=dict)  # feeds that the token does not cover, and what it said
    note: str = ""

    @property
    def by_symbol(self) -> bool:
        return any(isinstance(key, str) for key in self.feeds)

    def left(self) -> list[Any]:
        """Feeds of which nothing is known yet."""
        return [key for key in self.feeds if key not in self.missing and key not in self.refused]

    def leave_out_unready(self) -> None:
        """The history refuses a whole batch for a feed that is not published yet."""
        self.missing |= {
            key: f"not ready: its state is {feed.state}"
            for key, feed in self.feeds.items()
            if feed is not None and feed.state in _NOT_READY
        }

    def settle(self, rows: Sequence[Mapping[str, Any]], member: str, why: Callable[[Feed | None], str]) -> int:
        """Take note of the feeds that no row is of; `member` names a row's id. How many there is a row of."""
        there: set[int | str | None] = {exact(row[member]) for row in rows}
        named = {self.symbol_of(row) for row in rows} - {None}
        if self.by_symbol and rows and not named:
            self.note = _UNNAMED
        else:
            self.missing |= {key: why(self.feeds[key]) for key in self.left() if key not in there | named}
        return len(there)

    def symbol_of(self, row: Mapping[str, Any]) -> str | None:
        """Of a row whose feed the list did not name: the symbol that it was asked by."""
        symbol = row.get("symbol")
        return symbol if isinstance(symbol, str) and symbol in self.feeds else None

    def told(self) -> dict[str, Any]:
        """What an answer says beside its rows."""
        return {
            "channel": self.channel,
            **({"resolved_symbols": self.resolved} if self.resolved else {}),
            **({"missing": self._named(self.missing)} if self.missing else {}),
            **({"not_entitled": self._named(self.refused)} if self.refused else {}),
            **({"note": self.note} if self.note else {}),
        }

    def name(self, key: int | str) -> int | str:
        """A feed's symbol, or its id where the symbol is not known."""
        feed = self.feeds.get(key)
        return key if feed is None else feed.symbol

    def _named(self, feeds: Mapping[int | str, str]) -> list[dict[str, Any]]:
        return [
            {
                "price_feed_id": key if isinstance(key, int) else None,
                "symbol": name if isinstance(name := self.name(key), str) else None,
                "reason": why,
            }
            for key, why in feeds.items()
        ]


_UNNAMED = (
    "The list of feeds is out of reach, and some of these symbols have no price: rows are in the order of the call, "
    "and which are missing cannot be told. Ask for one symbol at a time, or again later."
)
_IN_FULL = "The list of feeds is out of reach just now, so symbols must be written in full, such as Crypto.BTC/USD"


def check_channel(channel: str | None, known: KeyTypes) -> None:
    """Refuse a channel that nobody has heard of."""
    if channel is not None and channel not in known.channels:
        told = f"Invalid channel: {channel[:80]}. Valid channels: {', '.join(known.channels)}"
        raise INVALID_INPUT(told, channel=channel[:80], valid=list(known.channels))


def slowest_of(channel: str | None, feeds: Iterable[Feed | None], default: str) -> str:
    """The channel to ask on: the asked one, which no feed may be too slow for, else the default or a slower one."""
    known = [feed for feed in feeds if feed is not None]
    if channel is None:
        needed = [feed.min_channel for feed in known if is_faster(default, feed.min_channel)]
        return max(needed, key=lambda name: pace_us(name) or 0, default=default)
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
    check_channel(channel, pyth.known)
    access.note(symbols_queried=[] if ids else list(symbols or ()), feed_ids_queried=list(ids or ()))
    if not ids and not symbols:
        raise INVALID_INPUT("Nothing was asked for: give symbols, such as BTC/USD, or price feed ids.")
    token = await access.for_prices()
    if token is None and needs_token and pyth.wants_token:
        raise InvalidToken(missing=True)
    # Without the list ids can be asked about, and with a token full symbols: the router knows them.
    catalog = await _catalog(pyth, access, token, needed=not ids and token is None)
    feeds: dict[int | str, Feed | None]
    resolved: dict[str, str] = {}
    if ids:
        feeds = {number: catalog.by_id.get(number) if catalog else None for number in ids}
    elif catalog is None:
        feeds = dict.fromkeys(said.strip()[:_LONGEST] for said in symbols or ())
    else:
        found = _resolved(catalog, list(dict.fromkeys(symbols or ())))
        feeds = {feed.id: feed for feed in found.values()}
        resolved = {said: feed.symbol for said, feed in found.items() if said != feed.symbol}
    chosen = slowest_of(channel, feeds.values(), access.settings.channel)
    kinds = sorted({feed.asset_type for feed in feeds.values() if feed})
    numbers = [key for key in feeds if isinstance(key, int)]
    access.note(num_feeds=len(feeds), channel=chosen, asset_types=kinds, feed_ids_queried=numbers)
    return Question(feeds, chosen, catalog, token, resolved)


async def _catalog(pyth: Pyth, access: Access, token: str | None, *, needed: bool) -> Catalog | None:
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


async def answered(pyth: Pyth, access: Access, asked: Question, ask: Callable[[list[Any]], Awaitable[T]]) -> T:
    """What Pyth says of the feeds that it will speak of; those that it will not are left in the question, with why.

    One feed that a token does not cover has the whole batch refused, so it is asked again without.
    """
    for _ in range(_ROUNDS):
        left = asked.left()
        if not left:
            break
        try:
            return await access.timed(ask(left))
        except NotEntitled as error:
            if not (refused := await _refused(pyth, access, asked, error)):
                raise
            asked.refused |= refused
        except UnknownFeed as error:
            if not (unknown := _unknown(asked, error)):
                raise
            asked.missing |= dict.fromkeys(unknown, _UNKNOWN)
        except Refused as error:
            if not asked.by_symbol or error.is_unready:
                raise
            raise INVALID_INPUT(f"{_IN_FULL}. {error.message}", symbols=left[:_NAMED]) from None
    raise _nothing_left(asked)


async def _refused(pyth: Pyth, access: Access, asked: Question, error: NotEntitled) -> dict[int | str, str]:
    """The feed that is named, with the reason, and those that the token's own list does not have.

    The service names one at a time, or none; that list is asked for where there may be more.
    """
    named = dict.fromkeys((key for key in asked.left() if key == error.feed_id), error.reason)
    if named and not asked.refused:
        return named
    try:
        covered = await access.timed(pyth.covered(token=asked.token))
    except SourceError:
        return named
    others = [key for key in asked.left() if isinstance(key, int) and key not in covered]
    return dict.fromkeys(others, "not covered by this token") | named


def _unknown(asked: Question, error: UnknownFeed) -> list[int | str]:
    """The feed that is named; if it is not the first, or none is named, all that the list of feeds does not have."""
    named = [key for key in asked.left() if key == error.feed_id]
    if (named and _UNKNOWN not in asked.missing.values()) or asked.catalog is None:
        return named
    return named + [key for key in asked.left() if key not in asked.catalog.by_id]


def _nothing_left(asked: Question) -> ToolError:
    if asked.refused:
        number, why = next(iter(asked.refused.items()))
        told = f"Your Pyth Pro access token does not cover {asked.name(number)}: {why}."
        return ENTITLEMENT(told, not_entitled=list(asked.refused))
    number, why = next(iter(asked.missing.items()))
    told = feed_not_found(asked.name(number)) if why == _UNKNOWN else f"{asked.name(number)} is {why}."
    return NOT_FOUND(told, missing=list(asked.missing))
