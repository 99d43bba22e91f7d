"""Follow strategies over the newest closed bars, and store what they signal and how they do.

One pass takes each implementation from where it stands to the newest bar of its symbol. A bar is left for a later pass
while its last part may still be on its way. What was decided stays as it is, also where a bar is corrected afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import groupby
from pathlib import Path

from quantdeck.backtesting.engine.forward import Advance, Standing, advance, window
from quantdeck.core.clock import Now, iso
from quantdeck.domain.candles import Bars, closed_before
from quantdeck.domain.strategy_specs import UnfitParametersError
from quantdeck.domain.timeframes import TIMEFRAMES, Timeframe
from quantdeck.settings import Backtests
from quantdeck.sources.backtester import Job, terms
from quantdeck.sources.backtester.following import as_backtest
from quantdeck.sources.backtester.recording import recorded
from quantdeck.sources.candles import Candles, Series, off_the_loop
from quantdeck.sources.sql.evaluations import Evaluations, Followed, Forward, Given, Progress
from quantdeck.sources.sql.performance import Measured

__all__ = ["Evaluated", "Evaluation"]

HOUR = TIMEFRAMES["1h"]
"""What strategies run on, as in run_backtest; on the series' own bars where those are longer."""
LONGEST_PAST = timedelta(days=366)
"""How far back one is followed that was made long ago: the longest period that its performance is asked for."""
LATE_S = 120
"""How long the last part of a bar may be on its way."""
STALE_BARS = 3
"""A market that is open and has had no bar for so many is told to be behind."""

Tell = Callable[[str], None]


@dataclass(slots=True)
class Evaluated:
    """What one pass came to. `problems` are sentences, by what they are about."""

    followed: int = 0
    signals: int = 0
    weeks: int = 0
    newest: datetime | None = None
    problems: dict[str, str] = field(default_factory=dict)

    def told(self) -> str:
        """In words."""
        until = f" up to {iso(self.newest)}" if self.newest else ""
        return (
            f"{self.followed} strategies followed{until}: {self.signals} new signals, {self.weeks} weeks of performance"
        )


