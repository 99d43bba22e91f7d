"""Instants of an event log: whole microseconds since 1970 UTC inside, ISO 8601 outside."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

__all__ = ["instant", "micros", "text"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NAIVE_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - what has no offset is UTC


_FIRST, _LAST = -62_135_596_800_000_000, 253_402_300_799_999_999


def instant(told: str) -> datetime:
    """An ISO 8601 time. One without an offset is UTC, wherever this machine stands.

    A date alone is refused with a ValueError: as the end of a range it would leave out its own day unseen.
    """
    told = told.strip().upper()
    if len(told) < 13 or (":" not in told and "T" not in told):
        raise ValueError("must be a time such as 2026-01-15T09:30:00Z; without an offset it is UTC")
    try:
        found = datetime.fromisoformat(told)
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError("must be a time such as 2026-01-15T09:30:00Z; without an offset it is UTC") from None


def micros(at: datetime) -> int:
    """Exactly; a naive one is UTC."""
    since: timedelta = at - (_NAIVE_EPOCH if at.tzinfo is None else _EPOCH)
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def text(at: int) -> str:
    """`2025-06-15T14:30:45.123Z`: milliseconds always, microseconds where there are any.

    Another program's file may hold a time before the year 1; it is told as that year's beginning.
    """
    seconds, fraction = divmod(max(_FIRST, min(at, _LAST)), 1_000_000)
    whole = (_NAIVE_EPOCH + timedelta(seconds=seconds)).isoformat()
    thousandths, rest = divmod(fraction, 1000)
    return f"{whole}.{fraction:06}Z" if rest else f"{whole}.{thousandths:03}Z"
