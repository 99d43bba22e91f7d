"""The demo world's strategies: a pure function of the seed. What they signal and earn, its market decides."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from importlib.resources import files
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import orjson

__all__ = ["BEGAN", "SILENT_SINCE", "STALE_SYMBOL", "SYMBOLS", "Row", "World"]

SYMBOLS = ("BTC/USD", "ETH/USD", "EUR/USD", "GBP/USD", "XAU/USD")

STALE_SYMBOL = "XAU/USD"
"""Planted: its strategies fell silent; every signal they have is older than a day."""
SILENT_SPEC = "CCI_REVERSAL"
"""Planted: on GBP/USD its best implementation never signalled at all."""
SILENT_SINCE = datetime(2026, 1, 1, tzinfo=UTC)

BEGAN = datetime(2025, 1, 6, tzinfo=UTC)
_VARIANTS = 2
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
        """Rows of strategy_implementations but for their figures: each spec on each symbol, in a few variants."""
        return [
            self._implementation(spec, symbol, variant)
            for spec in self.specs()
            for symbol in SYMBOLS
            for variant in range(_VARIANTS)
        ]

    def _implementation(self, spec: Row, symbol: str, variant: int) -> Row:
        about = (spec["name"], symbol, variant)
        known_at = BEGAN + timedelta(days=int(self.unit(*about, "age") * 300))
        return {
            "impl_id": self._id("implementation", *about),
            "spec_id": spec["spec_id"],
            "symbol": symbol,
            "parameters": {p["name"]: self._setting(p, about) for p in spec["parameters"]},
            "status": _STATUSES[int(self.unit(*about, "status") * len(_STATUSES))],
            "discovered_by": "GA",
            "created_at": known_at,
            "updated_at": known_at,
            "_spec": spec["name"],
            "_forward": self.unit(*about, "forward") > 0.25,
        }

    def _setting(self, parameter: Row, about: tuple[object, ...]) -> int | float:
        low, high = float(parameter["min"]), float(parameter["max"])
        value = low + self.unit(*about, parameter["name"]) * (high - low)
        return round(value) if parameter["type"] == "INTEGER" else round(value, 2)

    def is_followed(self, strategy: Row) -> bool:
        """Whether it signals at all."""
        return not (strategy["symbol"] == "GBP/USD" and strategy["_spec"] == SILENT_SPEC)

    def _id(self, *about: object) -> str:
        return str(uuid5(NAMESPACE_URL, f"quantdeck:{self.seed}:" + ":".join(map(str, about))))
