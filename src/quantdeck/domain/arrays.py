"""numpy and TA-Lib, loaded when they are first used, and what all figures over bars have in common.

Loading numpy takes a tenth of a second, which a server that is asked for nothing but its tools need not spend. So
no module of figures loads it by being imported: `np` and `talib` stand in for the modules until something in them is
asked for. Series are float64 arrays, oldest first.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import RLock
from types import ModuleType
from typing import TYPE_CHECKING, Any

__all__ = ["Floats", "Mask", "Places", "last", "listed", "np", "on_whole_bars", "talib"]

if TYPE_CHECKING:
    import numpy as np
    import talib
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]
    Mask = NDArray[np.bool_]
    Places = NDArray[np.int64]
else:
    Floats = Mask = Places = ArrayLike = Any


class _OnFirstUse:
    """A module that is loaded when something in it is first asked for."""

    def __init__(self, load: Callable[[], ModuleType]) -> None:
        self._load = load

    def __getattr__(self, name: str) -> Any:
        with _loading:
            value = getattr(self._load(), name)
        setattr(self, name, value)
        return value


_loading = RLock()


def _numpy() -> ModuleType:
    import numpy as np

    return np


def _talib() -> ModuleType:
    # It imports both where they are installed, to accept their series: a second and 70 MB for what we never pass.
    with _absent("pandas", "polars"):
        import talib

        return talib


@contextmanager
def _absent(*names: str) -> Iterator[None]:
    """Let imports of these fail as if they were not installed; one that is loaded already stays."""
    hidden = [name for name in names if name not in sys.modules]
    sys.modules |= dict.fromkeys(hidden)  # type: ignore[arg-type]  # None is the import system's word for it
    try:
        yield
    finally:
        for name in hidden:
            del sys.modules[name]


if not TYPE_CHECKING:
    np, talib = _OnFirstUse(_numpy), _OnFirstUse(_talib)


def on_whole_bars(figure: Callable[..., Floats], *series: ArrayLike) -> Floats:
    """A figure over these series, without the bars in which any of them is not finite.

    Such a bar is as good as missing: the figure there is NaN, and those after it are what they would be had the bar
    never been. What comes out is finite or NaN, never infinite.
    """
    arrays = [np.ascontiguousarray(one, dtype=np.float64) for one in series]
    whole = np.isfinite(arrays[0])
    for one in arrays[1:]:
        whole &= np.isfinite(one)
    with np.errstate(all="ignore"):
        begin = int(whole.argmax()) if len(whole) else 0
        if begin and whole[begin:].all():  # series mostly lack their beginning and nothing else: no copy is needed
            found = np.concatenate((np.full(begin, np.nan), figure(*(one[begin:] for one in arrays))))
        elif whole.all():
            found = figure(*arrays)
        else:
            found = np.full(len(whole), np.nan)
            found[whole] = figure(*(one[whole] for one in arrays))
    endless = np.isinf(found)
    return np.where(endless, np.nan, found) if endless.any() else found


def last(series: Sequence[float] | Floats, *, back: int = 0) -> float | None:
    """The newest value, or the one `back` bars before it; None where there is none, so that no NaN leaves."""
    if len(series) <= back:
        return None
    value = float(series[-1 - back])
    return value if math.isfinite(value) else None


def listed(series: Floats) -> list[float | None]:
    """All values, None for those that there are not."""
    return [value if math.isfinite(value) else None for value in series.tolist()]
