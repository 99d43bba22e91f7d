"""A strategy that is followed as time goes on: what each new close decides, and what came of it so far.

`advance` takes a strategy from where it stands to the newest bar. It decides and fills as `run` does, and never looks
back: what was decided stays, also where an earlier bar is corrected. In whatever portions the bars come the decisions
are the same, as long as figures are computed of the same bars (`window`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, NamedTuple

from quantdeck.backtesting.engine import Decision, Terms, sound
from quantdeck.backtesting.engine.figures import computed
from quantdeck.backtesting.engine.rules import holding
from quantdeck.backtesting.engine.spacing import bars_per_year
from quantdeck.backtesting.engine.stops import Stops
from quantdeck.backtesting.engine.tallies import Tally
from quantdeck.domain.arrays import Floats, Places, np
from quantdeck.domain.candles import Bars
from quantdeck.domain.strategy_specs import RunnableSpec

__all__ = ["Advance", "Standing", "Turn", "Week", "advance", "window"]

MONDAY_S = 4 * 86_400
"""1970-01-05 was one."""
DAY_S, WEEK_S = 86_400, 7 * 86_400
_BARS = 2_000
_TIMES_ITS_PERIODS = 8


class Turn(NamedTuple):
    """What the close of the bar decided that opens then: to hold, where it decided nothing else for a day.

    `strength` is the share of its trades that had won by then. One of either kind is counted beside them, so that it
    begins with a half and is never certain.
    """

    opened_s: int
    decision: Decision | Literal["hold"]
    price: float
    strength: float


class Week(NamedTuple):
    """A week that is over, in seconds since 1970, or what of it there was since the strategy is followed."""

    start_s: int
    end_s: int
    tally: Tally
    sharpe: float | None


class Trade(NamedTuple):
    """One that is open. It was decided at the close of the bar that opens at `decided_s`.

    `units` are 0 where no bar has carried it out yet; `peak` is the highest close since one did.
    """

    decided_s: int
    units: float = 0.0
    paid: float = 0.0
    peak: float = 0.0


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a strategy stands after the bar that opens at `seen_s`; later ones are new to it.

    `cash` is what it has, or had when the trade began, from 1; `worth` what it is worth at the newest close. `leaving`
    is an exit that no bar has carried out yet. The bar of its last word opened at `spoke_s`.
    """

    seen_s: int
    began_s: int
    cash: float = 1.0
    trade: Trade | None = None
    leaving: bool = False
    spoke_s: int | None = None
    worth: float = 1.0
    highest: float = 1.0
    drawdown: float = 0.0
    total: Tally = field(default_factory=Tally)
    week: Tally = field(default_factory=Tally)

    def stored(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self) | {"trade": self.trade and self.trade._asdict()}

    @classmethod
    def read(cls, stored: dict[str, Any]) -> Standing:
        """What `stored` wrote."""
        trade = stored["trade"] and Trade(**stored["trade"])
        return cls(**stored | {"trade": trade, "total": Tally(**stored["total"]), "week": Tally(**stored["week"])})


class Advance(NamedTuple):
    """What became of it; `sharpe` is of all the time since it began."""

    turns: list[Turn]
    weeks: list[Week]
    standing: Standing
    sharpe: float | None


