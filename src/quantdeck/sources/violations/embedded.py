"""Violations in this program's log, a line each."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from quantdeck.connections.databases import Databases
from quantdeck.settings import Settings
from quantdeck.sources.violations import Violations

__all__ = ["LoggedViolations", "connect"]

log = logging.getLogger(__name__)


def connect(url: str, settings: Settings, databases: Databases) -> LoggedViolations:
    """The adapter."""
    del url, settings, databases
    return LoggedViolations()


class LoggedViolations(Violations):
    """See the port."""

    source = "log"

    async def tell(self, violation: Mapping[str, Any], *, corr_id: str) -> None:
        log.warning("risk_violation", extra={"fields": {**violation, "correlation_id": corr_id}})
