"""What every table shares whose rows are updated in place or found by id."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from uuid import UUID

from quantdeck.core.clock import Now, iso
from quantdeck.core.errors import NotInPast

__all__ = ["canonical_uuid", "refuse_later"]


def refuse_later(changes: Iterable[datetime | None], *, as_of: Now, what: str, source: str) -> None:
    """Refuse rows that were changed after a fixed instant: what they said then is gone.

    When it was is for the log only: whoever asks stands at that instant and must not learn what comes.
    """
    for changed_at in changes:
        if as_of.fixed and changed_at is not None and changed_at > as_of:
            raise NotInPast(
                f"{what} was changed after the fixed clock; its earlier state is not found in this database",
                source=source,
                clock=as_of,
            ) from LookupError(f"changed at {iso(changed_at)}")


def canonical_uuid(text: str) -> str | None:
    """An id as it is stored; None for what can be nobody's."""
    try:
        return str(UUID(text))
    except ValueError:
        return None
