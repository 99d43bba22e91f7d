"""Calls over stdio: 3 tools, legacy era, as today's agents use a local server."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from benchmarks.client_stdio import StdioClient
from benchmarks.compare import Subject, compare
from benchmarks.figures import times
from benchmarks.load import Pace
from benchmarks.process import explained, started
from benchmarks.registry import Peer
from benchmarks.report import Report
from benchmarks.table import speed_table

TOOLS = 3
CASES = {"noop": "no-op, 120-byte result", "rows": "50 KB result and its JSON again as text"}
ABOUT = (
    "Stdio, legacy era, 3 tools listed, arguments in every call and checked by every server. One raw client for "
    "all; medians over interleaved rounds. Client and server share the machine: read the ratios (of p50). 'answer "
    "KB' is the whole response line: some servers indent the text copy."
)


@asynccontextmanager
async def opened(peer: Peer) -> AsyncIterator[Mapping[str, Subject]]:
    async with started(peer.command("stdio", TOOLS)) as process:
        client = StdioClient(process)
        with explained(process):
            await client.open(TOOLS)
            subjects = {tool: Subject(client, tool, await client.check(tool)) for tool in CASES}
        yield subjects


async def measure(quick: bool) -> Report:
    found = await compare(opened, Pace(2, 0.06, 0.03, 20) if quick else Pace(14, 0.2, 0.8, 25))
    cells = {case: found.cells(case) for case in CASES}
    return Report(
        "stdio",
        ABOUT,
        [speed_table(title, cells[case]) for case, title in CASES.items()],
        [
            times("stdio no-op", cells["noop"], "MCPServer", 0.45),
            times("stdio no-op", cells["noop"], "typescript", 2.5),
            times("stdio 50 KB with its text copy", cells["rows"], "MCPServer", 0.6),
        ],
        {"medians": cells, **found.raw()},
    )
