"""A server of the tests' own: a process over a folder, which ends as a crash would."""

from __future__ import annotations

import shutil
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["Killable"]


class Killable(ABC):
    """Whoever inherits starts the process and keeps it in `_process`, its files in `_folder`."""

    _folder: Path
    _process: subprocess.Popen[bytes] | None = None

    @abstractmethod
    def start(self) -> None:
        """Have it answer."""

    def stop(self) -> None:
        """As a crash would: nobody is waited for."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    @contextmanager
    def stopped(self) -> Iterator[None]:
        self.stop()
        try:
            yield
        finally:
            self.start()

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)
