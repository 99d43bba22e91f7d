"""get_symbols: which feeds there are."""

from __future__ import annotations

from typing import Annotated, Any, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from quantdeck.core.clock import Now
from quantdeck.dialects.bars import Format
from quantdeck.dialects.pyth import INVALID_INPUT
from quantdeck.dialects.pyth import pyth as spec
from quantdeck.domain.pyth_feeds import Feed
from quantdeck.servers.pyth_pro.access import Access
from quantdeck.servers.pyth_pro.showing import market_state
from quantdeck.sources.pyth import Pyth

_LONGEST = 200
"""Signs of a filter: it is looked for in every feed, and kept with what was found."""


class Symbol(TypedDict):
    pyth_lazer_id: int
    name: str
    symbol: str
    description: str
    asset_type: str
    instrument_type: str
    exponent: int | None
    min_channel: Annotated[str, Field(description="The fastest it has; slower ones work too")]
    state: Annotated[str, Field(description="Only stable feeds have prices")]
    hermes_id: str | None
    quote_currency: str | None
    market_open: Annotated[bool | None, Field(description="By its schedule; null where that is not known")]
    market_changes_at: NotRequired[Annotated[str, Field(description="When that next changes")]]


class SymbolColumns(TypedDict):
    """The same feeds, an array for each field."""

    pyth_lazer_id: list[int]
    name: list[str]
    symbol: list[str]
    description: list[str]
    asset_type: list[str]
    instrument_type: list[str]
    exponent: list[int | None]
    min_channel: list[str]
    state: list[str]
    hermes_id: list[str | None]
    quote_currency: list[str | None]
    market_open: list[bool | None]
    market_changes_at: list[str | None]


class Symbols(TypedDict):
    feeds: NotRequired[Annotated[list[Symbol], Field(description="In the format rows")]]
    columns: NotRequired[Annotated[SymbolColumns, Field(description="In the format columns")]]
    count: int
    total_available: int
    has_more: bool
    offset: int
    next_offset: int | None
    note: NotRequired[str]


@spec.tool()
async def get_symbols(
    pyth: Pyth,
    access: Access,
    now: Now,
    query: Annotated[str | None, Field(description='Text filter (e.g. "BTC", "gold", "AAPL")')] = None,
    asset_type: Annotated[
        str | None,
        Field(description="crypto, fx, equity, metal, rates, commodity, funding-rate, or another that feeds have"),
    ] = None,
    offset: Annotated[int, Field(ge=0, description="Pagination offset (default 0)")] = 0,
    limit: Annotated[int, Field(ge=1, le=200, description="Results per page (default 50, max 200)")] = 50,
    format: Format = "rows",  # noqa: A002 - its name on the wire
) -> Symbols:
    """List available Pyth Pro price feeds.

    Use this FIRST: it finds the symbols and ids that get_latest_price, get_historical_price and get_candlestick_data
    take. Filter by asset type, or by words of name, symbol and description; next_offset begins the next page.
    """
    if max(len(query or ""), len(asset_type or "")) > _LONGEST:
        raise INVALID_INPUT(f"A filter has at most {_LONGEST} characters; give a word or two of what is looked for.")
    catalog = await access.timed(pyth.catalog(token=access.token))
    found = catalog.matching(query or "", asset_type or "")
    page = found[offset : offset + limit]
    end = offset + len(page)
    access.note(
        asset_types=sorted({feed.asset_type for feed in page}), num_feeds=len(found), num_feeds_returned=len(page)
    )
    rows = [_row(feed, now) for feed in page]
    answer: Any = {
        **({"columns": _columns(rows)} if format == "columns" else {"feeds": rows}),
        "count": len(page),
        "total_available": len(found),
        "has_more": end < len(found),
        "offset": offset,
        "next_offset": end if end < len(found) else None,
    }
    if not found:
        answer["note"] = f"No feed matches. Asset types there are: {', '.join(catalog.asset_types)}"
    return answer  # type: ignore[no-any-return]


def _columns(rows: list[Any]) -> Any:
    return {name: [row.get(name) for row in rows] for name in SymbolColumns.__annotations__}


def _row(feed: Feed, now: Now) -> Any:
    return {
        "pyth_lazer_id": feed.id,
        "name": feed.name,
        "symbol": feed.symbol,
        "description": feed.description,
        "asset_type": feed.asset_type,
        "instrument_type": feed.instrument_type,
        "exponent": feed.exponent,
        "min_channel": feed.min_channel,
        "state": feed.state,
        "hermes_id": feed.hermes_id,
        "quote_currency": feed.quote_currency,
        **market_state(feed, now),
    }
