"""pyth-pro beside the bare call that it makes, its list of 3,500 feeds, and a hundred calls at once."""

import asyncio
import json
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2
import orjson

from benchmarks import messages, questions
from benchmarks.client_stdio import StdioClient
from benchmarks.figures import Figure
from benchmarks.load import Call, Pace
from benchmarks.process import PeerFailed, Process, printed_url, started
from benchmarks.progress import say
from benchmarks.report import Report, Table
from tests.support.pyth_stub import KEY

CHANNEL, AT_S = "fixed_rate@200ms", 1_750_000_000
CONNECTIONS, AT_ONCE = 20, 100
PROPERTIES = (
    "price", "bestBidPrice", "bestAskPrice", "confidence", "exponent", "publisherCount", "feedUpdateTimestamp",
    "marketSession",
)  # fmt: skip
SERVICES = [sys.executable, "-m", "benchmarks.peers.pyth_services"]
PARSER = [sys.executable, "-m", "benchmarks.pyth_list"]
ABOUT = (
    "pyth-pro over stdio in front of the tests' stub of Pyth, a process of its own with 3,500 feeds. 'bare' is the "
    "same request by httpx2 from here, its answer parsed; it takes its turn among the others, and is taken off before "
    "what is left is divided by nothing; of these the quietest round counts. httpx2 writes the head and the body of a "
    "POST apart, which on a busy machine costs it a turn: there the two GETs say more. The list is read in a process "
    "of its own, from the bytes to what is kept."
)
Questions = Mapping[str, tuple[str, Mapping[str, Any]]]

OF_SERVICES: Questions = {
    "get_latest_price": ("get_latest_price", {"symbols": ["BTC/USD"]}),
    "get_historical_price": ("get_historical_price", {"symbols": ["BTC/USD"], "timestamp": AT_S}),
    "get_candlestick_data": (
        "get_candlestick_data", {"symbol": "BTC/USD", "resolution": "1", "from": AT_S, "to": AT_S + 5940},
    ),
}  # fmt: skip
OF_THE_LIST: Questions = {
    "get_symbols": ("get_symbols", {}),
    "get_symbols, a query": ("get_symbols", {"query": "feed 10", "asset_type": "fx"}),
    "get_symbols, one feed": ("get_symbols", {"query": "bitcoin"}),
}


async def measure(quick: bool) -> Report:
    pace = Pace(3, 0.1, 0.05, 20) if quick else Pace(12, 0.2, 0.2, 50)
    report = Report("pyth", ABOUT, [], [], {})
    with tempfile.TemporaryDirectory() as home:
        async with _served(home) as (process, url):
            await _over_services(process, url, pace, report)
        async with _served(home) as (process, url):
            await _at_once(await questions.opened(process), url, report)
    await _list(report, times=5 if quick else 20)
    return report


@asynccontextmanager
async def _served(home: str) -> AsyncIterator[tuple[Process, str]]:
    """The services, and a server of ours in front of them."""
    async with started(SERVICES) as services:
        url = await printed_url(services)
        said = {
            "QUANTDECK_HOME": home, "QUANTDECK_PYTH__ROUTER_URL": url, "QUANTDECK_PYTH__HISTORY_URL": url,
            "QUANTDECK_PYTH__ACCESS_TOKEN": KEY, "QUANTDECK_PYTH__CONNECTIONS": str(CONNECTIONS),
            "QUANTDECK_PYTH__CATALOG_S": "100000",
        }  # fmt: skip
        async with started(questions.command("pyth-pro"), **said) as process:
            yield process, url


@dataclass(frozen=True)
class Bare:
    """The request that a tool makes, without the tool; the load's way of asking it."""

    http: httpx2.AsyncClient
    method: str
    path: str
    sent: Mapping[str, Any]

    @asynccontextmanager
    async def lanes(self, tool: str, width: int) -> AsyncIterator[list[Call]]:
        del tool

        async def once() -> None:
            answer = await self.http.request(self.method, self.path, **self.sent)
            if answer.status_code != 200 or not orjson.loads(answer.content):
                raise PeerFailed(f"{self.path}: the services answered {answer.status_code}")

        yield [once] * width


