"""What the numbers were taken on."""

import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.absence import NotAvailable
from benchmarks.peers import typescript_setup

_PACKAGES = (
    *("anyio", "fastmcp", "mcp", "msgspec", "orjson", "pydantic", "quantdeck", "starlette", "uvicorn"),
    *("httptools", "uvloop"),  # uvicorn prefers these where they are installed
)


def describe() -> dict[str, Any]:
    return {
        "cores": os.cpu_count(),
        "cpu": _cpu(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in _PACKAGES},
        "typescript": _typescript(),
        "load_average": os.getloadavg(),
    }


def summary(machine: dict[str, Any]) -> str:
    return f"{machine['cores']} cores ({machine['cpu']}), Python {machine['python']}"


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _cpu() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def _typescript() -> dict[str, Any]:
    """Versions of what is in the cache by now; empty when npm could not get it."""
    folder = typescript_setup.CACHE / "typescript" / "node_modules"
    found = {}
    for package in ("@modelcontextprotocol/server", "@modelcontextprotocol/node", "zod"):
        described = folder / package / "package.json"
        found[package] = msgspec.json.decode(described.read_bytes())["version"] if described.exists() else None
    try:
        said = subprocess.run(
            [typescript_setup.node(), "--version"], capture_output=True, text=True, timeout=10, check=True
        )
        found["node"] = said.stdout.strip()
    except (NotAvailable, subprocess.SubprocessError, OSError):
        found["node"] = None
    return found
