"""When a strategy is in the market: decided at the close of a bar, done at the open of the next."""

from __future__ import annotations

from typing import Literal, NamedTuple

from quantdeck.backtesting.engine.rules import holding
from quantdeck.backtesting.engine.stops import Stops
from quantdeck.domain.arrays import Floats, Mask, Places, np
from quantdeck.domain.candles import Bars
from quantdeck.domain.strategy_specs import RunnableSpec

__all__ = ["Decision", "Stays", "stays"]

Decision = Literal["enter", "leave"]


class Stays(NamedTuple):
    """In which bars a trade begins and ends, both at the open; one more beginning than end if the last is open.

    `decision` is what the close of the newest bar decided and no bar has carried out yet.
    """

    begins: Places
    ends: Places
    decision: Decision | None


def stays(spec: RunnableSpec, bars: Bars, figures: dict[str, Floats], slippage: float) -> Stays:
    """All of them. While in the market only the exit is looked at, while out of it only the entry."""
    enter = holding(spec.entry, figures)
    leave = holding(spec.exit, figures)
    stops = [rule for rule in spec.exit if rule.indicator is None]
    assert enter is not None, "the entry has no rule"
    if stops:
        return _stopped(enter, Stops(stops, bars.close, leave), bars.open * (1.0 + slippage))
    assert leave is not None, "the exit has no rule"
    return _paired(enter, leave)


def _paired(enter: Mask, leave: Mask) -> Stays:
    """Without stops an exit depends on no entry, so for every signal the one that follows it is looked up at once."""
    last = len(enter) - 1
    entries, exits = np.flatnonzero(enter), np.flatnonzero(leave)
    # Entered at the open after a signal, left at the first signal from that bar's close on.
    leaving = np.append(exits, last + 1)[exits.searchsorted(entries, side="right")]
    following = entries.searchsorted(leaving, side="right").tolist()
    begins, place = [], 0
    while place < len(following):
        begins.append(place)
        place = following[place]
    return _as_stays(entries[begins], leaving[begins], last)


def _stopped(enter: Mask, stops: Stops, cost: Floats) -> Stays:
    last = len(enter) - 1
    entries = np.flatnonzero(enter)
    entered, left, place = [], [], 0
    while place < len(entries):
        at = int(entries[place])
        entered.append(at)
        found = None if at >= last else stops.first(at + 1, float(cost[at + 1]))
        left.append(last + 1 if found is None else found)
        place = int(entries.searchsorted(left[-1], side="right"))
    return _as_stays(np.array(entered, dtype=np.int64), np.array(left, dtype=np.int64), last)


def _as_stays(entered: Places, left: Places, last: int) -> Stays:
    """Signals at closes as fills at the opens that follow, if they do."""
    if len(entered) and entered[-1] == last:
        return Stays(entered[:-1] + 1, left[:-1] + 1, "enter")
    ends = left[left < last] + 1
    return Stays(entered + 1, ends, "leave" if len(left) and left[-1] == last else None)