def _bare(http: httpx2.AsyncClient) -> dict[str, Bare]:
    body = {"priceFeedIds": [1], "properties": PROPERTIES, "formats": [], "parsed": True, "channel": CHANNEL}
    headers = {"content-type": "application/json"}
    candles = {"symbol": "Crypto.BTC/USD", "from": AT_S, "to": AT_S + 5940, "resolution": "1"}
    at = [("ids", "1"), ("timestamp", str(AT_S * 1_000_000))]
    return {
        "get_latest_price": Bare(http, "POST", "/v1/latest_price", {"content": orjson.dumps(body), "headers": headers}),
        "get_historical_price": Bare(http, "GET", f"/v1/{CHANNEL}/price", {"params": at}),
        "get_candlestick_data": Bare(http, "GET", f"/v1/{CHANNEL}/history", {"params": candles}),
    }


async def _over_services(process: Process, url: str, pace: Pace, report: Report) -> None:
    client = await questions.opened(process)
    limits = httpx2.Limits(max_connections=CONNECTIONS, max_keepalive_connections=1)
    headers = {"authorization": f"Bearer {KEY}"}
    async with httpx2.AsyncClient(base_url=url, headers=headers, limits=limits, trust_env=False, timeout=30) as http:
        medians = await questions.timed(client, {**OF_SERVICES, **OF_THE_LIST}, pace, beside=_bare(http))
    nothing = medians[questions.NOTHING]["p50_us"]
    rows = [(questions.NOTHING, f"{nothing:.0f}", "-", "1.00")]
    for name in OF_SERVICES:
        took, bare = medians[name]["least_p50_us"], medians[f"{name}, bare"]["least_p50_us"]
        ours = (took - bare) / medians[questions.NOTHING]["least_p50_us"]
        rows.append((name, f"{took:.0f}", f"{bare:.0f}", f"{ours:.2f}"))
        # Below nothing it is the machine's other work that was measured.
        report.figures.append(Figure(f"{name}: (tool - bare call) / nothing", 1.5, ours if ours > 0 else None, "x"))
    for name in OF_THE_LIST:
        took = medians[name]["p50_us"]
        rows.append((name, f"{took:.0f}", "-", f"{took / nothing:.2f}"))
        report.figures.append(Figure(f"{name}, 3,500 feeds, warm / nothing", 3, took / nothing, "x"))
    report.tables.append(Table("p50", ("question", "p50 us", "bare us", "x nothing"), rows))
    report.data["medians"] = medians


async def _at_once(client: StdioClient, url: str, report: Report) -> None:
    """A hundred calls of a server that has just begun: one list is fetched, and few connections are opened."""
    asked = messages.template("tools/call", {"name": "get_latest_price", "arguments": {"symbols": ["BTC/USD"]}})
    async with httpx2.AsyncClient(trust_env=False) as http:
        before = (await http.get(f"{url}/counts")).json()
        answers = [messages.result(one) for one in await asyncio.gather(*(client.ask(asked) for _ in range(AT_ONCE)))]
        after = (await http.get(f"{url}/counts")).json()
    failed = sum(bool(one.get("isError")) for one in answers)
    requests = after["requests"] - before["requests"] - 1  # the second question for the counts
    report.tables.append(Table(
        f"{AT_ONCE} get_latest_price at once", ("calls", "failed", "requests", "connections at most"),
        [(str(AT_ONCE), str(failed), str(requests), str(after["connections"]))],
    ))  # fmt: skip
    report.figures.extend(
        [
            Figure(f"{AT_ONCE} at once, failed", 0, failed),
            Figure(
                f"{AT_ONCE} at once, connections beside the one of this measure", CONNECTIONS, after["connections"] - 1
            ),
            Figure(f"{AT_ONCE} at once, requests for one list and {AT_ONCE} prices", AT_ONCE + 1, requests),
        ]
    )


async def _list(report: Report, times: int) -> None:
    program = await asyncio.create_subprocess_exec(*PARSER, str(times), stdout=asyncio.subprocess.PIPE)
    told, _ = await program.communicate()
    if program.returncode:
        raise PeerFailed("the list could not be read")
    found = json.loads(told)
    say(f"the list: {found}")
    rows = [(f"{found['feeds']:,}", f"{found['bytes'] / 1e6:.1f}", f"{found['ms']:.0f}", f"{found['mb']:.1f}")]
    report.tables.append(Table("the list of feeds", ("feeds", "MB", "p50 ms", "MB of memory at most"), rows))
    report.figures.extend(
        [
            Figure("reading the list", 150, found["ms"], "ms"),
            Figure("memory for it at most", 40, found["mb"], "MB"),
        ]
    )
    report.data["list"] = found
