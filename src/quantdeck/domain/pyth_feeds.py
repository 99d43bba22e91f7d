"""Pyth's feeds: one row of their list, and which feed a symbol means."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, TypeGuard

from quantdeck.domain.symbols import UnknownSymbolError, pair

__all__ = ["Ambiguous", "Catalog", "Feed", "Inactive", "Unresolved", "read_feed"]

_LONGEST = 120
_QUERIES_KEPT = 256


@dataclass(frozen=True, slots=True)
class Feed:
    """One feed. Words that nobody knew when this was written are kept as they are."""

    id: int
    name: str
    symbol: str
    description: str = ""
    asset_type: str = ""
    instrument_type: str = ""
    exponent: int | None = None
    min_channel: str = ""
    state: str = ""
    hermes_id: str | None = None
    quote_currency: str | None = None
    schedule: str = ""
    sessions: Mapping[str, str] | None = None  # of each session its schedule

    @property
    def tail(self) -> str:
        """`BTC/USD` of `Crypto.BTC/USD`."""
        return self.symbol.rpartition(".")[2]


def read_feed(row: Any) -> Feed | None:
    """A row of the service's list; None for one without an id or a symbol, which nobody could ask for."""
    if not isinstance(row, dict):
        return None
    number, symbol = row.get("pyth_lazer_id"), row.get("symbol")
    if not _is_integer(number, 1, 2**32) or not isinstance(symbol, str) or not symbol:
        return None
    exponent = row.get("exponent")
    return Feed(
        number,
        _text(row, "name"),
        symbol,
        _text(row, "description"),
        _text(row, "asset_type"),
        _text(row, "instrument_type"),
        exponent if _is_integer(exponent, -(2**15), 2**15) else None,
        _text(row, "min_channel"),
        _text(row, "state"),
        _text(row, "hermes_id") or None,
        _text(row, "quote_currency") or None,
        _text(row, "schedule"),
        _sessions(row.get("market_sessions")),
    )


def _is_integer(value: Any, least: int, beyond: int) -> TypeGuard[int]:
    """Whether a value is one that the service's own type can hold; no answer could carry any."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value < beyond


def _text(row: Mapping[str, Any], name: str) -> str:
    held = row.get(name)
    return held if isinstance(held, str) else ""


def _sessions(held: Any) -> Mapping[str, str] | None:
    if not isinstance(held, dict) or len(held) < 2:
        return None  # one session is the schedule itself
    schedules = {name: one.get("schedule") for name, one in held.items() if isinstance(one, dict)}
    return {name: text for name, text in schedules.items() if isinstance(text, str)}


class Unresolved(ValueError):
    """No feed has this symbol."""

    def __init__(self, symbol: str) -> None:
        super().__init__(symbol)
        self.symbol = symbol


class Ambiguous(Unresolved):
    """Several feeds have it, and nobody can say which is meant."""

    def __init__(self, symbol: str, feeds: Sequence[Feed]) -> None:
        super().__init__(symbol)
        self.feeds = feeds


class Inactive(Unresolved):
    """Only feeds have it that are no longer published."""

    def __init__(self, symbol: str, feeds: Sequence[Feed]) -> None:
        super().__init__(symbol)
        self.feeds = feeds


class Catalog:
    """All feeds that somebody may see, in the order of their ids."""

    def __init__(self, feeds: Iterable[Feed]) -> None:
        self.by_id = {feed.id: feed for feed in sorted(feeds, key=lambda feed: feed.id)}
        self.matching = lru_cache(_QUERIES_KEPT)(self._matching)  # per instance: it goes with its list

    @property
    def feeds(self) -> list[Feed]:
        return list(self.by_id.values())

    @cached_property
    def asset_types(self) -> list[str]:
        """Those that occur, in order."""
        return sorted({feed.asset_type for feed in self.by_id.values()} - {""})

    @cached_property
    def _by_symbol(self) -> dict[str, Feed]:
        return {feed.symbol: feed for feed in self.by_id.values()}

    @cached_property
    def _by_ending(self) -> dict[str, list[Feed]]:
        """By everything that a symbol in small letters ends in after a dot, the whole of it included."""
        found: dict[str, list[Feed]] = {}
        for feed in self.by_id.values():
            whole = feed.symbol.lower()
            for at in [0, *(place + 1 for place, sign in enumerate(whole) if sign == ".")]:
                found.setdefault(whole[at:], []).append(feed)
        return found

    @cached_property
    def _by_word(self) -> dict[str, list[Feed]]:
        """By its name, and by the first half of its pair."""
        found: dict[str, list[Feed]] = {}
        for feed in self.by_id.values():
            for word in {feed.name.lower(), feed.tail.partition("/")[0].lower()} - {""}:
                found.setdefault(word, []).append(feed)
        return found

    @cached_property
    def _texts(self) -> list[tuple[str, Feed]]:
        return [(f"{feed.name}\n{feed.symbol}\n{feed.description}".lower(), feed) for feed in self.by_id.values()]

    def resolve(self, text: str) -> Feed:
        """The one feed that is meant: by its symbol, its pair without what stands before it, its name or its base.

        Exact comes before everything, and the whole before its end. Of several, live ones count before others and spot
        before other instruments; what is then left must be one. Raises Unresolved.
        """
        said = text.strip()[:_LONGEST]
        if feed := self._by_symbol.get(said):
            return feed
        ending = self._by_ending.get(said.lower(), [])
        if len(whole := [feed for feed in ending if len(feed.symbol) == len(said)]) == 1:
            return whole[0]
        for candidates in (find(said) for find in self._ways):
            if candidates:
                return _the_one(said, candidates)
        raise Unresolved(said)

    @property
    def _ways(self) -> tuple[Callable[[str], list[Feed]], ...]:
        return (
            lambda said: self._by_ending.get(said.lower(), []),
            lambda said: self._by_ending.get(_pair(said), []),
            lambda said: self._by_word.get(said.lower(), []),
        )

    def _matching(self, query: str, asset_type: str) -> tuple[Feed, ...]:
        """Feeds in whose texts all words of the query occur; first those that it names, then live ones, then by id."""
        words, whole = set(query.lower().split()), query.strip().lower()
        kind = asset_type.strip().lower()
        found = [
            feed
            for text, feed in self._texts
            if (not kind or feed.asset_type.lower() == kind) and all(word in text for word in words)
        ]
        return tuple(sorted(found, key=lambda feed: (_distance(feed, whole), feed.state != "stable", feed.id)))


def _distance(feed: Feed, whole: str) -> int:
    if not whole:
        return 0
    tail = feed.tail.lower()
    if whole in (feed.symbol.lower(), tail, feed.name.lower()):
        return 0
    return 1 if tail.partition("/")[0] == whole else 2


def _pair(said: str) -> str:
    try:
        return pair(said).lower()
    except UnknownSymbolError:
        return ""


_BETTER: tuple[Callable[[Feed], bool], ...] = (
    lambda feed: feed.state == "stable",
    lambda feed: feed.state != "coming_soon",
    lambda feed: feed.instrument_type == "spot",
)


def _the_one(said: str, candidates: list[Feed]) -> Feed:
    live = [feed for feed in candidates if feed.state not in ("inactive", "expired")]
    if not live:
        raise Inactive(said, candidates)
    for better in _BETTER:
        live = [feed for feed in live if better(feed)] or live
    if len(live) > 1:
        raise Ambiguous(said, live)
    return live[0]
