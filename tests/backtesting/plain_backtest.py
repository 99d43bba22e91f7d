"""A backtest once more, one bar after the other, in plain Python: what the engine is held against."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from quantdeck.domain.strategy_specs import Rule, RunnableSpec
from tests.backtesting.plain_figures import CLOSE, OPEN, Bar, Figures

STILL = 1e-12


@dataclass
class Trade:
    entry: int
    paid: float
    units: float
    spent: float
    exit: int | None = None
    got: float | None = None
    profit: float | None = None


@dataclass
class Loop:
    """The account as it goes from bar to bar."""

    spec: RunnableSpec
    bars: list[Bar]
    figures: dict[str, Figures]
    cash: float
    fee: float
    slippage: float
    trades: list[Trade] = field(default_factory=list)
    equity: list[float] = field(default_factory=list)
    held: int = 0
    trade: Trade | None = None
    decision: str | None = None

    def run(self) -> Loop:
        for at in range(len(self.bars)):
            self._fill(at)
            close = self.bars[at][CLOSE]
            self.held += self.trade is not None
            self.equity.append(self.cash if self.trade is None else self.trade.units * close)
            rules = self.spec.entry if self.trade is None else self.spec.exit
            holds = all(self._holds(rule, at) for rule in rules)
            self.decision = ("enter" if self.trade is None else "leave") if holds else None
        return self

    def _fill(self, at: int) -> None:
        price = self.bars[at][OPEN]
        if self.decision == "enter":
            paid = price * (1 + self.slippage)
            units = self.cash / (paid * (1 + self.fee))
            self.trade = Trade(at, paid, units, self.cash)
            self.trades.append(self.trade)
        elif self.decision == "leave":
            assert self.trade is not None
            got = price * (1 - self.slippage)
            self.cash = self.trade.units * got * (1 - self.fee)
            self.trade.exit, self.trade.got = at, got
            profit = self.cash - self.trade.spent
            self.trade.profit = 0.0 if abs(profit) < 1e-9 * self.cash else profit
            self.trade = None

    def _holds(self, rule: Rule, at: int) -> bool:
        if rule.indicator is None:
            return self._stops(rule, at)
        figure = self.figures[rule.indicator]
        if rule.operation in {"rising", "falling"}:
            return self._turns(rule, figure, at)
        other: Figures = (
            self.figures[rule.against] if isinstance(rule.against, str) else [float(rule.against)] * len(figure)
        )
        mine, theirs = figure[at], other[at]
        if mine is None or theirs is None:
            return False
        if rule.operation == "above":
            return mine > theirs
        if rule.operation == "below":
            return mine < theirs
        return self._crosses(rule.operation, figure, other, at)

    def _crosses(self, operation: str, figure: Figures, other: Figures, at: int) -> bool:
        sides = []
        for mine, theirs in zip(figure[: at + 1], other[: at + 1], strict=True):
            if mine is not None and theirs is not None:
                sides.append((mine > theirs) - (mine < theirs))
        wanted = 1 if operation == "crossed_up" else -1
        earlier = [side for side in sides[:-1] if side]
        return sides[-1] == wanted and bool(earlier) and earlier[-1] == -wanted

    def _turns(self, rule: Rule, figure: Figures, at: int) -> bool:
        bars = int(rule.against)
        if at < bars:
            return False
        for index in range(at - bars + 1, at + 1):
            new, old = figure[index], figure[index - 1]
            if new is None or old is None or not (new > old if rule.operation == "rising" else new < old):
                return False
        return True

    def _stops(self, rule: Rule, at: int) -> bool:
        assert self.trade is not None
        close, percent = self.bars[at][CLOSE], float(rule.against)
        if rule.operation == "gained":
            return close >= self.trade.paid * (100 + percent) / 100
        if rule.operation == "lost":
            return close <= self.trade.paid * (100 - percent) / 100
        peak = max(bar[CLOSE] for bar in self.bars[self.trade.entry : at + 1])
        return close <= peak * (100 - percent) / 100


def figures_of(loop: Loop, start: float, bars_per_year: float) -> dict[str, Any]:
    """The metrics, each by its textbook formula; what the engine leaves out is left out."""
    moves = [after / before - 1 for before, after in pairwise(loop.equity)]
    closed = [trade.profit for trade in loop.trades if trade.profit is not None]
    won, lost = [one for one in closed if one > 0], [one for one in closed if one <= 0]
    peak, sunk = start, 0.0
    for worth in loop.equity:
        peak = max(peak, worth)
        sunk = max(sunk, 1 - worth / peak)
    mean = math.fsum(moves) / len(moves) if moves else 0.0
    spread = math.sqrt(math.fsum((one - mean) ** 2 for one in moves) / (len(moves) - 1)) if len(moves) > 1 else None
    below = math.sqrt(math.fsum(min(one, 0.0) ** 2 for one in moves) / len(moves)) if moves else 0.0
    year = math.sqrt(bars_per_year)
    return {
        "total_return": loop.equity[-1] / start - 1 if loop.equity else None,
        "max_drawdown": sunk if loop.equity else None,
        "volatility": None if spread is None else spread * year,
        "sharpe_ratio": mean / spread * year if spread and spread > STILL else None,
        "sortino_ratio": mean / below * year if below > STILL and spread is not None else None,
        "win_rate": len(won) / len(closed) if closed else None,
        "profit_factor": math.fsum(won) / -math.fsum(lost) if math.fsum(lost) < 0 else None,
        "trades": len(closed),
        "exposure": loop.held / len(loop.bars) if loop.bars else None,
    }
