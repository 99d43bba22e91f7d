"""Calls over HTTP in both eras: 38 tools listed and arguments in the call, as a shared server is used."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import get_args

from benchmarks.client_http import HttpClient
from benchmarks.compare import Subject, compare
from benchmarks.figures import times
from benchmarks.load import Pace
from benchmarks.messages import Era
from benchmarks.process import Process, explained, printed_url, started
from benchmarks.registry import Peer
from benchmarks.report import Report
from benchmarks.table import speed_table

TOOLS = 38
ERAS: tuple[Era, ...] = get_args(Era)
TOOL_TITLES = {"noop": "no-op", "rows": "50 KB result and its JSON again as text"}
CASES = {f"{era} {tool}": f"{era} era, {title}" for era in ERAS for tool, title in TOOL_TITLES.items()}
ABOUT = (
    "HTTP on loopback, 38 tools listed, arguments in every call and checked by every server. Legacy era: a "
    "session, and an event stream or plain JSON as each server does by default. Modern era (2026-07-28): its "
    "headers and `_meta` envelope, no session. One raw keep-alive client for all, one connection per request in "
    "flight; a call ends with the last byte of its body. Medians over interleaved rounds. Client and server share "
    "the machine: read the ratios (of p50)."
)


async def _subjects(process: Process) -> dict[str, Subject]:
    url, subjects = await printed_url(process), {}
    for era in ERAS:
        client = HttpClient(url, era)
        await client.open(TOOLS)
        for tool in TOOL_TITLES:
            answer = await client.check(tool)
            subjects[f"{era} {tool}"] = Subject(client, tool, len(answer.body), "SSE" if answer.is_sse else "JSON")
    return subjects


@asynccontextmanager
async def opened(peer: Peer) -> AsyncIterator[Mapping[str, Subject]]:
    async with started(peer.command("http", TOOLS)) as process:
        with explained(process):
            subjects = await _subjects(process)
        yield subjects


async def measure(quick: bool) -> Report:
    found = await compare(opened, Pace(2, 0.06, 0.03, 20) if quick else Pace(8, 0.2, 0.6, 25))
    cells = {case: found.cells(case) for case in CASES}
    return Report(
        "http",
        ABOUT,
        [speed_table(title, cells[case], found.bodies(case)) for case, title in CASES.items()],
        [times(f"HTTP {title}", cells[case], "MCPServer", 0.8) for case, title in CASES.items()],
        {"medians": cells, **found.raw()},
    )
