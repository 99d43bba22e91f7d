"""Ports for programs that must be told theirs before they start."""

from __future__ import annotations

import socket

__all__ = ["free_port"]


def free_port() -> int:
    """One that nobody listened on just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
