"""The Alpaca collector on the stub: how many bars a second it takes, and whether it loses any."""

from __future__ import annotations

import logging
import tempfile
from pathlib import Path

from benchmarks.figures import Figure
from benchmarks.progress import say
from benchmarks.report import Report, Table
from tests.support.alpaca_soak import soak
from tests.support.candle_stores import KINDS

WANTED_PER_S = 5_000


async def measure(quick: bool) -> Report:
    symbols, bars, drops = (22, 1_000, 5) if quick else (22, 10_000, 40)
    about = (
        f"{symbols} symbols with {bars:,} bars each, sent by a stub of Alpaca that works in the same process, so that "
        "its own work counts against the collector: in disorder, a tenth of them twice, every twelfth corrected; until "
        "the embedded store holds the last version of each. In the second row the stub breaks connections off and goes "
        "on, so that what was missed has to be fetched."
    )
    report = Report("collector", about, [], [], {})
    logging.getLogger("quantdeck").setLevel(logging.CRITICAL)  # each connection that is broken off has its line
    rows = []
    for broken in (0, drops):
        with tempfile.TemporaryDirectory() as folder:
            place = await KINDS["embedded"].make(Path(folder) / "place")
            told = await soak(place, Path(folder), symbols=symbols, bars=bars, drops=broken, flush_s=1)
        say(f"{broken} connections broken off")
        per_s = told.bars / told.seconds
        lost = sum(told.lost.values())
        rows.append((str(broken), f"{told.bars:,}", f"{told.seconds:.1f}", f"{per_s:,.0f}", str(lost)))
        report.data[f"{broken} broken"] = {"bars": told.bars, "seconds": told.seconds, "lost": lost}
        if not broken:
            report.figures.append(Figure(f"taking {WANTED_PER_S:,} bars", 1, WANTED_PER_S / per_s, "s"))
        report.figures.append(Figure(f"bars that differ after {broken} breaks", 0, lost))
        report.figures.append(Figure(f"connections at once, with {broken} breaks", 1, told.most_connected))
    report.tables.append(Table("bars", ("broken off", "bars", "seconds", "bars/s", "differing"), rows))
    return report
