"""What trades come to: fills with fee and slippage, cash, and what the account is worth at each close."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from quantdeck.backtesting.engine.trading import Stays
from quantdeck.domain.arrays import Floats, Places, listed, np
from quantdeck.domain.candles import Bars

__all__ = ["Account", "Costs", "Trades", "account"]


@dataclass(frozen=True, slots=True)
class Costs:
    """Fractions (0.001 is 0.1 %). The fee is of what changes hands; slippage makes each price so much worse."""

    fee: float = 0.001
    slippage: float = 0.0

    def __post_init__(self) -> None:
        if not (0.0 <= self.fee < 1.0 and 0.0 <= self.slippage < 1.0):
            raise ValueError(
                f"fee and slippage are fractions from 0 to below 1, not {self.fee:g} and {self.slippage:g}"
            )


@dataclass(frozen=True, slots=True, eq=False)
class Trades:
    """A column each, oldest first. The last may be open: its end is NaN, and its profit what it is worth so far.

    `begins` and `ends` are places in the equity curve, `returns` are after fees. For an open one `ends` is how many
    bars there are.
    """

    entry_time: Places
    exit_time: Places
    entry_price: Floats
    exit_price: Floats
    units: Floats
    profit: Floats
    returns: Floats
    begins: Places
    ends: Places
    open: bool

    def __len__(self) -> int:
        return len(self.entry_time)

    @property
    def closed(self) -> int:
        return len(self) - self.open

    def rows(self) -> list[dict[str, Any]]:
        """As a person would write them down: seconds since 1970, None for what is not there."""
        columns = zip(
            self.entry_time.tolist(), listed(self.entry_price), self.exit_time.tolist(), listed(self.exit_price),
            listed(self.units), listed(self.profit), listed(self.returns), (self.ends - self.begins).tolist(),
            strict=True,
        )  # fmt: skip
        names = ("entry_time", "entry_price", "exit_time", "exit_price", "units", "profit", "return", "bars")
        found = [dict(zip(names, row, strict=True)) for row in columns]
        if self.open:
            found[-1]["exit_time"] = None
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Account:
    trades: Trades
    equity: Floats
    held: int
    """In how many bars there was a trade."""


def account(bars: Bars, stays: Stays, cash: float, costs: Costs) -> Account:
    """All the money goes into each trade, and all of it comes back."""
    begins, closed = stays.begins, len(stays.ends)
    ends = stays.ends if closed == len(begins) else np.append(stays.ends, len(bars))
    with np.errstate(all="ignore"):
        bought = bars.open[begins] * (1.0 + costs.slippage)
        sold = np.append(bars.open[stays.ends] * (1.0 - costs.slippage), np.full(len(begins) - closed, np.nan))
        each = sold * (1.0 - costs.fee) / (bought * (1.0 + costs.fee))
        before = cash * np.cumprod(np.append(1.0, each[: len(begins) - 1])) if len(begins) else np.empty(0)
        after = before * each
        units = before / (bought * (1.0 + costs.fee))
        equity = _equity(bars.close, begins, ends, cash, units, after[:closed])
        worth = np.append(after[:closed], equity[-1:] if closed < len(begins) else ())
        trades = Trades(
            entry_time=bars.time[begins],
            exit_time=np.append(bars.time[stays.ends], bars.time[-1:] if closed < len(begins) else ()).astype(np.int64),
            entry_price=bought,
            exit_price=sold,
            units=units,
            profit=worth - before,
            returns=worth / before - 1.0,
            begins=begins,
            ends=ends,
            open=closed < len(begins),
        )
    return Account(trades, equity, int((ends - begins).sum()))


def _equity(close: Floats, begins: Places, ends: Places, cash: float, units: Floats, after: Floats) -> Floats:
    """Cash between the trades; while there is one, its units at each close."""
    turns = np.column_stack((begins, ends)).ravel()
    lengths = np.diff(turns, prepend=0, append=len(close))
    out, held = np.zeros(len(lengths)), np.zeros(len(lengths))
    out[0], out[2 : 2 + 2 * len(after) : 2], held[1::2] = cash, after, units
    return np.repeat(out, lengths) + np.repeat(held, lengths) * close
