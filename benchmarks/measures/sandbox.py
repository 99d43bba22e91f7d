"""execute_analysis: from a spare engine and cold, through a client; what a call of `pyth` adds; and peaks of memory."""

import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from benchmarks import messages
from benchmarks.client_stdio import StdioClient
from benchmarks.figures import Figure
from benchmarks.process import started
from benchmarks.progress import say
from benchmarks.report import Report, Table
from quantdeck.settings import Sandbox
from quantdeck.sources.sandbox import BUDGET_MB, Analysis, Language
from quantdeck.sources.sandbox.workers import Workers

ABOUT = (
    "`return 1 + 1` over stdio, through the whole pipeline and with full isolation: from a spare engine (asked slowly "
    "enough that there is one), and cold. 'added' is the time of a call of pyth as the code sees it, less what it took "
    "to answer. Peaks are of the resident set beyond an idle engine's, while the code takes all that it can get."
)

ONE: dict[Language, str] = {"typescript": "return 1 + 1", "python": "1 + 1"}
CALLS = 100
ASKING: dict[Language, str] = {
    "typescript": f"const t = Date.now(); for (let i = 0; i < {CALLS}; i++) await pyth.getSymbols(); "
    "return Date.now() - t",
    "python": "import time\nt = time.time()\n"
    f"for i in range({CALLS}):\n  await pyth.get_symbols()\nreturn (time.time() - t) * 1000",
}
THREE: dict[Language, str] = {
    "typescript": "const t = Date.now(); await Promise.all([pyth.getSymbols(), pyth.getSymbols(), pyth.getSymbols()]); "
    "return Date.now() - t",
    "python": "import asyncio, time\nt = time.time()\nawait asyncio.gather(*[pyth.get_symbols() for _ in range(3)])\n"
    "return (time.time() - t) * 1000",
}
SLOW_S = 0.2
HUNGRY: list[tuple[str, Language, str]] = [
    ("objects", "typescript", "const a = []; for (;;) a.push({ x: 1 })"),
    ("a map", "typescript", "const a = new Map(); for (let i = 0; ; i++) a.set('k' + i, i)"),
    ("buffers", "typescript", "const a = []; for (;;) a.push(new Uint8Array(1 << 20).fill(1))"),
    ("a template", "typescript", "let s = ''; for (let i = 0; ; i++) s += `${i}aaaaaaaaaaaaaaaaaaaaaaaaaaa`"),
    ("promises", "typescript", "const a = []; for (;;) a.push(Promise.resolve().then(() => 1))"),
    ("a big integer", "typescript", "let b = 2n; for (;;) b *= b"),
    ("a result", "typescript", "return Array.from({ length: 1e7 }, (_, i) => i)"),
    ("a list", "python", "x = []\nwhile True:\n  x.append([1])"),
    ("a text", "python", "s = 'x'\nwhile True:\n  s += s"),
    ("a product", "python", "import itertools\nlist(itertools.product(range(1000), repeat=5))"),
]


async def measure(quick: bool) -> Report:
    rounds = 5 if quick else 30
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        spare = await _through_a_client(home, rounds, "typescript", spares=2)
        cold: dict[Language, float] = {
            "typescript": await _through_a_client(home, rounds, "typescript", spares=0),
            "python": await _through_a_client(home, rounds, "python", spares=0),
        }
    workers = Workers(Sandbox(spares=0))
    try:
        added = {language: await _added(workers, language, max(rounds // 5, 1)) for language in ONE}
        three = {language: await _three(workers, language) for language in ONE}
        peaks = {f"{name}, {language}": await _peak(workers, language, code) for name, language, code in HUNGRY}
    finally:
        await workers.close()
    most = max(peaks.values())
    rows = [("typescript", f"{spare:.1f}", *_row("typescript", cold, added, three))]
    rows += [("python", "-", *_row("python", cold, added, three))]
    tables = [
        Table("an analysis", ("language", "spare ms", "cold ms", "added by a call, ms", "three at once"), rows),
        Table("peaks", ("of", "MB"), [(name, f"{peak:.0f}") for name, peak in peaks.items()]),
    ]
    figures = [
        Figure("1 + 1 from a spare engine, through the client, p50", 15, spare, "ms"),
        Figure("1 + 1 cold, p50, the slower language", 120, max(cold.values()), "ms"),
        Figure("what a call of pyth adds to its own time", 1, max(added.values()), "ms"),
        Figure("three calls at once, as a multiple of one", 1.5, max(three.values()), "x"),
        Figure(f"highest peak of memory, as a multiple of {BUDGET_MB} MB", 1.25, most / BUDGET_MB, "x"),
    ]
    data = {"spare_ms": spare, "cold_ms": cold, "added_ms": added, "three": three, "peaks_mb": peaks}
    return Report("sandbox", ABOUT, tables, figures, data)


def _row(language: Language, *columns: dict[Language, float]) -> tuple[str, ...]:
    cold, added, three = columns
    return (f"{cold[language]:.0f}", f"{added[language]:.2f}", f"{three[language]:.2f}")


async def _through_a_client(home: Path, rounds: int, language: Language, *, spares: int) -> float:
    """The median time of a call, in milliseconds."""
    say(f"{language}, {spares} spares")
    request = messages.template("tools/call", {"name": "execute_analysis", "arguments": {
        "code": ONE[language], "language": language}})  # fmt: skip
    async with _client(home, spares) as client:
        await client.ask(request)  # the first tries the cage
        await asyncio.sleep(4.0 if spares else 0.0)  # and spares begin two seconds after the start
        took = []
        for _ in range(rounds):
            begun = perf_counter()
            told = messages.result(await client.ask(request))
            took.append((perf_counter() - begun) * 1000)
            if told.get("isError"):
                raise SystemExit(f"an analysis failed: {told}")
            await asyncio.sleep(0.5 if spares else 0.05)
        return median(took)


@asynccontextmanager
async def _client(home: Path, spares: int) -> AsyncIterator[StdioClient]:
    command = [sys.executable, "-m", "quantdeck", "serve", "pyth-pro"]
    settings = {"QUANTDECK_HOME": str(home), "QUANTDECK_SANDBOX__SPARES": str(spares)}
    async with started(command, **settings) as process:
        client = StdioClient(process)
        await client.open(None)
        yield client


async def _added(workers: Workers, language: Language, rounds: int) -> float:
    """What each call takes beyond being answered, in milliseconds."""

    async def ask(method: str, arguments: list[Any]) -> bytes:
        return b"[]"

    found = []
    for _ in range(rounds):
        report = await workers.run(Analysis(ASKING[language], language, 30_000), ask, full=True)
        found.append((report.value - report.host_wait_ms) / CALLS)
    return float(median(found))


async def _three(workers: Workers, language: Language) -> float:
    async def ask(method: str, arguments: list[Any]) -> bytes:
        await asyncio.sleep(SLOW_S)
        return b"[]"

    report = await workers.run(Analysis(THREE[language], language, 30_000), ask, full=True)
    return float(report.value) / 1000 / SLOW_S


async def _peak(workers: Workers, language: Language, code: str) -> float:
    async def ask(method: str, arguments: list[Any]) -> bytes:
        return b"[]"

    report = await workers.run(Analysis(code, language, 30_000), ask, full=True)
    if report.problem is None or report.problem.kind != "memory":
        raise SystemExit(f"{code!r} ended with {report.problem}, not for its memory")
    return report.memory_mb
