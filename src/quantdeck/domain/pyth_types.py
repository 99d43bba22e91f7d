"""The words of Pyth's vocabularies: channels, asset types, sessions, properties.

Those that were known when this was written, and those that the service has been heard to use since: in its list of
feeds, and in what it says of itself. What is known is never forgotten for an answer that lacks it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from typing import Any

from quantdeck.domain.pyth_feeds import Catalog
from quantdeck.domain.pyth_numbers import CHANNELS, pace_us

__all__ = ["BUILT_IN", "KeyTypes", "of_catalog", "of_document", "snake"]

_MOST = 200
_LONGEST = 60
_DEEPEST = 20


@dataclass(frozen=True, slots=True)
class KeyTypes:
    """Channels from the fastest on; the others in the order in which they became known."""

    channels: tuple[str, ...] = ()
    asset_types: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()
    properties: tuple[str, ...] = ()

    def __or__(self, other: KeyTypes) -> KeyTypes:
        """Both, each word once."""
        both = {
            field.name: tuple(dict.fromkeys((*getattr(self, field.name), *getattr(other, field.name))))[:_MOST]
            for field in fields(self)
        }
        return KeyTypes(**{**both, "channels": tuple(sorted(both["channels"], key=lambda name: pace_us(name) or 0))})


BUILT_IN = KeyTypes(
    channels=CHANNELS,
    asset_types=(
        "commodity", "crypto", "crypto-index", "crypto-redemption-rate", "custom", "eco", "equity", "funding-rate",
        "fx", "interest-rate", "kalshi", "metal", "nav", "rates",
    ),
    sessions=("regular", "pre_market", "post_market", "over_night"),
    properties=(
        "price", "bestBidPrice", "bestAskPrice", "publisherCount", "exponent", "confidence", "fundingRate",
        "fundingTimestamp", "fundingRateInterval", "marketSession", "emaPrice", "emaConfidence", "feedUpdateTimestamp",
    ),
)  # fmt: skip


def of_catalog(catalog: Catalog) -> KeyTypes:
    """What the rows of a list use."""
    feeds = catalog.by_id.values()
    return KeyTypes(
        channels=_channels({feed.min_channel for feed in feeds}),
        asset_types=tuple(catalog.asset_types)[:_MOST],
        sessions=tuple(sorted({_bounded(name) for feed in feeds for name in feed.sessions or ()}))[:_MOST],
    )


def of_document(document: Any) -> KeyTypes:
    """What an OpenAPI document enumerates: which enumeration is which is told by words that each must have."""
    found: dict[str, tuple[str, ...]] = {}
    for words in _enumerations(document, 0):
        for kind, known in _TELLING.items():
            if known <= words.keys():
                found[kind] = tuple(words)
    return KeyTypes(**{**found, "channels": _channels(found.get("channels", ()))})


_TELLING = {
    "channels": {"real_time"},
    "asset_types": {"crypto", "equity"},
    "properties": {"price", "exponent"},
}


def _enumerations(held: Any, depth: int) -> Iterator[dict[str, None]]:
    """Every list of constants, also one that is written as alternatives of one constant each."""
    if depth > _DEEPEST:
        return
    if isinstance(held, list):
        for one in held:
            yield from _enumerations(one, depth + 1)
    elif isinstance(held, dict):
        parts = [held, *(one for one in _listed(held, "oneOf") if isinstance(one, dict))]
        told = [word for part in parts for word in (*_listed(part, "enum"), part.get("const"))]
        words = dict.fromkeys(_bounded(word) for word in told[:_MOST] if isinstance(word, str))
        if words:
            yield words
        for one in held.values():
            yield from _enumerations(one, depth + 1)


def _listed(held: dict[str, Any], name: str) -> list[Any]:
    value = held.get(name)
    return value if isinstance(value, list) else []


def _channels(names: Iterable[str]) -> tuple[str, ...]:
    """Those whose pace is known; with any other nothing could be asked."""
    return tuple(sorted(name for name in names if pace_us(name) is not None))[:_MOST]


def _bounded(word: str) -> str:
    return word[:_LONGEST]


def snake(name: str) -> str:
    """A property in the spelling of the history: `bestBidPrice` is `best_bid_price` there."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
