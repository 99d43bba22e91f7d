"""`python -m benchmarks [NAME…] [--quick]`: tables on stdout, progress on stderr, everything under benchmarks/results/.

A missed figure is said in the table; the exit code is 0 all the same.
"""

import argparse
import asyncio
import os
from dataclasses import asdict
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from time import perf_counter

import msgspec

from benchmarks import machine
from benchmarks.measures import NAMES
from benchmarks.progress import say
from benchmarks.report import Report
from benchmarks.table import markdown

RESULTS = Path(__file__).parent / "results"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Speed of quantdeck next to other MCP servers."
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(NAMES)}; all when none is given")
    parser.add_argument("--quick", action="store_true", help="under a minute in all, with noisier numbers")
    given = parser.parse_args()
    if unknown := [name for name in given.names if name not in NAMES]:
        parser.error(f"no measure is called {', '.join(unknown)}; there are {', '.join(NAMES)}")
    return given


def keep(report: Report, quick: bool, took_s: float) -> str:
    """Write both files and return the markdown. A quick run has file names of its own, so it replaces no full run."""
    now, described = datetime.now(UTC), machine.describe()
    how = f"quick run, {now:%Y-%m-%d}" if quick else f"{now:%Y-%m-%d}"
    text = markdown(report, how, machine.summary(described))
    stem = f"{report.name}-quick" if quick else report.name
    everything = {
        "name": report.name,
        "date": now.isoformat(timespec="seconds"),
        "quick": quick,
        "took_s": round(took_s, 1),
        "machine": described,
        "figures": [{**asdict(figure), "verdict": figure.verdict} for figure in report.figures],
        **report.data,
    }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{stem}.md").write_text(text)
    (RESULTS / f"{stem}-{now:%Y-%m-%d}.json").write_bytes(msgspec.json.format(msgspec.json.encode(everything)) + b"\n")
    return text


async def run(name: str, quick: bool) -> str:
    say(f"== {name} (load average {os.getloadavg()[0]:.1f})")
    begun = perf_counter()
    report = await import_module(f"benchmarks.measures.{name}").measure(quick)
    took_s = perf_counter() - begun
    say(f"== {name} took {took_s:.0f} s")
    return keep(report, quick, took_s)


def main() -> None:
    given = arguments()
    for name in given.names or NAMES:
        print(asyncio.run(run(name, given.quick)), flush=True)


if __name__ == "__main__":
    main()
