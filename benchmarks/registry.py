"""The peers, in the order of the tables, and how each is started."""

import importlib.util
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from benchmarks.absence import NotAvailable
from benchmarks.peers import typescript_setup

Transport = Literal["stdio", "http"]

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Peer:
    name: str
    program: Callable[[], list[str]]  # raises NotAvailable

    def command(self, transport: Transport, tools: int) -> list[str]:
        return [*self.program(), transport, str(tools)]


def _python(module: str, needs: str) -> Callable[[], list[str]]:
    def program() -> list[str]:
        if not (ROOT / "benchmarks" / "peers" / f"{module}.py").exists():
            raise NotAvailable(f"benchmarks/peers/{module}.py is not there")
        if importlib.util.find_spec(needs) is None and not (ROOT / "src" / needs).is_dir():
            raise NotAvailable(f"{needs} is not installed")
        return [sys.executable, "-m", f"benchmarks.peers.{module}"]

    return program


def _typescript() -> list[str]:
    return [typescript_setup.node(), typescript_setup.server()]


PEERS = (
    Peer("floor", _python("floor_peer", needs="msgspec")),
    Peer("typescript", _typescript),
    Peer("MCPServer", _python("mcpserver_peer", needs="mcp")),
    Peer("fastmcp", _python("fastmcp_peer", needs="fastmcp")),
    Peer("quantdeck", _python("quantdeck_peer", needs="quantdeck")),
)


def environment() -> dict[str, str]:
    """Ours, importable from the tree, without Python's own switches: one forbids bytecode, one unbuffers stdout.

    Bytecode goes to the cache folder, so that a run writes nothing next to the sources it measures.
    """
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    path = os.pathsep.join((str(ROOT), str(ROOT / "src")))
    bytecode = str(typescript_setup.CACHE / "bytecode")
    return {**inherited, "PYTHONPATH": path, "PYTHONPYCACHEPREFIX": bytecode, "FASTMCP_CHECK_FOR_UPDATES": "off"}
