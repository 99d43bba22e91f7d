"""execution.sim_quote: what an order would come to, by the market as it was known at an instant."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from quantdeck.core.call import Call
from quantdeck.core.clock import Now, iso
from quantdeck.core.errors import NotConfigured
from quantdeck.dialects.catalog import BACKEND_UNAVAILABLE, INSUFFICIENT_LIQUIDITY, INVALID_ARGS, catalog
from quantdeck.domain import execution
from quantdeck.domain.candles import Bars
from quantdeck.domain.symbols import asset_class
from quantdeck.domain.timeframes import DAY
from quantdeck.servers.tools_catalog.instruments import Instant, Spelt, canonical, known
from quantdeck.servers.tools_catalog.prices import daily_deviation, hourly
from quantdeck.settings import Execution
from quantdeck.sources.candles import Candles
from quantdeck.sources.fills import Fills
from quantdeck.sources.quotes import Quotes

HOURS = 168
FORGOTTEN_AFTER_S = 7 * 86_400


class Model(Execution):
    """The settings of the model, as a tool asks for them."""

    @classmethod
    def from_call(cls, call: Call) -> Execution:
        told: Execution = call.runtime.options.get("execution", Execution())
        return told


# Comments, for a docstring would be the schema's description, and the spec has none.


class MarketImpact(TypedDict):
    permanent_bps: float
    temporary_bps: float
    total_cost_bps: float


class ExecutionEstimate(TypedDict):
    fill_probability: Annotated[float, Field(ge=0, le=1)]
    expected_fill_time_ms: float
    partial_fill_risk: Annotated[float, Field(ge=0, le=1)]


class MarketConditions(TypedDict):
    bid_price: float
    ask_price: float
    spread_bps: float
    liquidity_score: Annotated[float, Field(ge=0, le=1)]
    volatility_regime: Literal["low", "normal", "high", "extreme"]


class Quoted(TypedDict):
    expected_price: Annotated[float, Field(description="Expected average fill price")]
    slippage_bps: Annotated[float, Field(description="Expected slippage in basis points")]
    market_impact: MarketImpact
    execution_estimate: ExecutionEstimate
    market_conditions: MarketConditions


@catalog.tool(
    "execution.sim_quote",
    deadline_ms=200,
    p95_ms=80,
    per_minute=200,
    cache_s=60,
    errors=(INSUFFICIENT_LIQUIDITY,),
)
async def sim_quote(
    candles: Candles,
    quotes: Quotes,
    fills: Fills,
    model: Model,
    now: Now,
    instrument: Annotated[Spelt, Field(description="Trading instrument")],
    side: Annotated[Literal["buy", "sell"], Field(description="Order side")],
    qty: Annotated[float, Field(gt=0, description="Order quantity")],
    timestamp: Annotated[Instant, Field(description="Simulation timestamp")],
    order_type: Annotated[
        Literal["market", "limit", "stop"], Field(description="Order type for simulation")
    ] = "market",
    limit_price: Annotated[float | None, Field(description="Limit price (required for limit orders)")] = None,
) -> Quoted:
    """Provide expected fill price and slippage estimates for trading decisions."""
    _check_price(order_type, limit_price)
    await known(candles, instrument, now)
    at = Now.of(min(timestamp, now), fixed=True)
    market = await _market(candles, quotes, model, instrument, at)
    impact = await _impact(fills, market, canonical(instrument), at)
    liquidity = execution.Liquidity(
        impact=model.impact if impact is None else impact,
        permanent=model.permanent_impact,
        most=model.max_participation,
    )
    try:
        found = execution.outcome(execution.Order(side, qty, order_type, limit_price), market, liquidity)
    except execution.NoLiquidity as error:
        raise INSUFFICIENT_LIQUIDITY(
            f"Insufficient liquidity: {qty:g} of {instrument} is more than the {error.most:g} that the market is taken "
            "to give; ask for less, or in parts",
            instrument=instrument,
            max_qty=error.most,
            daily_volume=market.daily_volume,
        ) from None
    return {
        "expected_price": found.price,
        "slippage_bps": found.slippage_bps,
        "market_impact": {
            "permanent_bps": found.permanent_bps,
            "temporary_bps": found.temporary_bps,
            "total_cost_bps": found.total_bps,
        },
        "execution_estimate": {
            "fill_probability": found.probability,
            "expected_fill_time_ms": found.fill_ms,
            "partial_fill_risk": found.partial_risk,
        },
        "market_conditions": {
            "bid_price": market.bid,
            "ask_price": market.ask,
            "spread_bps": market.spread_bps,
            "liquidity_score": found.liquidity_score,
            "volatility_regime": market.regime,
        },
    }


def _check_price(order_type: str, limit_price: float | None) -> None:
    if order_type != "market" and limit_price is None:
        role = "limit" if order_type == "limit" else "trigger"
        raise INVALID_ARGS(f"Invalid arguments: limit_price is required for {order_type} orders, as their {role}")
    if limit_price is not None and limit_price <= 0:
        raise INVALID_ARGS("Invalid arguments: limit_price must be greater than 0")


async def _market(candles: Candles, quotes: Quotes, model: Execution, instrument: str, at: Now) -> execution.Market:
    """By a fresh quote where there is one, else by the newest bar that had closed."""
    symbol = canonical(instrument)
    series = await candles.series(symbol, as_of=at)
    if series is None:
        raise _unavailable(instrument, at, "its bars begin later")
    async with candles.snapshot():
        newest = await candles.newest(symbol, series.base, 1, as_of=at)
        bars, length = await hourly(candles, series, HOURS, at)
    closed_at = datetime.fromtimestamp(int(newest.time[-1]) + series.base.seconds, UTC)
    if at.timestamp() - closed_at.timestamp() > FORGOTTEN_AFTER_S:
        raise _unavailable(instrument, at, f"its newest bar closed at {iso(closed_at)}")
    regime = execution.regime(bars)
    mid, spread_bps = float(newest.close[-1]), execution.widened(model.spread_of(asset_class(symbol)), regime)
    if (quote := await quotes.latest(symbol, as_of=at)) is not None:
        mid, spread_bps = quote.mid, (quote.ask - quote.bid) / quote.mid * execution.BPS
    if mid <= 0:
        raise _unavailable(instrument, at, "its price is not above zero")
    return execution.Market(
        mid=mid,
        spread_bps=spread_bps,
        daily_deviation=daily_deviation(bars, symbol, length) or 0.0,
        daily_volume=model.daily_units_of(asset_class(symbol)) or _daily_volume(bars),
        regime=regime,
    )


def _daily_volume(bars: Bars) -> float:
    """What is traded in a day on which anything is."""
    days = len(set((bars.time // DAY.seconds).tolist()))
    return float(bars.volume.sum()) / days if days else 0.0


async def _impact(fills: Fills, market: execution.Market, symbol: str, at: Now) -> float | None:
    """As stored fills tell it; None where there is no desk, or too few of them."""
    if market.daily_volume <= 0:
        return None
    with suppress(NotConfigured):
        return execution.fitted(await fills.newest(symbol, as_of=at), market)
    return None


def _unavailable(instrument: str, at: Now, why: str) -> Exception:
    return BACKEND_UNAVAILABLE(
        f"Backend unavailable: there is no market data of {instrument} at {iso(at)}; {why}",
        instrument=instrument,
        timestamp=iso(at),
    )
