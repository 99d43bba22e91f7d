"""What a row of risk_limits says."""

from __future__ import annotations

from dataclasses import fields

from quantdeck.connections.database import Row
from quantdeck.domain.risk import Limits

__all__ = ["LIMITS", "limits"]

LIMITS = tuple(field.name for field in fields(Limits))
"""Its columns: each limit is called as it is in the domain."""


def limits(row: Row) -> Limits:
    """The limits in a row. Where it says nothing of shorts there are none."""
    said = {name: row[name] for name in LIMITS}
    return Limits(**{**said, "allow_short": bool(said["allow_short"])})
