"""The program itself, as a person starts it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

__all__ = ["PROGRAM", "quantdeck"]

PROGRAM = [sys.executable, "-m", "quantdeck"]
PATIENCE_S = 60


def quantdeck(
    *arguments: str,
    home: Path,
    stdin: str = "",
    environment: dict[str, str] | None = None,
    folder: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run one command to its end, in a home of its own and with nobody else's settings."""
    inherited = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
    return subprocess.run(
        [*PROGRAM, *arguments],
        input=stdin,
        cwd=folder,
        env={**inherited, "QUANTDECK_HOME": str(home), **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
