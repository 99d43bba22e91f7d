"""Cold start over stdio, and memory: from spawning to the first tool list; what is held then, and under load."""

import asyncio
import subprocess
import sys
import sysconfig
from statistics import median
from time import perf_counter
from typing import Any

from benchmarks.absence import NotAvailable
from benchmarks.client_stdio import StdioClient
from benchmarks.figures import Cell, Cells, Figure, value
from benchmarks.load import sample
from benchmarks.measures.stdio import CASES, TOOLS
from benchmarks.process import explained, started
from benchmarks.progress import say
from benchmarks.registry import PEERS, ROOT, Peer, environment
from benchmarks.report import Report, Table
from benchmarks.table import absent

LOAD_S, FEWEST_CALLS = 0.3, 20
COLUMNS = ("server", "cold start ms", "slowest ms", "RSS MB after start", "RSS MB peak under load")
ABOUT = (
    "Stdio, 3 tools. Cold start: from spawning the process to the answer of the first tools/list (initialize "
    "before it), bytecode compiled and files in the page cache, median of interleaved starts. Peak: after bursts "
    "of no-op and 50 KB calls, 32 in flight. The floor's time is mostly the interpreter's own: it tells a slow "
    "machine from a slow server."
)


def compile_bytecode() -> None:
    """Without it the first start of a fresh install takes twice as long, whichever server happens to come first."""
    folders = [sysconfig.get_path("purelib"), str(ROOT / "src"), str(ROOT / "benchmarks")]
    command = [sys.executable, "-m", "compileall", "-q", "-j", "0", *folders]
    silent = subprocess.DEVNULL
    subprocess.run(command, env=environment(), stdout=silent, stderr=silent, timeout=180, check=False)


async def start_once(command: list[str], under_load: bool) -> dict[str, float]:
    begun = perf_counter()
    async with started(command) as process:
        with explained(process):
            client = StdioClient(process)
            await client.open(TOOLS)
            seen = {"cold_ms": (perf_counter() - begun) * 1e3, "rss_mb": process.memory_mb("VmRSS")}
            if under_load:
                for tool in CASES:
                    await client.check(tool)
                    await sample(client, tool, LOAD_S, FEWEST_CALLS)
                seen["peak_mb"] = process.memory_mb("VmHWM")
    return seen


async def _start_all(starts: int) -> tuple[dict[str, list[dict[str, float]]], dict[str, str]]:
    taken: dict[str, list[dict[str, float]]] = {peer.name: [] for peer in PEERS}
    reasons: dict[str, str] = {}
    for turn in range(starts + 1):
        say(f"start {turn} of {starts}" if turn else "warm-up, under load")
        for peer in PEERS:
            if peer.name not in reasons:
                await _start(peer, taken[peer.name], reasons, warm_up=turn == 0)
    return taken, reasons


async def _start(peer: Peer, taken: list[dict[str, float]], reasons: dict[str, str], warm_up: bool) -> None:
    """The warm-up fills the page cache and is the one put under load; its time does not count."""
    try:
        taken.append(await start_once(peer.command("stdio", TOOLS), under_load=warm_up))
    except NotAvailable as e:
        say(f"{peer.name} not available: {e}")
        reasons[peer.name] = str(e)


def _cell(taken: list[dict[str, float]]) -> Cell:
    loaded, counted = taken[0], taken[1:]
    cold = [one["cold_ms"] for one in counted]
    return {
        "cold_ms": median(cold),
        "slowest_ms": max(cold),
        "rss_mb": median(one["rss_mb"] for one in counted),
        "peak_mb": loaded["peak_mb"],
    }


def _table(cells: Cells) -> Table:
    rows: list[tuple[str, ...]] = []
    for peer, cell in cells.items():
        shown = (absent(cell),) if isinstance(cell, str) else tuple(f"{number:.0f}" for number in cell.values())
        rows.append((peer, *shown))
    return Table("Cold start and memory", COLUMNS, rows)


def _figures(cells: Cells) -> list[Figure]:
    return [
        Figure(
            "cold start to the first tools/list", 500, value(cells, "quantdeck", "cold_ms"), "ms", strictly_below=True
        ),
        Figure("RSS after start", 75, value(cells, "quantdeck", "rss_mb"), "MB"),
        Figure("RSS peak under load", 75, value(cells, "quantdeck", "peak_mb"), "MB"),
    ]


async def measure(quick: bool) -> Report:
    say("compiling bytecode")
    await asyncio.to_thread(compile_bytecode)
    taken, reasons = await _start_all(2 if quick else 9)
    cells = {name: reasons.get(name) or _cell(starts) for name, starts in taken.items()}
    data: dict[str, Any] = {"medians": cells, "starts": taken}
    return Report("start", ABOUT, [_table(cells)], _figures(cells), data)
