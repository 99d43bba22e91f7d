"""Bars that the stream brought and that are not stored yet."""

from __future__ import annotations

from collections import Counter, defaultdict

from quantdeck.domain.arrays import np
from quantdeck.domain.candles import Bars

__all__ = ["LIMIT", "Memory", "Row"]

LIMIT = 3000
"""Unsaved bars of a symbol at most: the spec's. Where no store takes them for so long, the oldest go, and are owed."""

Row = tuple[float, float, float, float, float]


class Memory:
    """By symbol and open, of one open the last version. `counts` are bars that came since the start, `newest` opens."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.newest: dict[str, int] = {}
        self._unsaved: dict[str, dict[int, Row]] = {}
        self._heard: defaultdict[str, set[int]] = defaultdict(set)

    def __len__(self) -> int:
        return sum(map(len, self._unsaved.values()))

    def begin(self, symbols: tuple[str, ...]) -> None:
        """A connection begins: what an earlier one brought is older than what REST will say."""
        for symbol in symbols:
            self._heard.pop(symbol, None)

    def put(self, symbol: str, opened_s: int, row: Row) -> int | None:
        """Keep a bar; the open of the one that has to go for it, where there are too many."""
        rows = self._unsaved.setdefault(symbol, {})
        rows[opened_s] = row
        heard = self._heard[symbol]
        heard.add(opened_s)
        if len(heard) > 2 * LIMIT:
            self._heard[symbol] = set(sorted(heard)[-LIMIT:])
        self.counts[symbol] += 1
        self.newest[symbol] = max(opened_s, self.newest.get(symbol, opened_s))
        if len(rows) <= LIMIT:
            return None
        oldest = min(rows)
        del rows[oldest]
        return oldest

    def unheard(self, symbol: str, bars: Bars) -> Bars:
        """Those that this connection has not brought itself: it has the later version of what it brought."""
        heard = self._heard.get(symbol)
        if not heard:
            return bars
        kept = ~np.isin(bars.time, list(heard))
        return Bars(*(column[kept] for column in bars.columns()))

    def take(self) -> dict[str, Bars]:
        """All that is unsaved, in order of time; it is forgotten here, and comes back by `give_back`."""
        taken, self._unsaved = self._unsaved, {}
        return {symbol: _bars(rows) for symbol, rows in taken.items() if rows}

    def give_back(self, symbol: str, bars: Bars) -> int | None:
        """What could not be stored, unless a later version came meanwhile; likewise what has to go."""
        rows = self._unsaved.setdefault(symbol, {})
        for opened_s, *row in zip(*(column.tolist() for column in bars.columns()), strict=True):
            rows.setdefault(opened_s, tuple(row))
        gone = sorted(rows)[:-LIMIT]
        for opened_s in gone:
            del rows[opened_s]
        return gone[0] if gone else None


def _bars(rows: dict[int, Row]) -> Bars:
    opens = sorted(rows)
    return Bars.of(opens, *zip(*(rows[opened_s] for opened_s in opens), strict=True))
