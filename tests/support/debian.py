"""Programs from Debian's packages, which are unpacked beside the virtual environment and not installed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from tests.support.alone import alone

__all__ = ["unpacked"]

INSTALL_S = 120


def unpacked(package: str) -> tuple[Path | None, str]:
    """The folder of a package, or None and why it cannot be had."""
    place = Path(sys.prefix) / package
    with alone(place):
        why_not = "" if place.exists() else _unpack(package, place)
    return (None, why_not) if why_not else (place, "")


def _unpack(package: str, place: Path) -> str:
    if not (shutil.which("apt-get") and shutil.which("dpkg")):
        return "there is no apt-get"
    making = place.with_suffix(".making")
    shutil.rmtree(making, ignore_errors=True)
    making.mkdir()
    download = ["apt-get", "download", package]
    if not _runs(download, making):
        _runs(["apt-get", "update"], making)  # a new machine's lists are empty; needs root, and says so below if not
        if not _runs(download, making):
            return f"`apt-get download {package}` fails, also after `apt-get update`"
    (file,) = making.glob(f"{package}_*.deb")
    if not _runs(["dpkg", "-x", str(file), str(making)], making):
        return "its package cannot be unpacked"
    making.rename(place)
    return ""


def _runs(command: list[str], folder: Path) -> bool:
    return not subprocess.run(command, cwd=folder, timeout=INSTALL_S, capture_output=True, check=False).returncode
