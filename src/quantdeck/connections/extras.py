"""Modules whose driver is an extra of the package, and what is said where it is wanted and not installed."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from quantdeck.core.errors import Unreachable

__all__ = ["load"]


def load(module: str, *, extra: str) -> ModuleType:
    """Import one of our modules that imports such a driver."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("quantdeck"):
            raise
        raise Unreachable(
            f"The settings name {extra}, whose driver is not installed: pip install 'quantdeck[{extra}]'", source=extra
        ) from error