def window(spec: RunnableSpec, step_s: int, at_s: int) -> tuple[int, int]:
    """Of which bars figures are computed for one that opens then: from when on, and up to when that is the same.

    It depends on the instant alone, so that who follows a strategy bar by bar sees what another sees who comes later:
    at least 2,000 places of bars before, between edges that are Mondays.
    """
    periods = sum(number for one in spec.computations for number in one.numbers.values() if isinstance(number, int))
    length_s = -(-max(_BARS, _TIMES_ITS_PERIODS * periods) * step_s // WEEK_S) * WEEK_S
    edge_s = at_s - (at_s - MONDAY_S) % length_s
    return edge_s - length_s, edge_s + length_s


def advance(
    spec: RunnableSpec, bars: Bars, standing: Standing, terms: Terms, step_s: int, *, week_is_over: bool = False
) -> Advance:
    """Follow it over those of the bars that are new. Figures are computed of all of them.

    A week is over when the next one has a bar, or where `week_is_over` says so of the last.
    """
    bars = sound(bars)
    first = int(bars.time.searchsorted(standing.seen_s, side="right"))
    if first == len(bars):
        return Advance([], [], standing, None)
    with np.errstate(all="ignore"):
        decided = list(_decided(spec, bars, standing, terms.costs.slippage, first))
    made = _filled(bars, standing, terms, first, decided)
    before = np.concatenate(([standing.worth], made.equity[:-1]))
    changes, per_year = made.equity / before - 1.0, bars_per_year(terms.market, step_s, bars)
    weeks, week = _weeks(standing, bars.time[first:], changes, made, per_year, week_is_over)
    peaks = np.maximum(np.maximum.accumulate(made.equity), standing.highest)
    total = standing.total.after(changes, made.returns)
    now = replace(
        made.standing, seen_s=int(bars.time[-1]), worth=float(made.equity[-1]), highest=float(peaks[-1]),
        drawdown=max(standing.drawdown, float((1.0 - made.equity / peaks).max())), total=total, week=week,
    )  # fmt: skip
    turns = sorted([*_told(bars, standing, decided, made), *_holding(bars, standing, decided, made, first)])
    spoke_s = turns[-1].opened_s if turns else standing.spoke_s
    return Advance(turns, weeks, replace(now, spoke_s=spoke_s), total.sharpe(per_year))


def _decided(spec: RunnableSpec, bars: Bars, standing: Standing, slippage: float, first: int) -> Iterator[int]:
    """The new bars at whose close it turns, in and out of the market by turns."""
    figures = computed(spec, bars)
    enter, leave = holding(spec.entry, figures), holding(spec.exit, figures)
    rules = [rule for rule in spec.exit if rule.indicator is None]
    assert enter is not None, "the entry has no rule"
    assert leave is not None or rules, "the exit has no rule"
    entries, exits = np.flatnonzero(enter), np.flatnonzero(() if leave is None else leave)
    stops, cost = Stops(rules, bars.close, leave), bars.open * (1.0 + slippage)
    held, place = _is_held(standing), first
    paid, peak = (standing.trade.paid, standing.trade.peak) if standing.trade else (0.0, 0.0)
    while place < len(bars):
        if not held:
            found = _next(entries, place)
        elif rules:
            found = stops.first(place, paid or float(cost[place]), peak)
        else:
            found = _next(exits, place)
        if found is None:
            return
        yield found
        held, place, paid, peak = not held, found + 1, 0.0, 0.0


def _is_held(standing: Standing) -> bool:
    """Whether the next decision is to leave."""
    return standing.trade is not None and not standing.leaving


def _next(places: Places, begin: int) -> int | None:
    at = int(places.searchsorted(begin))
    return int(places[at]) if at < len(places) else None


class _Filled(NamedTuple):
    """Equity at each new close; the trades that were closed, by the bar that did it; and what is left open."""

    first: int
    equity: Floats
    places: list[int]
    returns: list[float]
    standing: Standing


def _filled(bars: Bars, standing: Standing, terms: Terms, first: int, decided: list[int]) -> _Filled:
    """Carry out what was decided, each at the open that follows."""
    fee, slippage = terms.costs.fee, terms.costs.slippage
    cash, trade = standing.cash, standing.trade
    equity, at = np.empty(len(bars) - first), first
    places: list[int] = []
    returns: list[float] = []
    waiting = [first - 1] if standing.leaving or (trade and not trade.units) else []
    for decision in [*waiting, *decided, len(bars) - 1]:
        place = decision + 1
        held = trade is not None and trade.units > 0.0
        equity[at - first : place - first] = trade.units * bars.close[at:place] if trade and held else cash
        if trade and held and place > at:
            trade = trade._replace(peak=max(trade.peak, float(bars.close[at:place].max())))
        at = place
        if place == len(bars):
            break
        price = float(bars.open[place])
        if trade is None or not trade.units:
            paid = price * (1.0 + slippage)
            decided_s = trade.decided_s if trade else int(bars.time[decision])
            trade = Trade(decided_s, cash / (paid * (1.0 + fee)), paid)
        else:
            after = trade.units * price * (1.0 - slippage) * (1.0 - fee)
            places.append(place)
            returns.append(after / cash - 1.0)
            cash, trade = after, None
    newest = bool(decided) and decided[-1] == len(bars) - 1
    if newest and trade is None:
        trade, newest = Trade(int(bars.time[-1])), False
    left = replace(standing, cash=cash, trade=trade, leaving=newest)
    return _Filled(first, equity, places, returns, left)


def _told(bars: Bars, standing: Standing, decided: list[int], made: _Filled) -> Iterator[Turn]:
    entering = not _is_held(standing)
    for place in decided:
        decision: Decision = "enter" if entering else "leave"
        yield Turn(int(bars.time[place]), decision, float(bars.close[place]), _strength(standing, made, place))
        entering = not entering


def _holding(bars: Bars, standing: Standing, decided: list[int], made: _Filled, first: int) -> Iterator[Turn]:
    """At the first bar a day after its last word, so that who is silent can be told from who is gone."""
    place, spoke_s = first, standing.spoke_s
    for end in [*decided, len(bars)]:
        while True:
            if spoke_s is not None:
                place = max(place, int(bars.time.searchsorted(spoke_s + DAY_S)))
            if place >= end:
                break
            spoke_s = int(bars.time[place])
            yield Turn(spoke_s, "hold", float(bars.close[place]), _strength(standing, made, place))
        if end < len(bars):
            place, spoke_s = end + 1, int(bars.time[end])


def _strength(standing: Standing, made: _Filled, place: int) -> float:
    known = made.returns[: bisect_right(made.places, place)]
    trades = standing.total.trades + len(known)
    winning = standing.total.winning + sum(one > 0.0 for one in known)
    return round((winning + 1) / (trades + 2), 4)


def _weeks(
    standing: Standing, time: Places, changes: Floats, made: _Filled, per_year: float, last_is_over: bool
) -> tuple[list[Week], Tally]:
    """Those that are over, and the one that is going on. A bar belongs to where it opens."""
    numbers = (np.concatenate(([max(standing.seen_s, standing.began_s)], time)) - MONDAY_S) // WEEK_S
    turns = np.flatnonzero(np.diff(numbers)).tolist()
    exits = np.array(made.places, dtype=np.int64) - made.first
    found, week, begin = [], standing.week, 0
    for end in [*turns, len(time)]:
        first, last = exits.searchsorted((begin, end))
        week = week.after(changes[begin:end], made.returns[first:last])
        if end < len(time) or last_is_over:
            start_s = int(numbers[end]) * WEEK_S + MONDAY_S
            if week.moves:
                since_s = max(start_s, standing.began_s)
                found.append(Week(since_s, start_s + WEEK_S, week, week.sharpe(per_year)))
            week, begin = Tally(), end
    return found, week
