"""What an engine is started with: the launcher, the files it may see, and its environment."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

__all__ = ["ENVIRONMENT", "Cage", "Level", "interpreter", "readable"]

Level = Literal["full", "full+jit", "host", "none"]

ENVIRONMENT = {"HOME": "/proc/none", "NO_COLOR": "1", "TZ": "UTC"}
"""All of an engine's. Below such a home nothing can be kept, whoever runs it."""

_LAUNCHER = Path(__file__).with_name("launcher.py")
_EVERYWHERE = ("r:/etc/ld.so.cache", "r:/proc/self/maps", "r:/dev/urandom", "r:/sys/devices/system/cpu/online")


@dataclass(frozen=True, slots=True)
class Cage:
    """How to start one program. `sees` are rules of the launcher."""

    program: Sequence[str]
    sees: Sequence[str]
    level: Level = "full"

    def line(self, *, parent: int) -> list[str]:
        """The command line. A `parent` that is not the launcher's ends it; 0 for any."""
        # -B: nothing is written beside the launcher by its being run
        start = (sys.executable, "-I", "-S", "-B", str(_LAUNCHER), str(parent), self.level)
        return [*start, *self.sees, "--", *self.program]


def readable(binary: str, *more: str) -> tuple[str, ...]:
    """Rules for a program and what it is linked with."""
    real = os.path.realpath(binary)
    linked = _linked(real)
    loaders = [path for path in linked if re.search(r"/ld[-.]", path)]
    return (
        f"x:{real}",
        *(f"x:{path}" for path in loaders),
        *(f"r:{path}" for path in linked if path not in loaders),
        *_EVERYWHERE,
        *more,
    )


def _linked(binary: str) -> list[str]:
    """The libraries that the loader would load, by the loader's own word; the program is not run."""
    try:
        told = subprocess.run(  # noqa: S603 - our own dependency, and with this it does not begin
            [binary], env={"LD_TRACE_LOADED_OBJECTS": "1"}, capture_output=True, timeout=10, check=False
        ).stdout.decode(errors="replace")
    except (OSError, subprocess.TimeoutExpired):
        return []
    return [os.path.realpath(path) for path in re.findall(r"(/\S+) \(0x", told)]


def interpreter(*more: str) -> tuple[str, ...]:
    """Rules for a Python program of ours: this interpreter, its standard library, and the system's libraries."""
    folders = {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"), f"{sys.base_prefix}/lib"}
    system = [folder for folder in ("/lib", "/lib64", "/usr/lib", "/usr/lib64") if Path(folder).is_dir()]
    linked = {*folders, *system, str(Path(sys.executable).resolve().parent), sys.prefix}
    return (*readable(sys.executable), *(f"d:{os.path.realpath(folder)}" for folder in sorted(linked)), *more)
