"""What a test needs and a machine may not have."""

from __future__ import annotations

import pytest

__all__ = ["MISSING", "missing"]

MISSING = "a service is missing: "
"""By this the run knows what --require-services forbids, also where a test was not marked."""


def missing(what: str) -> BaseException:
    """To be raised: it skips the test, or fails it with --require-services."""
    return pytest.skip.Exception(MISSING + what)
