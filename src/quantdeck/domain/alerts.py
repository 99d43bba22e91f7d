"""What an alert can be of: the chart spec's conditions, and the rules of `crossings` that each stands for."""

from __future__ import annotations

from collections.abc import Mapping

from quantdeck.domain.arrays import Floats
from quantdeck.domain.crossings import BARS_NEEDED, BARS_USED, reading

__all__ = ["CONDITIONS", "begun", "rules_of"]

CONDITIONS: Mapping[str, Mapping[str | None, str]] = {
    "macd_cross": {"up": "macd_cross_up", "down": "macd_cross_dn"},
    "ema_cross": {"up": "ema_reclaim", "down": "ema_support_lost"},
    "bb_breakout": {"up": "bb_breakout_up", "down": "bb_breakout_dn"},
    "rsi_overbought": {None: "rsi_overbought"},
    "rsi_oversold": {None: "rsi_oversold"},
    "bb_squeeze": {None: "bb_squeeze"},
}
"""By the type of a condition, and its direction where it has one, the rule."""


def rules_of(kind: str, direction: str | None) -> frozenset[str]:
    """The rules of a condition: both where it has directions and none is said. ValueError for one that it has not."""
    rules = CONDITIONS[kind]
    if direction is None:
        return frozenset(rules.values())
    if direction not in rules:
        raise ValueError(f"{kind} has no direction; leave it out")
    return frozenset((rules[direction],))


def begun(closes: Floats) -> frozenset[str]:
    """The rules that hold at the last close and did not at the one before; none where there are too few."""
    if len(closes) < BARS_NEEDED:
        return frozenset()
    closes = closes[-BARS_USED - 1 :]
    before = reading(closes[:-1]).crossings
    return frozenset(name for name, holds in reading(closes).crossings.items() if holds and not before[name])
