"""What a measure hands back: tables and figures to show, and everything it saw for the JSON file."""

from dataclasses import dataclass, field
from typing import Any

from benchmarks.figures import Figure


@dataclass(frozen=True)
class Table:
    title: str
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]


@dataclass(frozen=True)
class Report:
    name: str
    about: str
    tables: list[Table]
    figures: list[Figure]
    data: dict[str, Any] = field(default_factory=dict)
