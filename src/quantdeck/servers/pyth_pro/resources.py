"""The nine resources: four pages that are written here, two documents and three lists that are Pyth's own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from contextlib import suppress
from dataclasses import asdict
from importlib.resources import files
from typing import Annotated, Any, TypeVar

from pydantic import Field

from quantdeck.core.errors import NotConfigured, SourceError
from quantdeck.core.server import Resource, ResourceTemplate
from quantdeck.dialects.pyth import NOT_FOUND, UPSTREAM
from quantdeck.dialects.pyth import pyth as spec
from quantdeck.domain.pyth_feeds import Feed
from quantdeck.domain.pyth_types import BUILT_IN
from quantdeck.servers.pyth_pro.access import Access
from quantdeck.sources.pyth import InvalidToken, Pyth

__all__ = ["RESOURCES", "TEMPLATES"]

T = TypeVar("T")

DAY_S, HOUR_S, YEAR_S = 86_400, 3_600, 31_536_000
RETRY_S = 30

_SOON_S = 2.0
_LONGEST = 40
_HIDDEN = frozenset(("id", "sessions", "schedule"))


def _page(name: str) -> str:
    return (files(__package__) / "content" / name).read_text("utf-8")


@spec.readable()
async def integration_guide() -> str:
    """What Pyth Pro is, how to get a token, SDK install, connection code snippets, API reference links"""
    return _page("integration-guide.md")


@spec.readable()
async def chains() -> str:
    """Supported blockchains for on-chain price verification"""
    return _page("chains.md")


@spec.readable()
async def streaming_payload() -> str:
    """Streaming payload schema reference — AsyncAPI spec for WebSocket streaming format, field definitions, exponent math"""  # noqa: E501 - the spec's sentence
    return _page("streaming-payload.md")


@spec.readable()
async def error_taxonomy() -> str:
    """Error code taxonomy with causes and resolution steps"""
    return _page("errors.md")


@spec.readable(cache_s=YEAR_S)
async def openapi_rest(pyth: Pyth, access: Access) -> dict[str, Any]:
    """Router API OpenAPI spec"""
    return await _reached(access.timed(pyth.document("rest")), "The Router's OpenAPI document")


@spec.readable(cache_s=YEAR_S)
async def openapi_history(pyth: Pyth, access: Access) -> dict[str, Any]:
    """History API OpenAPI spec"""
    return await _reached(access.timed(pyth.document("history")), "The History's OpenAPI document")


@spec.readable(cache_s=DAY_S)
async def feeds(pyth: Pyth, access: Access) -> dict[str, Any]:
    """Full feed catalog (all asset types)"""
    catalog = await _reached(access.timed(pyth.catalog(token=access.token)), "The list of feeds")
    return {**_listed(catalog.feeds, catalog.asset_types), "key_types": asdict(pyth.known)}


@spec.readable(cache_s=DAY_S)
async def feeds_of_type(
    pyth: Pyth,
    access: Access,
    asset_type: Annotated[str, Field(description="Such as crypto, fx, equity, metal, rates, commodity, funding-rate")],
) -> dict[str, Any]:
    """Feeds filtered by asset type (template)"""
    catalog = await _reached(access.timed(pyth.catalog(token=access.token)), "The list of feeds")
    kind = asset_type.strip()
    found = catalog.matching("", kind) if 0 < len(kind) <= _LONGEST else ()  # without a kind there are all
    if not found:
        raise NOT_FOUND(f"No feed has the asset type {kind[:_LONGEST]}. There are: {', '.join(catalog.asset_types)}")
    return _listed(list(found), catalog.asset_types)


@spec.readable(cache_s=HOUR_S)
async def tradingview_config(pyth: Pyth, access: Access) -> dict[str, Any]:
    """TradingView-compatible configuration (supported resolutions, capabilities)"""
    config = pyth.chart_config(access.settings.channel, token=access.token)
    return await _reached(access.timed(config), "The chart configuration")


async def _reached(answer: Awaitable[T], what: str) -> T:
    try:
        return await answer
    except (InvalidToken, NotConfigured):  # which no waiting will mend
        raise
    except SourceError as error:
        told = f"Unavailable: {what} cannot be had from Pyth just now. Read this resource again in {RETRY_S} seconds."
        raise UPSTREAM(told, retry_after_s=RETRY_S) from error


def _listed(found: list[Feed], asset_types: list[str]) -> dict[str, Any]:
    rows = [
        {"pyth_lazer_id": feed.id, **{name: held for name, held in asdict(feed).items() if name not in _HIDDEN}}
        for feed in found
    ]
    return {"count": len(rows), "asset_types": asset_types, "feeds": rows}


@spec.readable()
async def asset_types(
    pyth: Pyth, access: Access, begun: Annotated[str, Field(description="What was typed so far")]
) -> list[str]:
    """Asset types that begin so: those that feeds have today, or the known ones where that takes too long to learn."""
    kinds: Sequence[str] = BUILT_IN.asset_types
    with suppress(SourceError, TimeoutError):
        async with asyncio.timeout(_SOON_S):
            kinds = (await access.timed(pyth.catalog(token=access.token))).asset_types or kinds
    return [kind for kind in kinds if kind.startswith(begun.strip().lower())]


_JSON, _MARKDOWN = "application/json", "text/markdown"

RESOURCES = (
    Resource(uri="pyth://docs/integration-guide", read=integration_guide, mime_type=_MARKDOWN),
    Resource(uri="pyth://docs/chains", read=chains, mime_type=_MARKDOWN),
    Resource(uri="pyth://schema/streaming_payload", read=streaming_payload, mime_type=_MARKDOWN),
    Resource(uri="pyth://schema/errors", read=error_taxonomy, mime_type=_MARKDOWN),
    Resource(uri="pyth://schema/openapi/rest", read=openapi_rest, mime_type=_JSON),
    Resource(uri="pyth://schema/openapi/history", read=openapi_history, mime_type=_JSON),
    Resource(uri="pyth://feeds", read=feeds, mime_type=_JSON),
    Resource(uri="pyth://tradingview/config", read=tradingview_config, mime_type=_JSON),
)
TEMPLATES = (
    ResourceTemplate(
        uri_template="pyth://feeds/{asset_type}",
        read=feeds_of_type,
        mime_type=_JSON,
        complete={"asset_type": asset_types},
    ),
)
