"""Names that nothing else has."""

from __future__ import annotations

import random

__all__ = ["fresh_id"]

_RANDOM = random.Random()  # noqa: S311 - names, no secrets; asking the system for each costs more than many a call


def fresh_id(digits: int) -> str:
    """In hexadecimal."""
    return f"{_RANDOM.getrandbits(4 * digits):0{digits}x}"
