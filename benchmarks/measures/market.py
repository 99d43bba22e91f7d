"""get_candles through a client: what it adds to reading the store and encoding the page, and its tokens."""

import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from benchmarks import questions
from benchmarks.figures import Figure
from benchmarks.load import Pace
from benchmarks.process import started
from benchmarks.report import Report, Table
from quantdeck.connections.databases import Databases
from quantdeck.core.clock import Clock, Now
from quantdeck.core.wire import encode
from quantdeck.dialects import bars
from quantdeck.domain.candles import joined
from quantdeck.domain.demo_instruments import INSTRUMENTS
from quantdeck.domain.demo_market import DAY_S, DemoMarket
from quantdeck.domain.demo_sessions import shape_of
from quantdeck.domain.timeframes import MINUTE, TIMEFRAMES
from quantdeck.settings import Settings
from quantdeck.sources.candles import Candles
from quantdeck.sources.candles.embedded import connect
from tests.support.tokens import count

CLOCK, DAYS, SYMBOL = "2026-06-01T12:00:00Z", 400, "BTC/USD"
FRESH = {"force_refresh": True}
ABOUT = (
    f"{DAYS} days of one-minute bars in the embedded store; 100 rows of each timeframe over stdio, through the whole "
    "pipeline. 'alone' is the same count and page from the store in a process of its own, made rows and encoded. "
    "'ours' is (tool - nothing) / alone. 'page' is a tool that answers a page of the same size that it has ready."
)
PAGE = "page"


def _asked(timeframe: str, **more: Any) -> tuple[str, dict[str, Any]]:
    return "get_candles", {"symbol": SYMBOL, "timeframe": timeframe, **more}


ASKED = {
    "1m": _asked("1m", **FRESH),
    "1h": _asked("1h", **FRESH),
    "1h, columns": _asked("1h", format="columns", **FRESH),
    "1h, cached": _asked("1h"),
    PAGE: (PAGE, {"symbol": SYMBOL}),
}
ALONE = {"1m": ("1m", "rows"), "1h": ("1h", "rows"), "1h, columns": ("1h", "columns")}


async def measure(quick: bool) -> Report:
    pace = Pace(2, 0.05, 0.03, 10) if quick else Pace(8, 0.2, 0.2, 20)
    report = Report("market", ABOUT, [], [], {})
    with tempfile.TemporaryDirectory() as home:
        settings = Settings(home=Path(home), clock=CLOCK)
        databases = Databases(settings)
        store = connect("", settings, databases)
        await _fill(store)
        now = Clock.parse(CLOCK).now()
        before = {name: await _alone(store, *asked, now=now) for name, asked in ALONE.items()}
        said = {"QUANTDECK_HOME": home, "QUANTDECK_CLOCK": CLOCK}
        async with started(questions.command("market-data-mcp"), **said) as process:
            client = await questions.opened(process)
            medians = await questions.timed(client, ASKED, pace)
            answers = {form: await questions.ask(client, *_asked("1h", format=form)) for form in ("rows", "columns")}
        after = {name: await _alone(store, *asked, now=now) for name, asked in ALONE.items()}
        await databases.close()
    alone = {name: (took + after[name]) / 2 for name, took in before.items()}
    _tell(report, {name: taken["p50_us"] for name, taken in medians.items()}, alone)
    _tokens(report, answers)
    report.data.update({"medians": medians, "alone_us": alone})
    return report


async def _fill(store: Candles) -> None:
    last = int(Clock.parse(CLOCK).now().timestamp()) // DAY_S
    market = DemoMarket(7, shape_of)
    for first in range(last - DAYS, last + 1, 50):
        days = range(first, min(first + 50, last + 1))
        await store.write(SYMBOL, MINUTE, joined([market.day(INSTRUMENTS[SYMBOL], day) for day in days]))


async def _alone(store: Candles, timeframe: str, form: str, *, now: Now, times: int = 200) -> float:
    """Microseconds of what the tool does with the store, without the program around it."""
    length, took = TIMEFRAMES[timeframe], []
    for _ in range(times):
        begun = perf_counter()
        async with store.snapshot():
            page, total = await store.page(SYMBOL, length, 100, as_of=now)
        shown = bars.rows(page) if form == "rows" else bars.columns(page, length)
        encode({"items": shown, "pagination": {"offset": 0, "limit": 100, "total": total, "has_more": True}})
        took.append((perf_counter() - begun) * 1e6)
    return median(took)


def _tell(report: Report, took: dict[str, float], alone: dict[str, float]) -> None:
    nothing = took[questions.NOTHING]
    rows = [(questions.NOTHING, f"{nothing:.0f}", "-", "-"), (PAGE, f"{took[PAGE]:.0f}", "-", "-")]
    for name, bare in alone.items():
        ours = (took[name] - nothing) / bare
        rows.append((name, f"{took[name]:.0f}", f"{bare:.0f}", f"{ours:.2f}"))
        report.figures.append(
            Figure(f"get_candles {name}: (tool - nothing) / store and encoding alone", 1.5, ours, "x")
        )
    cached = took["1h, cached"] / took[PAGE]
    rows.append(("1h, cached", f"{took['1h, cached']:.0f}", "-", f"{cached:.2f} x page"))
    report.figures.append(Figure("get_candles 1h, cached / a page of the same size", 1.5, cached, "x"))
    report.tables.append(Table("100 rows", ("question", "p50 us", "alone us", "ours"), rows))


def _tokens(report: Report, answers: dict[str, dict[str, Any]]) -> None:
    told = {form: count([encode(body).decode()]) for form, body in answers.items()}
    rows = [(form, str(len(encode(answers[form]))), str(tokens), how) for form, (tokens, how) in told.items()]
    report.tables.append(Table("tokens of 100 rows", ("format", "bytes", "tokens", "counted"), rows))
    share = told["columns"][0] / told["rows"][0]
    report.figures.append(Figure("tokens of columns / of rows", 0.5, share, "x"))
