"""Bars from files and to files: what a column, a time and a length is, and what becomes of rows that are none."""

from __future__ import annotations

from types import ModuleType

from quantdeck.connections import extras
from quantdeck.core.errors import Unreachable

__all__ = ["FileProblem", "parquet_driver"]


class FileProblem(ValueError):
    """A file that cannot be read as bars; the sentence says why and which option would help."""


def parquet_driver() -> ModuleType:
    """Our module over DuckDB, where that is installed."""
    try:
        return extras.load("quantdeck.collectors.bar_files.parquet", extra="parquet")
    except Unreachable as error:
        raise FileProblem("is Parquet, whose driver is not installed: pip install 'quantdeck[parquet]'") from error
