"""The code of `backtesting/protocol`, made from its .proto files by the protoc of the locked grpcio-tools."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from importlib.resources import files
from pathlib import Path

PLACE = "src/quantdeck/backtesting/protocol"
OWNED = (f"{PLACE}/*_pb2.py",)


def made(root: Path) -> dict[str, str]:
    """Every generated file and what it should hold."""
    sources = sorted(str(path.relative_to(root / "src")) for path in (root / PLACE).glob("*.proto"))
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "grpc_tools.protoc", "-I.", f"-I{files('grpc_tools') / '_proto'}"]
        subprocess.run([*command, f"--python_out={folder}", *sources], cwd=root / "src", check=True)
        return {f"src/{path.relative_to(folder)}": path.read_text() for path in sorted(Path(folder).rglob("*_pb2.py"))}
