"""Where the chart spec has each bar: a file for a symbol's month, `stocks/1min/AAPL_2025-09.parquet`.

The month is that of the bar's own open, in UTC, and counted from January 1970. A pair has its slash replaced:
`crypto/1min/BTC_USD_2025-09.parquet`.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import NamedTuple

__all__ = ["FOLDERS", "Name", "begins_s", "month_of", "name_of", "parsed"]

FOLDERS = ("stocks/1min", "crypto/1min")

_TICKER = re.compile(r"[A-Z][A-Z0-9]{0,9}(?:\.[A-Z0-9]{1,4})?")
_PAIR = re.compile(r"([A-Z0-9]{1,15})/([A-Z0-9]{2,10})")
_FILE = re.compile(r"([A-Z0-9._]{1,26})_(\d{4})-(\d{2})\.parquet")


class Name(NamedTuple):
    """A symbol as files are called after it."""

    folder: str
    stem: str

    def file(self, month: int) -> str:
        return f"{self.stem}_{1970 + month // 12:04}-{month % 12 + 1:02}.parquet"


def name_of(symbol: str) -> Name | None:
    """How a symbol's files are called; None where no file can be: nothing else ever reaches a path."""
    if _TICKER.fullmatch(symbol):
        return Name(FOLDERS[0], symbol)
    pair = _PAIR.fullmatch(symbol)
    return Name(FOLDERS[1], f"{pair[1]}_{pair[2]}") if pair else None


def parsed(folder: str, file: str) -> tuple[str, int] | None:
    """The symbol and the month of a file; None where it is none of ours, whatever it is."""
    found = _FILE.fullmatch(file)
    if found is None or not 1 <= int(found[3]) <= 12 or found[2] == "0000":
        return None
    symbol = found[1].replace("_", "/")
    name = name_of(symbol)
    if name is None or name.folder != folder:
        return None
    return symbol, (int(found[2]) - 1970) * 12 + int(found[3]) - 1


def month_of(second: int) -> int:
    at = datetime.fromtimestamp(second, UTC)
    return (at.year - 1970) * 12 + at.month - 1


def begins_s(month: int) -> int:
    """The first second of a month; of the one after the last that a date can have, where it would begin."""
    if month > _LAST:
        return _ENDS_S
    return int(datetime(1970 + month // 12, month % 12 + 1, 1, tzinfo=UTC).timestamp())


_LAST = (9999 - 1970) * 12 + 11
_ENDS_S = 253_402_300_800
