"""What several strategies say together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

__all__ = ["CURRENT_FOR", "SILENT", "Action", "Consensus", "Verdict", "Vote", "consensus"]

Action = Literal["BUY", "SELL", "HOLD"]
Verdict = Literal["STRONG_BUY", "BUY", "NEUTRAL", "SELL", "STRONG_SELL"]

CURRENT_FOR = timedelta(hours=24)
"""How long a signal counts as what its strategy says now."""

STRONG_SHARE = 0.7
PLAIN_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class Vote:
    """One strategy's current signal. No signal, or a stale one, is HOLD with strength 0."""

    action: Action
    strength: float


SILENT = Vote("HOLD", 0.0)


@dataclass(frozen=True, slots=True)
class Consensus:
    """How many lean which way, and what that amounts to."""

    bullish_count: int
    bearish_count: int
    neutral_count: int
    consensus: Verdict
    confidence: float


def consensus(votes: Iterable[Vote]) -> Consensus:
    """The verdict over all votes, silent ones included in the denominator; there must be one vote.

    As many bulls as bears are NEUTRAL, whatever their share. `confidence` is the summed strength of
    the side that won over the number of all votes.
    """
    cast = tuple(votes)
    counts = {action: sum(vote.action == action for vote in cast) for action in ("BUY", "SELL", "HOLD")}
    bulls, bears = counts["BUY"], counts["SELL"]
    share = max(bulls, bears) / len(cast)
    side: Action = "HOLD" if bulls == bears or share < PLAIN_SHARE else "BUY" if bulls > bears else "SELL"
    behind = sum(vote.strength for vote in cast if vote.action == side)
    return Consensus(bulls, bears, counts["HOLD"], _verdict(side, share), round(behind / len(cast), 4))


def _verdict(side: Action, share: float) -> Verdict:
    if side == "HOLD":
        return "NEUTRAL"
    strong = share >= STRONG_SHARE
    if side == "BUY":
        return "STRONG_BUY" if strong else "BUY"
    return "STRONG_SELL" if strong else "SELL"
