"""The five contracts, as the specs were read."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import orjson

__all__ = ["contract_of"]

_SPECS = Path(__file__).parents[2] / "docs" / "spec"


@cache
def contract_of(spec: str) -> Any:
    return orjson.loads((_SPECS / f"{spec}.json").read_bytes())
