"""How both tools of the shared state name a value."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

__all__ = ["CorrId", "Key"]

CorrId = Annotated[str, Field(pattern="^[a-zA-Z0-9_-]+$", max_length=128, description="Correlation ID for state scope")]
Key = Annotated[
    str, Field(pattern="^[a-zA-Z0-9._-]+$", max_length=256, description="State key within correlation scope")
]
