"""The demo world's strategies and signals: pure functions of the seed and of absolute time.

Two worlds of one seed agree wherever they overlap, whenever each was made. Signals are written ahead
of time: until its own time has come, the as-of barrier keeps each one out of every answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from importlib.resources import files
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import orjson

__all__ = ["BEGAN", "LONGEST_DELAY", "SILENT_SINCE", "STALE_SYMBOL", "STEP", "SYMBOLS", "Row", "World"]

SYMBOLS = ("BTC/USD", "ETH/USD", "EUR/USD", "GBP/USD", "XAU/USD")

STALE_SYMBOL = "XAU/USD"
"""Planted: its strategies fell silent; every signal they have is older than a day."""
SILENT_SPEC = "CCI_REVERSAL"
"""Planted: on GBP/USD its best implementation never signalled at all."""
SILENT_SINCE = datetime(2026, 1, 1, tzinfo=UTC)

BEGAN = datetime(2025, 1, 6, tzinfo=UTC)
STEP = timedelta(hours=4)
LONGEST_DELAY = timedelta(minutes=200)
"""After the beginning of a step every signal of it is known."""
_VARIANTS = 2
_ACTIONS = ("BUY", "BUY", "SELL", "SELL", "HOLD", "CLOSE_LONG", "CLOSE_SHORT")
_STATUSES = ("VALIDATED", "DEPLOYED", "VALIDATED", "CANDIDATE")

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class World:
    """Everything follows from the seed."""

    seed: int

    def unit(self, *about: object) -> float:
        """A number in [0, 1) that is always the same for the same question."""
        digest = sha256(repr((self.seed, *about)).encode()).digest()
        return int.from_bytes(digest[:7]) / 2**56

    def specs(self) -> list[Row]:
        """Rows of strategy_specs."""
        read: list[Row] = orjson.loads(files(__package__).joinpath("specs.json").read_bytes())
        made = {"version": 1, "source": "CANONICAL", "is_active": True, "created_at": BEGAN, "updated_at": BEGAN}
        return [{"spec_id": self._id("spec", spec["name"]), **spec, **made} for spec in read]

    def implementations(self) -> list[Row]:
        """Rows of strategy_implementations: each spec on each symbol, in a few variants."""
        return [
            self._implementation(spec, symbol, variant)
            for spec in self.specs()
            for symbol in SYMBOLS
            for variant in range(_VARIANTS)
        ]

    def signals(self, since: datetime, until: datetime) -> Iterator[Row]:
        """Rows of implementation_signals between two instants: one per strategy in most steps."""
        strategies = self.implementations()
        step = BEGAN + ((max(since, BEGAN) - BEGAN) // STEP) * STEP
        while step < until:
            for strategy in strategies:
                if step >= since and self._speaks(strategy, step):
                    yield self._signal(strategy, step)
            step += STEP

    def last_words(self) -> list[Row]:
        """What the stale symbol's strategies said before they fell silent."""
        said = self.signals(SILENT_SINCE - timedelta(days=2), SILENT_SINCE)
        return [signal for signal in said if signal["symbol"] == STALE_SYMBOL]

    def _implementation(self, spec: Row, symbol: str, variant: int) -> Row:
        about = (spec["name"], symbol, variant)
        sharpe = round(self.unit(*about, "sharpe") * 3.2 - 0.6, 3)
        accuracy = round(0.38 + self.unit(*about, "accuracy") * 0.32, 3)
        known_at = BEGAN + timedelta(days=int(self.unit(*about, "age") * 300))
        forward = self.unit(*about, "forward") > 0.25
        return {
            "impl_id": self._id("implementation", *about),
            "spec_id": spec["spec_id"],
            "symbol": symbol,
            "parameters": {p["name"]: self._setting(p, about) for p in spec["parameters"]},
            "status": _STATUSES[int(self.unit(*about, "status") * len(_STATUSES))],
            "discovered_by": "GA",
            "backtest_sharpe": round(sharpe + 0.4, 3),
            "backtest_accuracy": round(accuracy + 0.03, 3),
            "backtest_return": round(sharpe * 0.11 + 0.05, 4),
            "backtest_max_drawdown": round(0.05 + self.unit(*about, "drawdown") * 0.25, 3),
            "backtest_trades": 60 + int(self.unit(*about, "trades") * 240),
            "forward_sharpe": sharpe if forward else None,
            "forward_accuracy": accuracy if forward else None,
            "forward_return": round(sharpe * 0.08, 4) if forward else None,
            "forward_max_drawdown": round(0.04 + self.unit(*about, "loss") * 0.2, 3) if forward else None,
            "forward_trades": 20 + int(self.unit(*about, "forward trades") * 130) if forward else None,
            "created_at": known_at,
            "updated_at": known_at,
            "_spec": spec["name"],
        }

    def _setting(self, parameter: Row, about: tuple[object, ...]) -> int | float:
        low, high = float(parameter["min"]), float(parameter["max"])
        value = low + self.unit(*about, parameter["name"]) * (high - low)
        return round(value) if parameter["type"] == "INTEGER" else round(value, 2)

    def _speaks(self, strategy: Row, step: datetime) -> bool:
        if step < strategy["created_at"]:
            return False
        if strategy["symbol"] == STALE_SYMBOL and step >= SILENT_SINCE:
            return False
        if strategy["symbol"] == "GBP/USD" and strategy["_spec"] == SILENT_SPEC:
            return False
        return self.unit(strategy["impl_id"], step.isoformat()) < 0.6

    def _signal(self, strategy: Row, step: datetime) -> Row:
        about = (strategy["impl_id"], step.isoformat())
        at = step + timedelta(minutes=int(self.unit(*about, "minute") * (LONGEST_DELAY // timedelta(minutes=1))))
        return {
            "signal_id": self._id("signal", *about),
            "impl_id": strategy["impl_id"],
            "symbol": strategy["symbol"],
            "action": _ACTIONS[int(self.unit(*about, "action") * len(_ACTIONS))],
            "strength": round(0.35 + self.unit(*about, "strength") * 0.6, 3),
            "signal_type": "live",
            "signal_timestamp": at,
            "created_at": at + timedelta(seconds=2),
        }

    def _id(self, *about: object) -> str:
        return str(uuid5(NAMESPACE_URL, f"quantdeck:{self.seed}:" + ":".join(map(str, about))))
