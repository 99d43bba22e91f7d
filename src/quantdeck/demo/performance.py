"""How the demo world's strategies did on its market: forward, quarter by quarter, told week by week.

Each quarter is a test of its own that begins without a position, so that any quarter can be computed without those
before it and two worlds of one seed agree wherever they overlap. Weeks are written ahead, as signals are.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from quantdeck.backtesting.engine import Terms, run
from quantdeck.backtesting.engine.spacing import bars_per_year
from quantdeck.backtesting.engine.stretches import Cut, cut
from quantdeck.demo.world import SILENT_SINCE, STALE_SYMBOL, SYMBOLS, Row, World
from quantdeck.domain.calendars import market_of
from quantdeck.domain.candles import Bars, joined, resampled
from quantdeck.domain.demo_instruments import INSTRUMENTS
from quantdeck.domain.demo_market import DAY_S, DemoMarket
from quantdeck.domain.demo_sessions import shape_of
from quantdeck.domain.spec_reader import read
from quantdeck.domain.strategy_specs import StrategySpec
from quantdeck.domain.timeframes import TIMEFRAMES
from quantdeck.sources.sql.performance import Measured, row_of

__all__ = ["performance"]

HOUR = TIMEFRAMES["1h"]
MONDAY_S = 4 * DAY_S
"""1970-01-05 was one."""
WEEK_S = 7 * DAY_S


def performance(world: World, since: datetime, until: datetime) -> list[Row]:
    """Rows of strategy_performance: the weeks that end after `since` and by `until`, each known when it is over."""
    specs = {row["spec_id"]: _spec(row) for row in world.specs()}
    strategies = world.implementations()
    rows: list[Row] = []
    for begin, end in _quarters(since, until):
        for symbol in SYMBOLS:
            there = [one for one in strategies if one["symbol"] == symbol and one["created_at"] <= begin]
            bars = _bars(world.seed, symbol, begin, end) if there else Bars.none()
            for strategy in there:
                rows += _weeks(strategy, specs[strategy["spec_id"]], bars, begin, end)
    return [row for row in rows if since < row["period_end"] <= until and not _is_silent(row)]


def _is_silent(row: Row) -> bool:
    """Planted: whoever says nothing trades nothing either."""
    end: datetime = row["period_end"]
    return row["symbol"] == STALE_SYMBOL and end > SILENT_SINCE


def _spec(row: Row) -> StrategySpec:
    parts = ("name", "indicators", "entry_conditions", "exit_conditions", "parameters")
    spec = read(**{part: row[part] for part in parts}).spec
    assert spec is not None
    return spec


def _quarters(since: datetime, until: datetime) -> Iterator[tuple[datetime, datetime]]:
    """Those that have something of the time between the two."""
    begin = datetime(since.year, since.month - (since.month - 1) % 3, 1, tzinfo=UTC)
    while begin < until:
        later = begin + timedelta(days=100)
        end = datetime(later.year, later.month - (later.month - 1) % 3, 1, tzinfo=UTC)
        yield begin, end
        begin = end


@lru_cache(64)  # several worlds may be made in one process, and bars are what takes the time
def _bars(seed: int, symbol: str, begin: datetime, end: datetime) -> Bars:
    market = DemoMarket(seed, shape_of)
    days = range(int(begin.timestamp()) // DAY_S, -(-int(end.timestamp()) // DAY_S))
    hours = [resampled(market.day(INSTRUMENTS[symbol], day), HOUR) for day in days]
    return joined(hours)


def _weeks(strategy: Row, spec: StrategySpec, bars: Bars, begin: datetime, end: datetime) -> Iterator[Row]:
    market = market_of(strategy["symbol"])
    made = run(spec.instantiate(strategy["parameters"]), bars, Terms(market))
    first_s, last_s = int(begin.timestamp()), int(end.timestamp())
    monday_s = first_s - (first_s - MONDAY_S) % WEEK_S + WEEK_S
    edges = [first_s, *range(monday_s, last_s, WEEK_S), last_s]
    for week in cut(made, edges, HOUR.seconds, bars_per_year(market, HOUR.seconds, bars)):
        yield _row(strategy, week)


def _row(strategy: Row, week: Cut) -> dict[str, Any]:
    start, end = (datetime.fromtimestamp(at, UTC) for at in (week.start_s, week.end_s))
    measured = Measured(
        strategy["impl_id"], strategy["symbol"], "PAPER", HOUR.name, start, end,
        week.trades, week.winning, week.earned, week.sharpe,
    )  # fmt: skip
    return row_of(measured, end)
