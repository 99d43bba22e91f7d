"""Whether a strategy holds up in bars for which its numbers were not chosen."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from statistics import fmean, pstdev
from typing import Literal

from quantdeck.backtesting.engine import Backtest, Terms, run
from quantdeck.domain.candles import Bars
from quantdeck.domain.strategy_specs import RunnableSpec

__all__ = ["Limits", "Split", "Verdict", "Window", "Windows", "walk_forward"]

Status = Literal["APPROVED", "REJECTED", "INSUFFICIENT_DATA"]


@dataclass(frozen=True, slots=True)
class Windows:
    """Lengths in bars: of the bars before, of those that follow, and from one pair to the next."""

    train: int = 6480
    test: int = 2160
    step: int = 2160
    least: int = 4

    def __post_init__(self) -> None:
        if min(self.train, self.test, self.step, self.least) < 1:
            raise ValueError("windows, their step and their least number are 1 or more")

    def splits(self, bars: int) -> Iterator[Split]:
        """Each pair that is whole."""
        for begin in count(0, self.step):
            end = begin + self.train + self.test
            if end > bars:
                return
            yield Split(begin, begin + self.train, end)


@dataclass(frozen=True, slots=True)
class Split:
    """Trained from `begin`, tested from `turn` to before `end`: places in the series."""

    begin: int
    turn: int
    end: int


@dataclass(frozen=True, slots=True)
class Limits:
    """What a strategy may not be beyond: out of sample the mean Sharpe, what it lost against before, its deviation."""

    least_sharpe: float = -0.5
    most_degradation: float = 0.5
    most_spread: float = 1.5


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    split: Split
    before: Backtest
    after: Backtest


@dataclass(frozen=True, slots=True, eq=False)
class Verdict:
    """Means over the windows, in and out of sample; a window without trades counts with a Sharpe of 0.

    Degradation is the share of the figure that was lost, above 0 for a worse one; None where there was none to lose.
    """

    status: Status
    reason: str
    windows: tuple[Window, ...] = ()
    in_sample_sharpe: float | None = None
    out_of_sample_sharpe: float | None = None
    sharpe_degradation: float | None = None
    oos_sharpe_std_dev: float | None = None
    in_sample_return: float | None = None
    out_of_sample_return: float | None = None
    return_degradation: float | None = None


def walk_forward(
    spec: RunnableSpec,
    bars: Bars,
    terms: Terms | None = None,
    windows: Windows | None = None,
    limits: Limits | None = None,
    tell: Callable[[float], None] = lambda done: None,
) -> Verdict:
    """Each pair of windows by itself, and what they come to. `tell` hears which share of them is done."""
    windows, limits = windows or Windows(), limits or Limits()
    splits = list(windows.splits(len(bars)))
    if len(splits) < windows.least:
        wanted = windows.train + windows.test + (windows.least - 1) * windows.step
        return Verdict(
            "INSUFFICIENT_DATA",
            f"{len(bars)} bars make {len(splits)} windows; {windows.least} of them take {wanted} bars",
        )
    found = []
    for place, split in enumerate(splits, 1):
        parts = bars[split.begin : split.turn], bars[split.turn : split.end]
        found.append(Window(split, *(run(spec, part, terms) for part in parts)))
        tell(place / len(splits))
    return _judged(tuple(found), limits)


def _judged(windows: tuple[Window, ...], limits: Limits) -> Verdict:
    before, after = ([getattr(window, part).metrics for window in windows] for part in ("before", "after"))
    sharpes = [one.sharpe_ratio or 0.0 for one in after]
    sharpe_before, sharpe = fmean(one.sharpe_ratio or 0.0 for one in before), fmean(sharpes)
    return_before, gained = (fmean(one.total_return or 0.0 for one in part) for part in (before, after))
    degradation, spread = _lost(sharpe_before, sharpe), pstdev(sharpes)
    lost = degradation or 0.0
    wrong = []
    if not any(one.exposure for one in after):
        wrong.append("it makes no trade out of sample")
    if sharpe < limits.least_sharpe:
        wrong.append(f"its mean Sharpe out of sample is {sharpe:.4g}, below {limits.least_sharpe:g}")
    if lost > limits.most_degradation:
        wrong.append(f"it loses {lost:.4g} of its Sharpe out of sample, more than {limits.most_degradation:g}")
    if spread > limits.most_spread:
        wrong.append(f"its Sharpe out of sample deviates by {spread:.4g}, more than {limits.most_spread:g}")
    return Verdict(
        status="REJECTED" if wrong else "APPROVED",
        reason="; ".join(wrong),
        windows=windows,
        in_sample_sharpe=sharpe_before,
        out_of_sample_sharpe=sharpe,
        sharpe_degradation=degradation,
        oos_sharpe_std_dev=spread,
        in_sample_return=return_before,
        out_of_sample_return=gained,
        return_degradation=_lost(return_before, gained),
    )


def _lost(before: float, after: float) -> float | None:
    return (before - after) / abs(before) if before else None
