"""Which column of a file is what, guessed by its name, or by its place where there are no names."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from quantdeck.collectors.bar_files import FileProblem

__all__ = ["FIELDS", "Columns", "guessed", "has_names"]

FIELDS = ("time", "clock", "open", "high", "low", "close", "volume", "symbol")
"""What a column can be. `clock` is the time of day, where it stands apart from the date."""

_NEEDED = ("time", "open", "high", "low", "close")

# Of several that a file has, the first in a line counts.
_NAMES: dict[str, tuple[str, ...]] = {
    "time": (
        "time", "timestamp", "datetime", "date_time", "open_time", "opentime", "time_open", "bar_time", "start_time",
        "start", "ts", "t", "unix", "unix_time", "unix_timestamp", "epoch", "time_utc", "timestamp_utc", "datetime_utc",
        "date_utc", "gmt_time", "local_time", "date", "day", "begins_at",
    ),
    "open": ("open", "o", "open_price", "price_open", "1_open", "openprice", "opening_price"),
    "high": ("high", "h", "max", "high_price", "price_high", "2_high", "highprice", "max_price"),
    "low": ("low", "l", "min", "low_price", "price_low", "3_low", "lowprice", "min_price"),
    "close": ("close", "c", "close_price", "price_close", "last", "close_last", "4_close", "closeprice"),
    "volume": (
        "volume", "v", "vol", "base_volume", "volume_base", "volume_from", "volumefrom", "volume_traded", "5_volume",
        "total_volume", "amount", "tickvol", "tick_volume",
    ),
    "symbol": ("symbol", "ticker", "sym", "instrument", "pair", "asset", "product_id", "tic"),
}  # fmt: skip
_CLOCKS = ("time", "hour", "time_of_day")
_DATES = ("date", "day", "dtyyyymmdd", "yyyymmdd")

_NUMBER = re.compile(r"\s*[-+]?(\d+[.,]?\d*|[.,]\d+)([eE][-+]?\d+)?\s*")
_CLOCK = re.compile(r"\d{1,2}:\d{2}(:\d{2})?")


@dataclass(frozen=True, slots=True)
class Columns:
    """Of each field the place of its column, and the names of all columns."""

    place: Mapping[str, int]
    names: Sequence[str]

    def __str__(self) -> str:
        return ", ".join(f"{field} = {self.names[self.place[field]]}" for field in FIELDS if field in self.place)

    @property
    def unused(self) -> list[str]:
        """The names of columns that are none of ours."""
        return [name for place, name in enumerate(self.names) if place not in self.place.values()]


def has_names(row: Sequence[str]) -> bool:
    """Whether a first row is names: a row of bars has at least four numbers."""
    return sum(1 for cell in row if _NUMBER.fullmatch(cell)) < 4


def guessed(names: Sequence[str], sample: Sequence[str], said: Mapping[str, str], *, named: bool) -> Columns:
    """The columns as they are `said`, and otherwise as they seem. `sample` is a row of cells."""
    place = _by_name(names) if named else _by_place(sample)
    for field, column in said.items():
        if column:
            place[field] = _found(names, column)
        else:
            place.pop(field, None)
    for field in [f for f, at in place.items() if f not in said and at in {place.get(s) for s in said}]:
        del place[field]  # somebody said that its column is another
    missing = [field for field in _NEEDED if field not in place]
    if missing:
        there = ", ".join(names)
        raise FileProblem(
            f"no column was recognised as {', '.join(missing)} among {there}; say which with --map {missing[0]}=COLUMN"
        )
    return Columns(place, names)


def _by_name(names: Sequence[str]) -> dict[str, int]:
    plain = [_plain(name) for name in names]
    place: dict[str, int] = {}
    dates = [plain.index(name) for name in _DATES if name in plain]
    clocks = [plain.index(name) for name in _CLOCKS if name in plain]
    if dates and clocks:
        place |= {"time": dates[0], "clock": clocks[0]}
    for field, known in _NAMES.items():
        for name in known:
            if field not in place and name in plain:
                place[field] = plain.index(name)
    if "volume" not in place:  # "Volume BTC", "volume_(currency)": the first of them is of what is traded
        begins = [at for at, name in enumerate(plain) if name.startswith(("volume", "vol_"))]
        place |= {"volume": begins[0]} if begins else {}
    return place


def _by_place(sample: Sequence[str]) -> dict[str, int]:
    """As exchanges and terminals write files without names: time, then four prices, then the volume."""
    apart = len(sample) > 1 and _CLOCK.fullmatch(sample[1].strip()) is not None
    order = ["time", *(["clock"] if apart else []), "open", "high", "low", "close", "volume"]
    return {field: at for at, field in enumerate(order) if at < len(sample)}


def _found(names: Sequence[str], column: str) -> int:
    if column in names:
        return list(names).index(column)
    alike = [at for at, name in enumerate(names) if _plain(name) == _plain(column)]
    if alike:
        return alike[0]
    if column.isascii() and column.isdigit() and 0 < int(column[:6]) <= len(names):
        return int(column) - 1
    raise FileProblem(f"--map names the column {column!r}, and there are {', '.join(names)}")


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", name.strip().strip("<>").lower()).strip("_")
