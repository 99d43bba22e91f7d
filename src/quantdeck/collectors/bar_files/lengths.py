"""How long the bars of a file are, told by their opens. A wrong guess would show bars before they closed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise

from quantdeck.collectors.bar_files import FileProblem
from quantdeck.domain.timeframes import DAY, TIMEFRAMES, Timeframe

__all__ = ["detected"]

_NEARLY_ALL, _MOST, _SOME = 0.98, 0.5, 0.05
_DST_S = 3600


def detected(opens: Sequence[Sequence[int]]) -> Timeframe:
    """The length of bars that open at these seconds, a sequence for each symbol, in any order."""
    steps: Counter[int] = Counter()
    for times in opens:
        ordered = sorted(set(times))
        steps.update(after - before for before, after in pairwise(ordered))
    if not steps:
        raise FileProblem("one bar does not tell how long it is; say it with --timeframe, such as --timeframe 1d")
    most = max(steps, key=lambda step: (steps[step], -step))
    by_length = sorted(TIMEFRAMES.values(), key=lambda one: -one.seconds)
    for timeframe in by_length:
        if timeframe.seconds == most and steps[most] >= _MOST * steps.total():
            return timeframe
    for timeframe in by_length:
        if _share(steps, partial(_fits, timeframe.seconds)) >= _NEARLY_ALL:
            return _believed(timeframe, steps, most)
    raise FileProblem(f"bars that are {_words(most)} apart cannot be stored; the lengths are {', '.join(TIMEFRAMES)}")


def _believed(timeframe: Timeframe, steps: Counter[int], most: int) -> Timeframe:
    """A step of 45 minutes is made of quarters of an hour, and its bars are none."""
    there = _share(steps, lambda step: abs(step - timeframe.seconds) <= (_DST_S if timeframe == DAY else 0))
    if there >= _SOME and (timeframe != DAY or most < 4 * DAY.seconds):
        return timeframe
    raise FileProblem(
        f"bars that are mostly {_words(most)} apart have none of the lengths {', '.join(TIMEFRAMES)}; where each "
        f"does last {timeframe} and others are missing between them, say so with --timeframe {timeframe}"
    )


def _fits(length: int, step: int) -> bool:
    if length == DAY.seconds:  # days of a zone whose clocks change
        return step >= length - _DST_S and min(step % length, -step % length) <= _DST_S
    return step % length == 0


def _share(steps: Counter[int], test: Callable[[int], bool]) -> float:
    return sum(many for step, many in steps.items() if test(step)) / steps.total()


def _words(step_s: int) -> str:
    for unit, seconds in (("d", 86_400), ("h", 3600), ("m", 60)):
        if step_s >= seconds and step_s % seconds == 0:
            return f"{step_s // seconds}{unit}"
    return f"{step_s}s"
