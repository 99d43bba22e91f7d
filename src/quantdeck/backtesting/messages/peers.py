"""How a client finds out whom it speaks to."""

from __future__ import annotations

__all__ = ["OURS"]

OURS = "quantdeck.backtester"
"""The name of a service whose health only ours knows."""