@dataclass(slots=True)
class _Bars:
    """Of one symbol and length: what was read is not read again for the next strategy."""

    candles: Candles
    symbol: str
    timeframe: Timeframe
    end_s: int
    as_of: Now
    read: dict[tuple[int, int], Bars] = field(default_factory=dict)

    async def between(self, begin_s: int, until_s: int) -> Bars:
        place = (begin_s, min(until_s, self.end_s))
        if place not in self.read:
            since, until = (_at(max(at, 0)) for at in place)
            self.read[place] = await self.candles.between(self.symbol, self.timeframe, since, until, as_of=self.as_of)
        return self.read[place]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Passes over the same strategies: all, or those of a symbol, a spec, or an id."""

    candles: Candles
    evaluations: Evaluations
    settings: Backtests
    symbol: str | None = None
    strategy: str | None = None
    events: Path | None = None

    async def once(self, tell: Tell, *, as_of: Now) -> Evaluated:
        """One pass. Raises SourceError where the desk or the bars cannot be reached."""
        made = Evaluated()
        found = await self.evaluations.followed(symbol=self.symbol, strategy=self.strategy, as_of=as_of)
        for symbol, group in groupby(found, key=lambda one: one.symbol):
            await self._symbol(symbol, list(group), made, tell, as_of)
        return made

    async def _symbol(self, symbol: str, strategies: list[Followed], made: Evaluated, tell: Tell, as_of: Now) -> None:
        series = await self.candles.series(symbol, as_of=as_of)
        if series is None:
            made.problems[symbol] = f"{symbol}: no closed bar, so its {len(strategies)} strategies are left out"
            return
        bars: dict[Timeframe, _Bars] = {}
        signals = made.signals
        for one in strategies:
            timeframe = _timeframe(one, series)
            if not timeframe.is_made_of(series.base):
                made.problems[one.impl_id] = _about(one, f"it is followed on bars of {timeframe}, and there are none")
                continue
            if timeframe not in bars:
                end_s = _complete_before(series, timeframe, as_of)
                bars[timeframe] = _Bars(self.candles, symbol, timeframe, end_s, as_of)
                self._behind(symbol, end_s, timeframe, made, as_of)
            await self._one(one, bars[timeframe], made, as_of)
        tell(f"{symbol}: {len(strategies)} strategies, {made.signals - signals} new signals")

    def _behind(self, symbol: str, end_s: int, timeframe: Timeframe, made: Evaluated, as_of: Now) -> None:
        newest = datetime.fromtimestamp(end_s, UTC)
        made.newest = max(made.newest or newest, newest)
        open_s = terms(symbol, self.settings).market.open_seconds(newest, as_of)
        if open_s > STALE_BARS * timeframe.seconds:
            said = f"{symbol}: its newest bar closed at {iso(newest)}; the bars are behind, and so are the signals"
            made.problems[symbol] = said

    async def _one(self, one: Followed, bars: _Bars, made: Evaluated, as_of: Now) -> None:
        """Follow one up to the newest bar; what it cannot be run for is told, and the others go on."""
        if one.spec is None:
            made.problems[one.impl_id] = _about(one, one.problem)
            return
        try:
            spec = one.spec.instantiate(one.parameters)
        except UnfitParametersError as error:
            made.problems[one.impl_id] = _about(one, str(error))
            return
        made.followed += 1
        step_s = bars.timeframe.seconds
        start = _standing(one, step_s, as_of)
        trades_on = terms(one.symbol, self.settings)
        whole = Advance([], [], start, None)
        at_s = start.seen_s + step_s
        while at_s < bars.end_s:
            begin_s, until_s = window(spec, step_s, at_s)
            some = await bars.between(begin_s, until_s)
            told = await off_the_loop(len(some), partial(advance, spec, some, whole.standing, trades_on, step_s))
            if self.events and any(turn.decision != "hold" for turn in told.turns):
                await self._record(one, bars.timeframe, some, whole.standing, told, as_of)
            sharpe = whole.sharpe if told.sharpe is None else told.sharpe
            whole = Advance(whole.turns + told.turns, whole.weeks + told.weeks, told.standing, sharpe)
            at_s = until_s
        if whole.standing.seen_s > start.seen_s and await self._store(one, bars.timeframe, start, whole, as_of):
            made.signals += len(whole.turns)
            made.weeks += len(whole.weeks)

    async def _store(self, one: Followed, timeframe: Timeframe, start: Standing, made: Advance, as_of: Now) -> bool:
        standing, step_s = made.standing, timeframe.seconds
        given = []
        for turn in made.turns:
            late = as_of.timestamp() >= turn.opened_s + 2 * step_s
            given.append(Given(_at(turn.opened_s + step_s), turn.decision, turn.price, turn.strength, late))
        weeks = [
            Measured(
                one.impl_id, one.symbol, "PAPER", timeframe.name, _at(week.start_s), _at(week.end_s),
                week.tally.trades, week.tally.winning, week.tally.earned, week.sharpe,
            )
            for week in made.weeks
        ]  # fmt: skip
        progress = Progress(timeframe.name, _at(standing.began_s), _at(standing.seen_s + step_s), standing.stored())
        changed = one.progress is None or made.weeks or standing.total.trades > start.total.trades
        forward = _forward(made) if changed else None
        return await self.evaluations.store(one, progress, given, weeks, forward, as_of=as_of)

    async def _record(
        self, one: Followed, timeframe: Timeframe, bars: Bars, before: Standing, made: Advance, as_of: Now
    ) -> None:
        assert self.events is not None
        assert one.spec is not None
        job = Job(one.spec, one.parameters, one.symbol, timeframe, bars, terms(one.symbol, self.settings))
        await recorded(self.events, job, as_backtest(job, before, made.turns), as_of=as_of)


def _about(one: Followed, problem: str) -> str:
    return f"{one.name} on {one.symbol} ({one.impl_id}) is left out: {problem}"


def _timeframe(one: Followed, series: Series) -> Timeframe:
    if one.progress is not None and one.progress.timeframe in TIMEFRAMES:
        return TIMEFRAMES[one.progress.timeframe]
    return HOUR if HOUR.is_made_of(series.base) else series.base


def _standing(one: Followed, step_s: int, as_of: Now) -> Standing:
    """Where it stands; one that is new begins with the first bar that closes after it was made."""
    if one.progress is not None:
        return Standing.read(one.progress.standing)
    began_s = -int(-max(one.created_at, as_of - LONGEST_PAST).timestamp() // 1)
    return Standing(began_s - step_s, began_s)


def _forward(made: Advance) -> Forward:
    total, standing = made.standing.total, made.standing
    accuracy = total.winning / total.trades if total.trades else None
    return Forward(made.sharpe, accuracy, standing.worth - 1.0, standing.drawdown, total.trades)


def _complete_before(series: Series, timeframe: Timeframe, as_of: Now) -> int:
    """Bars that open before this are closed, and nothing of them is still on its way."""
    end_s = closed_before(as_of.timestamp(), timeframe)
    there_s = series.last_s + series.base.seconds
    if there_s < end_s and as_of.timestamp() < end_s + LATE_S:
        end_s -= timeframe.seconds
    return min(end_s, timeframe.ceil(there_s))


def _at(second: int) -> datetime:
    return datetime.fromtimestamp(second, UTC)
