"""Ids of events: GUIDs outside, sixteen bytes inside."""

from __future__ import annotations

import os
import re
import time
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

__all__ = ["Ids", "derived", "guid_bytes", "guid_text"]

_GUID = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")


def guid_text(value: bytes) -> str:
    digits = value.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def guid_bytes(text: Any) -> bytes | None:
    """Of a GUID in its usual form; None for anything else."""
    if isinstance(text, str):
        return bytes.fromhex(text.replace("-", "")) if _GUID.fullmatch(text) else None
    return text.bytes if isinstance(text, UUID) else None


def derived(run: bytes, text: str) -> bytes:
    """An id for what has a name that is no GUID: the same for the same name in one run."""
    return uuid5(NAMESPACE_URL, f"{run.hex()}:{text}").bytes


class Ids:
    """Fresh ids in the order in which they are taken (UUIDs of version 7), so that their index grows at its end.

    The time is that of the log's opening, the count and a salt do the rest: a call to the system for each would cost
    more than the id.
    """

    def __init__(self) -> None:
        salt = int.from_bytes(os.urandom(5)) >> 2
        self._base = (time.time_ns() // 1_000_000) << 80 | 7 << 76 | 2 << 62 | salt
        self._taken = 0

    def fresh(self) -> bytes:
        self._taken = taken = self._taken + 1
        return (self._base | taken >> 24 << 64 | (taken & 0xFFFFFF) << 38).to_bytes(16)
