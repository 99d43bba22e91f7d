"""run_backtest: a stored strategy over the bars of a symbol."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from quantdeck.core.call import Call, Progress
from quantdeck.core.clock import Now
from quantdeck.core.errors import ErrorCode, Rejects
from quantdeck.dialects.tradestream import INVALID_PARAMETER, INVALID_SYMBOL, Market, tradestream
from quantdeck.domain.strategy_specs import UnfitParametersError
from quantdeck.domain.timeframes import TIMEFRAMES, FinerThanStored
from quantdeck.servers.backtest_mcp.ranges import (
    INSUFFICIENT_DATA,
    INVALID_DATE_RANGE,
    USUAL_LENGTH,
    Date,
    Span,
    expected,
    insufficient,
    is_enough,
    length_of,
    span,
)
from quantdeck.servers.market_data_mcp.stored import stored
from quantdeck.settings import Backtests
from quantdeck.sources.backtester import Backtester, Job, TookTooLong, terms
from quantdeck.sources.candles import Candles
from quantdeck.sources.sql.runnable import Runnable, Runnables, UnreadableSpecError

STRATEGY_NOT_FOUND = ErrorCode("STRATEGY_NOT_FOUND", "Strategy with specified ID does not exist", 404)
BACKTEST_TIMEOUT = ErrorCode("BACKTEST_TIMEOUT", "Backtest execution exceeded time limit", 504, retry=True)
GRPC_ERROR = ErrorCode("GRPC_ERROR", "Backtester service connection failed", 502, retry=True)

READ, RUN, WRITTEN = 10.0, 90.0, 100.0
"""How far a call has come, in percent: with its bars, with the strategy, with the record of it."""


class Ways(Backtests):
    """How this program is set to run backtests."""

    @classmethod
    def from_call(cls, call: Call) -> Ways:
        return cls.model_construct(**dict(call.runtime.options["backtests"]))


@dataclass(frozen=True, slots=True)
class BacktestResult:
    total_return: float | None
    sharpe_ratio: float | None
    max_drawdown: Annotated[float | None, Field(description="Positive")]
    win_rate: Annotated[float | None, Field(description="Of closed trades")]
    trades: Annotated[int, Field(description="Closed ones")]
    annualized_return: float | None
    sortino_ratio: float | None
    volatility: Annotated[float | None, Field(description="Annual")]
    profit_factor: Annotated[float | None, Field(description="null without a loss")]
    exposure: Annotated[float | None, Field(description="Share of bars with a trade")]
    timeframe: str
    bars: Annotated[int, Field(description="Closed bars in the range")]
    start_date: str
    end_date: Annotated[str, Field(description="This day included, as far as it is over")]
    run_id: Annotated[str | None, Field(description="In the event log, where backtests are recorded")]


@tradestream.tool(
    deadline_s=55.0,  # clients wait for 60, and should hear from us why there is no answer
    timeout=BACKTEST_TIMEOUT,
    errors=(
        STRATEGY_NOT_FOUND, INVALID_SYMBOL, INVALID_DATE_RANGE, INSUFFICIENT_DATA, BACKTEST_TIMEOUT, GRPC_ERROR,
    ),
)  # fmt: skip
async def run_backtest(
    backtester: Backtester,
    candles: Candles,
    runnables: Runnables,
    ways: Ways,
    progress: Progress,
    now: Now,
    strategy_id: Annotated[str, Field(description="Of an implementation; or a spec's id or name, with its defaults")],
    symbol: Market,
    start_date: Annotated[
        Date | None,
        Rejects(INVALID_DATE_RANGE),
        Field(description="First day (UTC); 90 days before end_date if unsaid"),
    ] = None,
    end_date: Annotated[
        Date | None, Rejects(INVALID_DATE_RANGE), Field(description="Last day (UTC); today if unsaid")
    ] = None,
    timeframe: Annotated[
        Literal["1m", "5m", "15m", "30m", "1h", "4h", "1d"] | None, Field(description="Length of a bar; 1h if unsaid")
    ] = None,
) -> BacktestResult:
    """Run a backtest for a strategy configuration"""
    asked = span(start_date, end_date, now)
    found = await _found(runnables, strategy_id, now)
    job = await _job(candles, found, symbol, asked, timeframe, ways, now)
    await progress(READ, WRITTEN, f"{len(job.bars)} bars of {job.timeframe} read")

    async def tell(share: float) -> None:
        await progress(READ + share * (RUN - READ), WRITTEN, f"{found.spec.name} on {symbol}")

    run_id = None
    try:
        if ways.events is None:
            metrics = await backtester.run(job, tell, as_of=now)
        else:
            from quantdeck.sources.backtester.recording import recorded

            made = await backtester.whole(job, tell, as_of=now)
            metrics = made.metrics
            await progress(RUN, WRITTEN, "writing the run")
            run_id = await recorded(ways.events, job, made, as_of=now)
    except UnfitParametersError as error:
        raise INVALID_PARAMETER(f"Invalid strategy: {error}", strategy_id=strategy_id[:80]) from None
    except (TimeoutError, TookTooLong) as error:
        raise BACKTEST_TIMEOUT("Timeout: the backtester gave up; try again or ask for less") from error
    await progress(WRITTEN, WRITTEN, "done")
    return BacktestResult(
        total_return=metrics.total_return,
        sharpe_ratio=metrics.sharpe_ratio,
        max_drawdown=metrics.max_drawdown,
        win_rate=metrics.win_rate,
        trades=metrics.trades,
        annualized_return=metrics.annualized_return,
        sortino_ratio=metrics.sortino_ratio,
        volatility=metrics.volatility,
        profit_factor=metrics.profit_factor,
        exposure=metrics.exposure,
        timeframe=job.timeframe.name,
        bars=len(job.bars),
        start_date=asked.first.isoformat(),
        end_date=asked.last.isoformat(),
        run_id=run_id,
    )


async def _found(runnables: Runnables, strategy_id: str, now: Now) -> Runnable:
    try:
        found = await runnables.find(strategy_id, as_of=now)
    except UnreadableSpecError as error:
        raise INVALID_PARAMETER(f"Invalid strategy: {error}", strategy_id=strategy_id[:80]) from None
    if found is None:
        raise STRATEGY_NOT_FOUND(
            f"Strategy {strategy_id[:80]!r} not found; get_top_strategies and get_top_specs list the ids there are",
            strategy_id=strategy_id[:80],
        )
    return found


async def _job(
    candles: Candles, found: Runnable, symbol: str, asked: Span, timeframe: str | None, ways: Backtests, now: Now
) -> Job:
    """What is to be run, over bars that are enough."""
    on = terms(symbol, ways)
    async with candles.snapshot():
        series = await stored(candles, symbol, now)
        if series is None:
            raise insufficient(symbol, TIMEFRAMES[timeframe or USUAL_LENGTH.name], None, 0, None)
        length = length_of(timeframe, series)
        wanted = expected(on.market, asked, length, series)
        if wanted is None:
            raise insufficient(symbol, length, series, 0, None)
        if wanted > ways.bars:
            raise INVALID_DATE_RANGE(
                f"Invalid date range: about {wanted} bars of {length}, and a backtest takes {ways.bars} at most; ask "
                "for fewer days or a longer timeframe",
                expected=wanted,
                maximum=ways.bars,
            )
        try:
            bars = await candles.between(symbol, length, asked.start, asked.end, as_of=now)
        except FinerThanStored as error:
            raise INVALID_PARAMETER(f"Invalid timeframe: {error}", symbol=symbol, available=error.available) from None
    if not is_enough(len(bars), wanted):
        raise insufficient(symbol, length, series, len(bars), wanted)
    return Job(found.spec, found.parameters, symbol, length, bars, on)
