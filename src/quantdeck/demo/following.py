"""What the demo world's strategies signal and earn: followed on its market, as `quantdeck evaluate` follows any.

Blocks of eight weeks are followed by themselves: each begins without a position, with figures of the two weeks before.
So any block can be computed without those before it, and two worlds of one seed agree wherever they overlap, whenever
each was made. It is written ahead of time: until its own time has come, the as-of barrier keeps it out of any answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple

from quantdeck.backtesting.engine import Terms
from quantdeck.backtesting.engine.forward import Standing, Turn, Week, advance
from quantdeck.demo.hours import HOUR, WEEK_S, hours
from quantdeck.demo.trials import runnable
from quantdeck.demo.world import BEGAN, SILENT_SINCE, STALE_SYMBOL, SYMBOLS, Row, World
from quantdeck.domain.calendars import market_of
from quantdeck.sources.sql.evaluations import Given, Progress, signal_row
from quantdeck.sources.sql.performance import Measured, row_of

__all__ = ["Told", "evaluations", "followed", "last_words"]

_BLOCK_S, _BEFORE_S = 8 * WEEK_S, 2 * WEEK_S
_KNOWN_AFTER = timedelta(seconds=2)


class Told(NamedTuple):
    """Rows of implementation_signals, the oldest first, and of strategy_performance."""

    signals: list[Row]
    weeks: list[Row]


def followed(world: World, since: datetime, until: datetime) -> Told:
    """The signals from one instant to before another, and the weeks that end after the one and up to the other."""
    found = [_block(world, symbol, at) for symbol in SYMBOLS for at in _blocks(since, until) if _speaks(symbol, at)]
    signals = [row for told in found for row in told.signals if since <= row["signal_timestamp"] < until]
    return Told(_in_order(signals), [row for told in found for row in told.weeks if since < row["period_end"] <= until])


def last_words(world: World) -> list[Row]:
    """What the stale symbol's strategies signalled in the two weeks before they fell silent, the oldest first."""
    since = SILENT_SINCE - timedelta(days=14)
    told = [_block(world, STALE_SYMBOL, at) for at in _blocks(since, SILENT_SINCE)]
    return _in_order(row for one in told for row in one.signals if row["signal_timestamp"] >= since)


def _in_order(signals: Iterable[Row]) -> list[Row]:
    return sorted(signals, key=lambda row: (row["signal_timestamp"], row["impl_id"]))


def evaluations(world: World, until: datetime, known_at: datetime) -> Iterator[Row]:
    """Rows of strategy_evaluations: that this world's strategies were followed up to then."""
    seen_s = int(until.timestamp()) // HOUR.seconds * HOUR.seconds
    for strategy in world.implementations():
        began = max(strategy["created_at"], BEGAN)
        standing = Standing(seen_s - HOUR.seconds, int(began.timestamp()))
        seen = Progress(HOUR.name, began, datetime.fromtimestamp(seen_s, UTC), standing.stored())
        yield {
            "impl_id": strategy["impl_id"], "timeframe": seen.timeframe, "began_at": seen.began_at,
            "seen_until": seen.seen_until, "standing": seen.standing, "updated_at": known_at,
        }  # fmt: skip


def _blocks(since: datetime, until: datetime) -> range:
    began_s = int(BEGAN.timestamp())
    first = max(int(since.timestamp()) - began_s, 0) // _BLOCK_S
    return range(began_s + first * _BLOCK_S, int(until.timestamp()) + 1, _BLOCK_S)


def _speaks(symbol: str, begin_s: int) -> bool:
    return symbol != STALE_SYMBOL or begin_s < SILENT_SINCE.timestamp()


@lru_cache(256)  # as bars are kept
def _block(world: World, symbol: str, begin_s: int) -> Told:
    bars, end_s = hours(world.seed, symbol, begin_s - _BEFORE_S, begin_s + _BLOCK_S), begin_s + _BLOCK_S
    told = Told([], [])
    for strategy, spec in runnable(world):
        began_s = max(begin_s, int(strategy["created_at"].timestamp()))
        if strategy["symbol"] != symbol or began_s >= end_s or not world.is_followed(strategy):
            continue
        start = Standing(began_s - HOUR.seconds, began_s)
        made = advance(spec, bars, start, Terms(market_of(symbol)), HOUR.seconds, week_is_over=True)
        told.signals.extend(_signal(strategy, turn) for turn in made.turns)
        told.weeks.extend(_week(strategy, week) for week in made.weeks)
    if symbol == STALE_SYMBOL:  # planted: whoever says nothing trades nothing either
        return Told(
            [row for row in told.signals if row["signal_timestamp"] < SILENT_SINCE],
            [row for row in told.weeks if row["period_end"] <= SILENT_SINCE],
        )
    return told


def _signal(strategy: Row, turn: Turn) -> Row:
    at = _at(turn.opened_s + HOUR.seconds)
    given = Given(at, turn.decision, turn.price, turn.strength, late=False)
    return signal_row(strategy["impl_id"], strategy["symbol"], given, known_at=at + _KNOWN_AFTER)


def _week(strategy: Row, week: Week) -> Row:
    start, end = _at(week.start_s), _at(week.end_s)
    measured = Measured(
        strategy["impl_id"], strategy["symbol"], "PAPER", HOUR.name, start, end,
        week.tally.trades, week.tally.winning, week.tally.earned, week.sharpe,
    )  # fmt: skip
    return row_of(measured, end)


def _at(second: int) -> datetime:
    return datetime.fromtimestamp(second, UTC)
