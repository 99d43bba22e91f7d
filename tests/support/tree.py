"""A copy of the tree to work in, with a .venv whose `quantdeck` is the copy."""

from __future__ import annotations

import os
import re
import shutil
import site
import subprocess
import sys
import venv
from pathlib import Path

from tests.support.pages import Block

__all__ = ["Tree"]

ROOT = Path(__file__).parents[2]
PARTS = (
    "src", "tests", "docs", "scripts", "benchmarks", "pyproject.toml", "requirements.lock", ".env.example", "README.md",
    ".mypy_cache",
)  # fmt: skip
PATIENCE_S = 120


class Tree:
    """Where a page can be followed."""

    def __init__(self, place: Path) -> None:
        self.root = place / "quantdeck"
        self.home = place / "home"
        for part in PARTS:
            _copy(ROOT / part, self.root / part)
        (self.root / "scripts" / "setup").write_text("#!/bin/sh\n")  # all is set up
        _make_venv(self.root / ".venv")
        path = os.pathsep.join((str(self.root / ".venv" / "bin"), os.environ["PATH"]))
        self._env = {"PATH": path, "HOME": str(place), "QUANTDECK_HOME": str(self.home)}
        self.written: list[str] = []

    def follow(self, block: Block) -> str:
        """Do what it says; what the commands said."""
        if not block.language:
            return "".join(map(self.run, block.commands))
        file = self.root / block.path
        assert block.path, f"the page does not say which file this is:\n{block.text}"
        file.parent.mkdir(exist_ok=True)
        file.write_text(block.changed(file.read_text() if file.exists() else ""))
        self.written.append(block.path)
        return ""

    def run(self, command: str) -> str:
        """What it said. It must go well, but that a failed call's exit status is 1."""
        at_home = re.sub(r"QUANTDECK_HOME=\S+", f"QUANTDECK_HOME={self.home}", command)
        ran = subprocess.run(
            ["bash", "-c", at_home],
            cwd=self.root,
            env=self._env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert ran.returncode in ((0, 1) if "quantdeck call" in command else (0,)), f"{command}\n{ran.stdout}"
        return ran.stdout


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        # A file of bytecode that another process is writing has a number behind its name, and is soon gone.
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("*.pyc.*"))
    elif source.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target)


def _make_venv(place: Path) -> None:
    """What is installed here, behind the copy's own source."""
    venv.create(place, symlinks=True)
    (ours,) = place.glob("lib/python*/site-packages")
    installed = next(folder for folder in site.getsitepackages() if folder.startswith(sys.prefix))
    (ours / "tree.pth").write_text(f"{place.parent / 'src'}\nimport site; site.addsitedir({installed!r})\n")
    for program in (Path(sys.prefix) / "bin").iterdir():
        here = place / "bin" / program.name
        if program.is_symlink() or here.exists():
            continue
        content = program.read_bytes()
        if content.startswith(f"#!{sys.prefix}".encode()):
            here.write_bytes(content.replace(sys.prefix.encode(), str(place).encode(), 1))
            here.chmod(0o755)
        else:
            here.symlink_to(program)
