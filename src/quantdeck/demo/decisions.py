"""What the demo world's agent decided: of each symbol once in a step, from what its strategies said by then.

A function of the world's signals, so a decision agrees with what get_strategy_consensus answers as of its instant.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from quantdeck.core.clock import iso
from quantdeck.demo.trials import implementations
from quantdeck.demo.world import BEGAN, SYMBOLS, Row, World
from quantdeck.domain.consensus import CURRENT_FOR, SILENT, Consensus, Vote, consensus
from quantdeck.domain.decisions import Limits, kept, tier
from quantdeck.domain.performance import score
from quantdeck.sources.sql.strategies import ACTIONS

__all__ = ["AGENT", "LOOKS_BACK", "decisions"]

AGENT = "demo-agent"
"""Who decided, in the rows."""

STEP = timedelta(hours=4)
DELAY = timedelta(minutes=200)
"""So long after the beginning of a step it decides; what was signalled by then it knows."""

LOOKS_BACK = CURRENT_FOR + STEP
"""How far back the signals go that a decision may rest on."""

_ACTION = {"STRONG_BUY": "BUY", "BUY": "BUY", "NEUTRAL": "HOLD", "SELL": "SELL", "STRONG_SELL": "SELL"}
_UNSCORED = 0.06  # of the decisions
_LIMITS = Limits(reasoning_chars=10_000, calls=50, result_bytes=5120, calls_bytes=102_400)


def decisions(world: World, signals: Iterable[Row], since: datetime, until: datetime) -> Iterator[Row]:
    """Rows of agent_decisions for the steps between two instants.

    `signals` are the world's own, in their order, from LOOKS_BACK before `since`. A symbol of which no strategy has a
    current signal is not decided on.
    """
    strategies = [row for row in implementations(world) if row["status"] in ("VALIDATED", "DEPLOYED")]
    strategies.sort(key=lambda row: row["impl_id"])  # as the tool has them: sums depend on the order, if only just
    of_symbol = {symbol: [row for row in strategies if row["symbol"] == symbol] for symbol in SYMBOLS}
    latest: dict[str, Row] = {}
    coming = iter(signals)
    signal = next(coming, None)
    step = BEGAN - (BEGAN - max(since, BEGAN)) // STEP * STEP
    while step < until:
        while signal is not None and signal["signal_timestamp"] < step + DELAY:
            latest[signal["impl_id"]] = signal
            signal = next(coming, None)
        for symbol in SYMBOLS:
            at = step + DELAY + timedelta(seconds=int(world.unit("decision", symbol, step) * 1800))
            if decided := _decided(world, symbol, at, of_symbol[symbol], latest):
                yield decided
        step += STEP


def _decided(world: World, symbol: str, at: datetime, strategies: list[Row], latest: dict[str, Row]) -> Row | None:
    known = [row for row in strategies if row["created_at"] <= at]
    said = [latest.get(row["impl_id"]) for row in known]
    current = [row for row in said if row is not None and row["signal_timestamp"] >= at - CURRENT_FOR]
    if not current:
        return None
    votes = [Vote(ACTIONS[row["action"]], row["strength"]) for row in current]
    found = consensus(votes + [SILENT] * (len(known) - len(votes)))
    share = max(found.bullish_count, found.bearish_count, found.neutral_count) / len(known)
    confidence = _confidence(share, known)
    chance = _chance(world, (symbol, at), share, confidence)
    return {
        "decision_id": str(uuid5(NAMESPACE_URL, f"quantdeck:{world.seed}:decision:{symbol}:{at.isoformat()}")),
        "symbol": symbol,
        "action": _ACTION[found.consensus],
        "confidence": confidence,
        "opportunity_score": chance,
        "opportunity_tier": tier(chance),
        "reasoning": _reasoning(found, len(known), max(current, key=lambda row: (row["strength"], row["signal_id"]))),
        "tool_calls": kept([_asked(world, symbol, at, found)], _LIMITS),
        "caller": AGENT,
        "created_at": at,
    }


def _confidence(share: float, strategies: list[Row]) -> float:
    """More where more agree, and where those that speak did well; nobody is ever sure."""
    base = 0.85 if share >= 0.8 else 0.7 if share >= 0.6 else 0.5
    scores = [known for row in strategies if (known := score("sharpe", row["forward_sharpe"])) is not None]
    quality = sum(scores) / len(scores) if scores else 0.0
    return round(min(max(base * (0.8 + 0.2 * quality), 0.3), 0.95), 3)


def _chance(world: World, about: tuple[object, ...], share: float, confidence: float) -> float | None:
    if world.unit(*about, "unscored") < _UNSCORED:
        return None
    earned, moved = world.unit(*about, "return"), world.unit(*about, "volatility")
    return round(100 * (0.25 * confidence + 0.30 * earned + 0.20 * share + 0.15 * moved + 0.10), 2)


def _reasoning(found: Consensus, voices: int, strongest: Row) -> str:
    return (
        f"{found.bullish_count} of {voices} strategies are bullish, {found.bearish_count} bearish and "
        f"{found.neutral_count} neutral: {found.consensus}. The strongest signal is {strongest['action']} with "
        f"{strongest['strength']:.2f}, of {iso(strongest['signal_timestamp'])}."
    )


def _asked(world: World, symbol: str, at: datetime, found: Consensus) -> dict[str, Any]:
    return {
        "id": "call_1",
        "tool": "get_strategy_consensus",
        "server": "strategy-mcp",
        "parameters": {"symbol": symbol},
        "result": {
            "bullish_count": found.bullish_count,
            "bearish_count": found.bearish_count,
            "neutral_count": found.neutral_count,
            "consensus": found.consensus,
            "confidence": found.confidence,
        },
        "latency_ms": 5 + int(world.unit(symbol, at, "latency") * 40),
        "timestamp": iso(at),
    }
