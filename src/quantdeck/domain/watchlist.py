"""The watchlist: which stocks and coins are collected and shown. A file of it has a symbol per line.

What follows a # is a comment. Symbols are read as everywhere (`domain.symbols`), so `BTC` is `BTC/USD` and `brk-b` is
`BRK.B`; a symbol that stands there twice counts once, and the order is the file's.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from quantdeck.domain.symbols import UnknownSymbolError, asset_class, instrument

__all__ = ["DEFAULT", "Watchlist", "WatchlistFile", "is_crypto", "read_watchlist"]


@dataclass(frozen=True, slots=True)
class Watchlist:
    """Canonical symbols, none twice."""

    stocks: tuple[str, ...] = ()
    crypto: tuple[str, ...] = ()

    @property
    def symbols(self) -> tuple[str, ...]:
        return (*self.stocks, *self.crypto)

    @classmethod
    def of(cls, symbols: Iterable[str]) -> Watchlist:
        """Canonical symbols, each where it belongs, in their order."""
        told = dict.fromkeys(symbols)
        return cls(tuple(s for s in told if not is_crypto(s)), tuple(s for s in told if is_crypto(s)))


@dataclass(frozen=True, slots=True)
class WatchlistFile:
    """What a file says, and of each line that names nothing its number with the reason."""

    watchlist: Watchlist
    problems: tuple[str, ...] = ()


DEFAULT = Watchlist(
    stocks=(
        "SPY", "QQQ", "IWM", "AAPL", "MSFT", "GOOGL", "AMZN", "META", "NVDA", "TSLA", "BBAI", "RIOT", "NVDX", "SMR",
        "APLD", "SOUN", "SERV", "ACHR", "BITQ", "UEC",
    ),
    crypto=("BTC/USD", "ETH/USD"),
)  # fmt: skip
"""The chart spec's."""


def is_crypto(symbol: str) -> bool:
    """Whether a canonical symbol is a coin's; any other of a watchlist is a stock's."""
    return asset_class(symbol) == "crypto"


def read_watchlist(text: str) -> WatchlistFile:
    """Read the text of a file. One line that cannot be read takes none of the others with it."""
    symbols, problems = list[str](), list[str]()
    for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), 1):
        said = line.partition("#")[0].strip()
        if not said:
            continue
        try:
            symbol = instrument(said)
        except UnknownSymbolError as error:
            problems.append(f"line {number}: {said[:40]!r} {error}")
            continue
        if asset_class(symbol) in ("stock", "crypto"):
            symbols.append(symbol)
        else:
            problems.append(f"line {number}: {symbol} is neither a stock nor a coin")
    return WatchlistFile(Watchlist.of(symbols), tuple(problems))
