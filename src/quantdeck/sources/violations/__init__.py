"""The port `violations`: whom a broken risk limit is told."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from quantdeck.core.contract import Source

__all__ = ["Violations"]


class Violations(Source):
    """See the module. All adapters write it to the log. That nobody could be told is no reason to fail a check."""

    port: ClassVar[str] = "violations"

    @abstractmethod
    async def tell(self, violation: Mapping[str, Any], *, corr_id: str) -> None:
        """Tell of one: `violation_type, symbol, message, severity, timestamp, metadata`."""
