"""One strategy by hand, SMA and RSI, as somebody would write it who needs no other: what the engine is measured beside.

Each gives the trades and the same figures that the engine gives: equity at every close, return, Sharpe, Sortino,
drawdown, volatility, win rate, profit factor.
"""

from typing import Any

import numpy as np
import talib

from quantdeck.domain.candles import Bars

PERIOD, RSI_PERIOD, LOW, HIGH = 20, 14, 30.0, 70.0
CASH, FEE = 10_000.0, 0.001
YEAR = 365 * 1440

SPEC: dict[str, Any] = {
    "name": "SMA_RSI",
    "indicators": [
        {"id": "sma", "type": "SMA", "input": "close", "params": {"period": PERIOD}},
        {"id": "rsi", "type": "RSI", "input": "close", "params": {"period": RSI_PERIOD}},
    ],
    "entry_conditions": [
        {"type": "UNDER", "indicator": "close", "params": {"other": "sma"}},
        {"type": "UNDER_CONSTANT", "indicator": "rsi", "params": {"threshold": LOW}},
    ],
    "exit_conditions": [{"type": "OVER_CONSTANT", "indicator": "rsi", "params": {"threshold": HIGH}}],
    "parameters": [],
}


def by_bar(bars: Bars) -> dict[str, float]:
    """One bar after the other, over TA-Lib's arrays."""
    sma, rsi = talib.SMA(bars.close, PERIOD).tolist(), talib.RSI(bars.close, RSI_PERIOD).tolist()
    cash, units, spent = CASH, 0.0, 0.0
    enter = leave = False
    equity, profits = [], []
    for opens, close, average, strength in zip(bars.open.tolist(), bars.close.tolist(), sma, rsi, strict=True):
        if enter:
            spent, units, cash = cash, cash / (opens * (1.0 + FEE)), 0.0
        elif leave:
            cash, units = units * opens * (1.0 - FEE), 0.0
            profits.append(cash - spent)
        equity.append(cash + units * close)
        enter = not units and close < average and strength < LOW
        leave = bool(units) and strength > HIGH
    return _figures(np.array(equity), np.array(profits))


def by_column(bars: Bars) -> dict[str, float]:
    """With numpy, for this strategy alone."""
    sma, rsi = talib.SMA(bars.close, PERIOD), talib.RSI(bars.close, RSI_PERIOD)
    entries = np.flatnonzero((bars.close < sma) & (rsi < LOW))
    exits = np.flatnonzero(rsi > HIGH)
    last = len(bars) - 1
    leaving = np.append(exits, last + 1)[exits.searchsorted(entries, side="right")]
    following = entries.searchsorted(leaving, side="right").tolist()
    chosen, place = [], 0
    while place < len(following):
        chosen.append(place)
        place = following[place]
    begins, ends = entries[chosen] + 1, leaving[chosen] + 1
    begins, ends = begins[begins <= last], ends[begins <= last]
    closed = int((ends <= last).sum())
    growth = bars.open[ends[:closed]] * (1.0 - FEE) / (bars.open[begins[:closed]] * (1.0 + FEE))
    after = CASH * np.cumprod(growth)
    before = np.append(CASH, after)[: len(begins)]
    units = before / (bars.open[begins] * (1.0 + FEE))
    turns = np.column_stack((begins, np.minimum(ends, last + 1))).ravel()
    lengths = np.diff(turns, prepend=0, append=last + 1)
    cash, held = np.zeros(len(lengths)), np.zeros(len(lengths))
    cash[0], cash[2 : 2 + 2 * closed : 2], held[1::2] = CASH, after, units
    equity = np.repeat(cash, lengths) + np.repeat(held, lengths) * bars.close
    return _figures(equity, after - before[:closed])


def _figures(equity: Any, profits: Any) -> dict[str, float]:
    moves = equity[1:] / equity[:-1] - 1.0
    spread = moves.std(ddof=1)
    below = np.sqrt((np.minimum(moves, 0.0) ** 2).mean())
    return {
        "trades": len(profits),
        "total_return": equity[-1] / CASH - 1.0,
        "sharpe_ratio": moves.mean() / spread * YEAR**0.5,
        "sortino_ratio": moves.mean() / below * YEAR**0.5,
        "volatility": spread * YEAR**0.5,
        "max_drawdown": (1.0 - equity / np.maximum.accumulate(equity)).max(),
        "win_rate": (profits > 0.0).mean(),
        "profit_factor": profits[profits > 0.0].sum() / -profits[profits <= 0.0].sum(),
    }
