"""Get the TypeScript peer ready: the SDK and a current Node from npm, in a cache folder outside the repository."""

import os
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

from benchmarks.absence import NotAvailable

SOURCE = Path(__file__).parent / "typescript"
CACHE = Path(os.environ.get("QUANTDECK_BENCH_CACHE") or Path.home() / ".cache" / "quantdeck-bench")
NODE = "node@24"
NPM_TIMEOUT_S = 180


def _npm_install(folder: Path, *packages: str) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise NotAvailable("npm is not on PATH")
    command = [npm, "install", "--no-audit", "--no-fund", "--fetch-retries=1", "--fetch-timeout=30000", *packages]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=NPM_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired as late:
        raise NotAvailable(f"npm install took over {NPM_TIMEOUT_S} s") from late
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if "error" in line.lower()] or ["no message"]
        raise NotAvailable(f"npm install failed: {said[0].strip()}")


def node() -> str:
    """Node 24 from the cache, installed at first use; else the one on PATH."""
    folder = CACHE / "node24"
    program = folder / "node_modules" / "node" / "bin" / "node"
    if not program.exists():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "package.json").write_text('{"private": true}')
        with suppress(NotAvailable):  # an older Node still serves; its version is in the report
            _npm_install(folder, NODE)
    found = str(program) if program.exists() else shutil.which("node")
    if found is None:
        raise NotAvailable("no Node: npm could not get one and none is on PATH")
    return found


def server() -> str:
    """The path of the peer's program, next to an installed SDK."""
    folder = CACHE / "typescript"
    wanted, installed = SOURCE / "package.json", folder / "package.json"
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(SOURCE / "server.mjs", folder)
    complete = (folder / "node_modules" / "@modelcontextprotocol" / "server").is_dir()
    if not complete or not installed.exists() or installed.read_text() != wanted.read_text():
        shutil.copy(wanted, installed)
        try:
            _npm_install(folder)
        except NotAvailable:
            installed.unlink()  # so that the next run tries again
            raise
    return str(folder / "server.mjs")
