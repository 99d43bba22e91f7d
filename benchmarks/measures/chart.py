"""chart-signals through a client: what an answer costs beside one of nothing, and how soon an alert is there."""

import asyncio
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks import questions
from benchmarks.client_stdio import StdioClient
from benchmarks.figures import Figure
from benchmarks.load import Pace
from benchmarks.process import started
from benchmarks.report import Report, Table
from quantdeck.connections.databases import Databases
from quantdeck.core.clock import Clock
from quantdeck.domain.candles import Bars, joined
from quantdeck.domain.demo_instruments import INSTRUMENTS
from quantdeck.domain.demo_market import DAY_S, DemoMarket
from quantdeck.domain.demo_sessions import shape_of
from quantdeck.domain.timeframes import MINUTE
from quantdeck.domain.watchlist import DEFAULT
from quantdeck.settings import Settings
from quantdeck.sources.candles import Candles
from quantdeck.sources.candles.parquet import connect

CLOCK, DAYS = "2026-06-03T19:00:00Z", 70
ABOUT = (
    f"{DAYS} days of one-minute bars of the spec's 22 symbols, in its Parquet files; over stdio, through the whole "
    "pipeline. 'warm' is asked again and again while the files are unchanged; 'after a write' has had a bar of the "
    "symbol stored by another process just before. An alert is waited for by asking list_alerts."
)
TIMEFRAMES = ("1min", "5min", "15min", "1hour")
WARM: dict[str, tuple[str, dict[str, Any]]] = {
    **{f"get_signals {name}": ("get_signals", {"symbol": "AAPL", "timeframe": name}) for name in TIMEFRAMES},
    "get_watchlist": ("get_watchlist", {}),
    "check_market_status": ("check_market_status", {}),
}
MOST, MOST_WATCHLIST_MS, MOST_ALERT_S = 3.0, 25.0, 2.0
TIMES = 10


async def measure(quick: bool) -> Report:
    pace = Pace(2, 0.05, 0.03, 10) if quick else Pace(8, 0.2, 0.2, 20)
    report = Report("chart", ABOUT, [], [], {})
    with tempfile.TemporaryDirectory() as home:
        settings = Settings(home=Path(home), clock=CLOCK)
        store = connect("parquet:", settings, Databases(settings))
        await _fill(store)
        said = {"QUANTDECK_HOME": home, "QUANTDECK_CLOCK": CLOCK}
        async with started(questions.command("chart-signals"), **said) as process:
            client = await questions.opened(process)
            warm = await questions.timed(client, WARM, pace)
            written = {name: [await _after_write(client, store, name) for _ in range(TIMES)] for name in TIMEFRAMES}
            await store.write("AAPL", MINUTE, _bar(_now_s() - 1200, 10.0))  # below its average, for the first to cross
            alerts = [await _alert(client, store, place) for place in range(1, TIMES + 1)]
        await store.close()
    _tell(report, {name: taken["p50_us"] for name, taken in warm.items()}, written, alerts)
    report.data.update({"warm": warm, "after_write_ms": written, "alerts_s": alerts})
    return report


def _now_s() -> int:
    return int(Clock.parse(CLOCK).now().timestamp())


async def _fill(store: Candles) -> None:
    """Up to twenty minutes before the clock: the rest is stored while it is measured."""
    last, market = _now_s() // DAY_S, DemoMarket(7, shape_of)
    for symbol in DEFAULT.symbols:
        days = [market.day(INSTRUMENTS[symbol], day) for day in range(last - DAYS, last + 1)]
        await store.write(symbol, MINUTE, joined(days).between(0, _now_s() - 1200))


def _bar(opened_s: int, price: float) -> Bars:
    return Bars.of([opened_s], [price], [price], [price], [price], [1.0])


async def _after_write(client: StdioClient, store: Candles, timeframe: str) -> float:
    """Milliseconds of the first answer that must read the file anew."""
    await store.write("TSLA", MINUTE, _bar(_now_s() - 1200, 100 + perf_counter() % 1))
    begun = perf_counter()
    await questions.ask(client, "get_signals", {"symbol": "TSLA", "timeframe": timeframe})
    return (perf_counter() - begun) * 1000


async def _alert(client: StdioClient, store: Candles, place: int) -> float:
    """Seconds from a bar's being stored to its alert in list_alerts: its price crosses the average, up or down."""
    wanted = {"symbol": "AAPL", "timeframe": "1min", "conditions": [{"type": "ema_cross"}]}
    made = await questions.ask(client, "subscribe_alerts", wanted)

    async def raised() -> int:
        found = await questions.ask(client, "list_alerts", {"subscription_id": made["subscription_id"]})
        return len(found["alerts"])

    before = await raised()
    await store.write("AAPL", MINUTE, _bar(_now_s() - 1200 + 60 * place, 1000.0 if place % 2 else 10.0))
    begun = perf_counter()
    async with asyncio.timeout(10):
        while await raised() == before:  # noqa: ASYNC110 - as a client waits that hears no notifications
            await asyncio.sleep(0.01)
    return perf_counter() - begun


def _tell(report: Report, warm: dict[str, float], written: dict[str, list[float]], alerts: list[float]) -> None:
    nothing = warm[questions.NOTHING]
    rows = [(name, f"{took:.0f}", f"{took / nothing:.2f}") for name, took in warm.items()]
    report.tables.append(Table("warm", ("question", "p50 us", "x nothing"), rows))
    slow = [(name, f"{sorted(took)[len(took) // 2]:.1f}", f"{max(took):.1f}") for name, took in written.items()]
    report.tables.append(Table("get_signals after a write", ("timeframe", "p50 ms", "most ms"), slow))
    report.tables.append(
        Table(
            "alerts", ("", "s"), [("middle", f"{sorted(alerts)[len(alerts) // 2]:.2f}"), ("most", f"{max(alerts):.2f}")]
        )
    )
    for name in TIMEFRAMES:
        ratio = warm[f"get_signals {name}"] / nothing
        report.figures.append(Figure(f"get_signals {name}, warm / nothing", MOST, ratio, "x"))
    report.figures.append(Figure("get_watchlist of 22 symbols", MOST_WATCHLIST_MS, warm["get_watchlist"] / 1000, "ms"))
    report.figures.append(Figure("an alert after its bar was stored, the longest", MOST_ALERT_S, max(alerts), "s"))
