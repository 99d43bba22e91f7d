"""Names that nothing else has, and names that others gave."""

from __future__ import annotations

import random
import re
from typing import Any

__all__ = ["fresh_id", "usable_id"]

_USABLE = re.compile(r"[\x21-\x7e]{1,128}")

_RANDOM = random.Random()  # noqa: S311 - names, no secrets; asking the system for each costs more than many a call


def fresh_id(digits: int) -> str:
    """In hexadecimal."""
    return f"{_RANDOM.getrandbits(4 * digits):0{digits}x}"


def usable_id(given: Any) -> str | None:
    """A caller's own name for something, if a header and a log line can carry it."""
    return given if isinstance(given, str) and _USABLE.fullmatch(given) else None
