"""Rows that are no bars: kept in a file with their line and the reason, counted by reason."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path
from types import TracebackType
from typing import Self, TextIO

from quantdeck.collectors.bar_files import FileProblem

__all__ = ["Rejects"]


class Rejects:
    """Writes its file when the first row is rejected; one of an earlier run goes when this is entered."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.reasons: Counter[str] = Counter()
        self._file: TextIO | None = None

    def __enter__(self) -> Self:
        try:
            self.path.unlink(missing_ok=True)
        except OSError as error:
            raise self._unwritable(error) from error
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._file is not None:
            self._file.close()

    def add(self, line: int, reason: str, row: str) -> None:
        """Keep one. What is after a colon in the reason is of this row alone and is not counted by."""
        self.reasons[reason.partition(":")[0]] += 1
        try:
            if self._file is None:
                self._file = self.path.open("w", encoding="utf-8", newline="")
                csv.writer(self._file).writerow(("line", "reason", "row"))
            csv.writer(self._file).writerow((line, reason, row))
        except OSError as e:
            raise self._unwritable(e) from e

    def _unwritable(self, error: OSError) -> FileProblem:
        return FileProblem(
            f"has rows to reject, and {self.path} cannot be written ({error.strerror}); name another with --rejects"
        )
