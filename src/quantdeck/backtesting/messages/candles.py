"""Bars as messages and as columns, and what is wrong with those that somebody sent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from google.protobuf.timestamp_pb2 import Timestamp

from quantdeck.backtesting.protocol.marketdata_pb2 import Candle
from quantdeck.backtesting.protocol.quantdeck_pb2 import Columns
from quantdeck.domain.arrays import np
from quantdeck.domain.candles import COLUMNS, EARLIEST_S, LARGEST, LATEST_S, Bars

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["MOST", "as_candles", "columns_of", "of_candles", "of_columns"]

MOST = 1_000_000
"""Bars of one request: two years of minutes."""

_LONGEST_STEP = 2**40
"""Seconds. So a million of them are still a number."""

_PAIRS_TOLD = 5


def as_candles(bars: Bars, symbol: str) -> list[Candle]:
    """A message for each bar: the contract's own way, and a slow one."""
    rows = zip(*(column.tolist() for column in bars.columns()), strict=True)
    return [
        Candle(timestamp=Timestamp(seconds=at), currency_pair=symbol, open=o, high=h, low=lo, close=c, volume=v)
        for at, o, h, lo, c, v in rows
    ]


def columns_of(bars: Bars) -> tuple[Columns, dict[int, memoryview]]:
    """What is to be said of the columns in few words, and by the number of its field the memory of each."""
    step_s = int(bars.time[1] - bars.time[0]) if len(bars) > 1 else 1
    regular = len(bars) > 0 and bool((np.diff(bars.time) == step_s).all())
    kinds = {"time": "<i8", **dict.fromkeys(COLUMNS, "<f8")}
    data = {
        Columns.DESCRIPTOR.fields_by_name[name].number: np.ascontiguousarray(getattr(bars, name), kind).data.cast("B")
        for name, kind in kinds.items()
        if name != "time" or not regular
    }
    return Columns(first_s=int(bars.time[0]), step_s=step_s) if regular else Columns(), data


def of_candles(candles: Sequence[Candle], problems: list[str]) -> Bars | None:
    """The bars that these are; None where they are none, and why."""
    if _unfit_count(len(candles), problems):
        return None
    each = list(candles)
    pairs = {one.currency_pair for one in each} - {""}
    if len(pairs) > 1:
        problems.append(f"the candles are of more than one pair: {', '.join(sorted(pairs)[:_PAIRS_TOLD])}")
    columns = ([getattr(one, name) for one in each] for name in COLUMNS)
    bars = Bars.of([one.timestamp.seconds for one in each], *columns)
    return _sound(bars, problems, missing=bars.time == 0)


def of_columns(columns: Columns, problems: list[str]) -> Bars | None:
    """The same of columns."""
    data = [getattr(columns, name) for name in COLUMNS]
    many, rest = divmod(len(data[0]), 8)
    regular = columns.HasField("step_s")
    time = columns.time
    if rest or any(len(one) != len(data[0]) for one in ([*data] if regular else [time, *data])):
        problems.append("the columns of the candles are not of one length")
        return None
    if _unfit_count(many, problems):
        return None
    if regular and not (0 < columns.step_s < _LONGEST_STEP and EARLIEST_S <= columns.first_s < LATEST_S):
        problems.append("the candles open at no times that there are")
        return None
    opens = (
        np.arange(many, dtype=np.int64) * columns.step_s + columns.first_s if regular else np.frombuffer(time, "<i8")
    )
    bars = Bars(opens, *(np.frombuffer(one, "<f8") for one in data))
    return _sound(bars, problems, missing=np.zeros(many, bool))


def _unfit_count(many: int, problems: list[str]) -> bool:
    if not many:
        problems.append("there are no candles")
    elif many > MOST:
        problems.append(f"there are {many:,} candles, and one request may have {MOST:,}")
    return not 0 < many <= MOST


def _sound(bars: Bars, problems: list[str], missing: NDArray[np.bool_]) -> Bars | None:
    before = len(problems)
    if not missing.any() and _is_sound(bars):
        return bars
    numbers = np.vstack([getattr(bars, name) for name in COLUMNS])
    finite = np.isfinite(numbers)
    with np.errstate(invalid="ignore"):
        wrong: list[tuple[str, Any]] = [
            ("has no timestamp", missing),
            ("opens in no year from 1 to 9999", (bars.time < EARLIEST_S) | (bars.time >= LATEST_S)),
            ("does not open after the one before it", np.diff(bars.time, prepend=bars.time[0] - 1) <= 0),
            ("has something that is not a finite number", ~finite.all(axis=0)),
            ("has a price that is not above zero", (finite[:4] & (numbers[:4] <= 0)).any(axis=0)),
            (f"has a number beyond {LARGEST:g}", (finite & (np.abs(numbers) > LARGEST)).any(axis=0)),
        ]
    if missing.any():  # then their order tells nothing
        del wrong[2]
    problems += _told(wrong)
    return bars if len(problems) == before else None


def _is_sound(bars: Bars) -> bool:
    """Whether nothing is wrong, found out as quickly as it can be; what is not a number is beyond every bound."""
    prices = (bars.open, bars.high, bars.low, bars.close)
    return bool(
        all(one.min() > 0.0 and one.max() <= LARGEST for one in prices)
        and bars.volume.min() >= -LARGEST
        and bars.volume.max() <= LARGEST
        and bars.time[0] >= EARLIEST_S
        and bars.time[-1] < LATEST_S
        and (bars.time[1:] > bars.time[:-1]).all()
    )


def _told(wrong: Iterable[tuple[str, Any]]) -> Iterable[str]:
    for what, mask in wrong:
        places = np.flatnonzero(mask)
        if len(places):
            more = f", and so do {len(places) - 1:,} more" if len(places) > 1 else ""
            yield f"candle {int(places[0]) + 1:,} {what}{more}"
