"""What a row means: its integers in decimal, and whether its feed's market is open."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Annotated, Any, NotRequired, get_args

from pydantic import Field
from typing_extensions import TypedDict, get_type_hints

from quantdeck.core.clock import Now, iso
from quantdeck.domain.pyth_feeds import Feed
from quantdeck.domain.pyth_numbers import basis_points, display
from quantdeck.domain.pyth_schedules import schedule_of

__all__ = ["Meaning", "kinds_of", "market_state", "shown", "sound"]

_STATES_KEPT = 2048


class Meaning(TypedDict):
    """What stands beside every row of prices. Decimals have every digit, and no power of ten."""

    symbol: str | None
    display_price: NotRequired[Annotated[str, Field(description="price x 10^exponent, every digit")]]
    display_bid: NotRequired[str]
    display_ask: NotRequired[str]
    display_confidence: NotRequired[str]
    display_ema_price: NotRequired[str]
    display_ema_confidence: NotRequired[str]
    display_funding_rate: NotRequired[Annotated[str, Field(description="A fraction")]]
    confidence_bps: NotRequired[float]
    spread_bps: NotRequired[float]
    market_open: bool | None
    market_changes_at: NotRequired[str]


def kinds_of(told: Any) -> Mapping[str, tuple[type, ...]]:
    """The types that the members of a TypedDict may have."""
    return {name: get_args(kind) or (kind,) for name, kind in get_type_hints(told).items()}


def sound(row: Mapping[str, Any], kinds: Mapping[str, tuple[type, ...]]) -> dict[str, Any]:
    """A row as it was sent, but for members that are nothing of their kind: one bad figure costs no other.

    `kinds` has the members of which something is promised; what is said of a row's meaning is ours to say. A whole
    number may have been sent as a fraction.
    """
    kept = {name: _whole(value) if name in kinds else value for name, value in row.items() if name not in _OURS}
    return {name: value for name, value in kept.items() if name not in kinds or isinstance(value, kinds[name])}


_OURS = frozenset(Meaning.__annotations__)
_MOST = 2**63


def _whole(value: Any) -> Any:
    if isinstance(value, bool):
        return float(value)  # which is no figure
    is_whole = isinstance(value, float) and value.is_integer() and abs(value) < _MOST
    return int(value) if is_whole else value


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
