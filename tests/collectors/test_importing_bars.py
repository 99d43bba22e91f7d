"""What becomes of the rows of a file: every one is stored, superseded or rejected, and what was guessed is told."""

from __future__ import annotations

import csv
import gzip
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quantdeck.collectors.bar_files import FileProblem
from quantdeck.collectors.bar_files.importing import Imported, Wishes, import_file
from quantdeck.collectors.bar_files.rejects import Rejects
from quantdeck.collectors.bar_files.times import zone
from quantdeck.connections.databases import Databases
from quantdeck.core.errors import QueryFailed
from quantdeck.domain.timeframes import DAY, MINUTE, TIMEFRAMES
from quantdeck.settings import Settings
from quantdeck.sources.candles import Candles
from quantdeck.sources.candles.embedded import connect
from tests.support.bars import FAR, at, every, rows, walk

NOON_S = at("2026-01-15T12:00")
UTC_TIMES = Wishes(tz=UTC)


@dataclass
class Desk:
    """A store, and what was said while files came into it."""

    candles: Candles
    folder: Path
    said: list[str] = field(default_factory=list)

    async def take(self, name: str, text: str | bytes, wishes: Wishes = UTC_TIMES) -> Imported:
        path = self.folder / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        self.said.clear()
        return await import_file(
            self.candles, path, wishes, Rejects(self.rejects(name)), self.said.append, lambda _share, _rows: None
        )

    def rejects(self, name: str) -> Path:
        return self.folder / f"{name}.rejects"

    def rejected(self, name: str) -> list[list[str]]:
        """Line and reason of each rejected row."""
        with self.rejects(name).open(newline="") as kept:
            return [row[:2] for row in csv.reader(kept)][1:]

    async def stored(self, symbol: str, timeframe=MINUTE) -> list[tuple[Any, ...]]:
        far = datetime(2099, 1, 1, tzinfo=UTC)
        return rows(await self.candles.between(symbol, timeframe, datetime(1900, 1, 1, tzinfo=UTC), far, as_of=FAR))


@pytest.fixture
async def desk(tmp_path) -> AsyncIterator[Desk]:
    home = Settings(home=tmp_path / "home")
    databases = Databases(home)
    async with AsyncExitStack() as closing:
        closing.push_async_callback(databases.close)
        yield Desk(connect("", home, databases), tmp_path)


def table(times: list[Any], header: str = "time,open,high,low,close,volume", comma: str = ",") -> str:
    lines = [comma.join((str(time), "10.5", "12", "9.25", "11", str(nth))) for nth, time in enumerate(times)]
    return "\n".join([header, *lines]) + "\n"


MINUTES = every(60, NOON_S, 5)


def written(form: str, times: list[int] = MINUTES) -> list[str]:
    return [datetime.fromtimestamp(second, UTC).strftime(form) for second in times]


@pytest.mark.parametrize(
    "times, words",
    [
        (MINUTES, "seconds since 1970"),
        ([f"{second}.0" for second in MINUTES], "seconds since 1970"),
        ([second * 1000 for second in MINUTES], "milliseconds"),
        ([second * 10**6 for second in MINUTES], "microseconds"),
        ([second * 10**9 for second in MINUTES], "nanoseconds"),
        (written("%Y-%m-%dT%H:%M:%SZ"), "each with its offset"),
        (written("%Y-%m-%d %H:%M:%S+00:00"), "each with its offset"),
        (written("%Y-%m-%d %H:%M:%S UTC"), "each with its offset"),
        (written("%Y-%m-%d %H:%M"), "taken as UTC"),
        (written("%Y/%m/%d %H:%M:%S"), "taken as UTC"),
        (written("%Y.%m.%d %H:%M"), "taken as UTC"),
        (written("%Y%m%d%H%M%S"), "taken as UTC"),
        (written("%Y%m%d%H%M"), "taken as UTC"),
    ],
)
async def test_times_are_read_however_they_are_written_and_it_is_told(desk, times, words):
    done = await desk.take("BTC-USD.csv", table(times))
    assert (done.rows, done.stored, done.rejected) == (5, 5, 0)
    assert [bar[0] for bar in await desk.stored("BTC/USD")] == MINUTES
    assert any(line.startswith("times: ") and words in line for line in desk.said)


async def test_times_without_an_offset_are_not_guessed_at(desk):
    with pytest.raises(FileProblem, match="no offset from UTC; say whose they are with --tz"):
        await desk.take("BTC-USD.csv", table(written("%Y-%m-%d %H:%M")), Wishes())


async def test_hours_of_a_zone_are_read_and_those_that_are_none_or_two_are_rejected(desk):
    times = ["2026-03-08 01:30", "2026-03-08 02:30", "2026-03-08 03:30", "2026-11-01 00:30", "2026-11-01 01:30"]
    wishes = Wishes(tz=zone("America/New_York"), timeframe=TIMEFRAMES["30m"])
    done = await desk.take("BTC-USD.csv", table(times), wishes)
    assert (done.stored, done.rejected) == (3, 2)
    assert [bar[0] for bar in await desk.stored("BTC/USD", TIMEFRAMES["30m"])] == [
        at("2026-03-08T06:30"), at("2026-03-08T07:30"), at("2026-11-01T04:30"),
    ]  # fmt: skip
    (gone, twice) = desk.rejected("BTC-USD.csv")
    assert "forward" in gone[1]
    assert "twice" in twice[1]


async def test_a_form_may_be_said_where_day_and_month_could_be_either(desk):
    times = written("%d/%m/%Y %H:%M")
    with pytest.raises(FileProblem, match="--time-format"):
        await desk.take("BTC-USD.csv", table(times))
    done = await desk.take("BTC-USD.csv", table(times), Wishes(tz=UTC, form="%d/%m/%Y %H:%M"))
    assert done.stored == 5


@pytest.mark.parametrize(
    "step, base", [(60, "1m"), (300, "5m"), (900, "15m"), (3600, "1h"), (14_400, "4h"), (86_400, "1d")]
)
async def test_the_length_of_bars_is_told_by_their_opens(desk, step, base):
    first = at("2026-01-05T00:00")
    done = await desk.take("BTC-USD.csv", table(every(step, first, 20)))
    assert done.stored == 20
    assert f"bars of {base}, told by how far apart they are" in desk.said
    assert (await desk.candles.series("BTC/USD", as_of=FAR)).base == TIMEFRAMES[base]


async def test_sessions_with_gaps_are_still_minutes(desk):
    days = [at(f"2026-01-{day:02}T14:30") for day in (5, 6, 7, 8, 9, 12)]
    await desk.take("aapl.us.txt", table([second for day in days for second in every(60, day, 390)]))
    assert (await desk.candles.series("AAPL", as_of=FAR)).base == MINUTE


@pytest.mark.parametrize(
    "times, why",
    [
        (every(45 * 60, NOON_S, 30), "none of the lengths"),
        (every(7 * 86_400, at("2025-01-06T00:00"), 30), "none of the lengths"),
        (["2026-01-05", "2026-02-05", "2026-03-05", "2026-04-05"], "none of the lengths"),
        (every(30, NOON_S, 30), "apart cannot be stored"),
        (every(3600, NOON_S + 1800, 30), "open at 30 minutes past"),
        ([NOON_S], "one bar does not tell how long it is"),
    ],
)
async def test_bars_that_would_be_known_before_they_close_are_refused(desk, times, why):
    with pytest.raises(FileProblem, match=why):
        await desk.take("BTC-USD.csv", table(times))
    assert not (desk.folder / "home").exists()


@pytest.mark.parametrize(
    "times, wishes",
    [
        (["2026-01-05", "2026-01-06", "2026-01-07"], Wishes()),
        (["20260105", "20260106", "20260107"], Wishes()),
        (["2026-01-05 00:00:00-05:00", "2026-01-06 00:00:00-05:00", "2026-01-07 00:00:00-05:00"], Wishes()),
        (["2026-01-05T00:00:00+09:00", "2026-01-06T00:00:00+09:00", "2026-01-07T00:00:00+09:00"], Wishes()),
        ([at("2026-01-05T14:30"), at("2026-01-06T14:30"), at("2026-01-07T14:30")], Wishes()),
        ([at("2026-01-04T23:00"), at("2026-01-05T23:00"), at("2026-01-06T23:00")], Wishes(tz=zone("Asia/Tokyo"))),
    ],
)
async def test_days_are_those_that_are_written(desk, times, wishes):
    assert (await desk.take("AAPL.csv", table(times), wishes)).stored == 3
    assert [bar[0] for bar in await desk.stored("AAPL", DAY)] == every(86_400, at("2026-01-05T00:00"), 3)


async def test_a_day_that_begins_in_the_evening_is_of_no_certain_date(desk):
    done = await desk.take("ES.csv", table([at(f"2026-01-{day:02}T23:00") for day in (5, 6, 7)]))
    assert (done.stored, done.rejected) == (0, 3)


async def test_times_of_closes_are_moved_to_the_opens(desk):
    await desk.take("BTC-USD.csv", table([second + 60 for second in MINUTES]), Wishes(at_close=True))
    assert [bar[0] for bar in await desk.stored("BTC/USD")] == MINUTES


HEADERS = [
    "Date,Open,High,Low,Close,Volume",
    "timestamp,o,h,l,c,v",
    "open_time,open,high,low,close,volume",
    "unix,open,high,low,close,Volume BTC",
    "<DATE>,<OPEN>,<HIGH>,<LOW>,<CLOSE>,<VOL>",
    "Gmt time,Open,High,Low,Close,Volume",
    "Open Time,Open Price,High Price,Low Price,Close Price,Tick Volume",
]


@pytest.mark.parametrize("header", HEADERS)
async def test_columns_are_known_by_the_names_that_others_give_them(desk, header):
    await desk.take("BTC-USD.csv", table(MINUTES, header))
    assert (await desk.stored("BTC/USD"))[2] == (MINUTES[2], 10.5, 12.0, 9.25, 11.0, 2.0)
    names = header.split(",")
    assert desk.said[0] == (
        f"columns: time = {names[0]}, open = {names[1]}, high = {names[2]}, low = {names[3]}, close = {names[4]}, "
        f"volume = {names[5]}"
    )


async def test_files_without_names_are_read_by_place(desk):
    lines = [f"{second * 1000},10,12,9,11,5,{second * 1000 + 59_999},1,2,3,4,0" for second in MINUTES]
    assert (await desk.take("BTCUSDT-1m-2026-01.csv", "\n".join(lines))).stored == 5
    assert (await desk.stored("BTC/USDT"))[0] == (NOON_S, 10, 12, 9, 11, 5)


@pytest.mark.parametrize("names", ["<DATE>\t<TIME>\t<OPEN>\t<HIGH>\t<LOW>\t<CLOSE>\t<TICKVOL>\n", ""])
async def test_date_and_time_may_stand_apart(desk, names):
    lines = [f"2026.01.15\t12:0{nth}\t10\t12\t9\t11\t5" for nth in range(5)]
    assert (await desk.take("EURUSD_M1.csv", names + "\n".join(lines))).stored == 5
    assert [bar[0] for bar in await desk.stored("EUR/USD")] == MINUTES


async def test_the_mapping_can_be_said_by_name_or_number(desk):
    text = table(MINUTES, "a,b,d,e,f,volume")
    with pytest.raises(FileProblem, match="no column was recognised as time, open, high, low, close among a, b, d"):
        await desk.take("BTC-USD.csv", text)
    said = {"time": "a", "open": "2", "high": "d", "low": "e", "close": "f", "volume": ""}
    await desk.take("BTC-USD.csv", text, Wishes(columns=said))
    assert (await desk.stored("BTC/USD"))[2] == (MINUTES[2], 10.5, 12, 9.25, 11, 0)
    assert "volume: none in the file, stored as 0" in desk.said
    with pytest.raises(FileProblem, match="--map names the column 'nope'"):
        await desk.take("BTC-USD.csv", text, Wishes(columns={"time": "nope"}))


@pytest.mark.parametrize("comma", [";", "\t", "|"])
async def test_cells_may_be_cut_by_other_marks(desk, comma):
    header = comma.join(("time", "open", "high", "low", "close", "volume"))
    assert (await desk.take("BTC-USD.csv", table(MINUTES, header, comma))).stored == 5


async def test_fractions_may_begin_with_a_comma(desk):
    lines = [f"{second};10,5;12;9,25;11;5" for second in MINUTES]
    await desk.take("BTC-USD.csv", "time;open;high;low;close;volume\n" + "\n".join(lines), Wishes(comma=True))
    assert (await desk.stored("BTC/USD"))[0] == (NOON_S, 10.5, 12, 9.25, 11, 5)


@pytest.mark.parametrize(
    "changed",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: "\ufeff" + text,
        lambda text: "\n\n" + text + "\n\n",
        lambda text: text.rstrip("\n"),
        lambda text: text.replace("10.5", '"10.5"'),
        lambda text: text.replace("11,", "11 , "),
        lambda text: "".join(f"{line},\n" for line in text.splitlines()),
    ],
    ids=["crlf", "bom", "blank lines", "no last newline", "quotes", "blanks", "a last delimiter"],
)
async def test_the_manners_of_programs_change_nothing(desk, changed):
    done = await desk.take("BTC-USD.csv", changed(table(MINUTES)))
    assert (done.stored, done.rejected) == (5, 0)
    assert not desk.rejects("BTC-USD.csv").exists()
    assert (await desk.stored("BTC/USD"))[1] == (MINUTES[1], 10.5, 12, 9.25, 11, 1)


@pytest.mark.parametrize("pack", [gzip.compress, lambda text: text.decode().encode("utf-16")], ids=["gzip", "utf-16"])
async def test_packed_files_and_those_of_windows_terminals_are_read(desk, pack):
    assert (await desk.take("BTC-USD.csv.gz", pack(table(MINUTES).encode()))).stored == 5


BAD = [
    ("abc,10,12,9,11,1", "time is no number"),
    (",10,12,9,11,1", "time is empty"),
    (f"{NOON_S}.5,10,12,9,11,1", "time is no number"),
    (f"{NOON_S},ten,12,9,11,1", "open is no number"),
    (f"{NOON_S},1_0,12,9,11,1", "open is no number"),
    (f"{NOON_S},10,,9,11,1", "high is empty"),
    (f"{NOON_S},10,nan,9,11,1", "not a finite number"),
    (f"{NOON_S},10,inf,9,11,1", "not a finite number"),
    (f"{NOON_S},10,9,12,11,1", "high is below another price"),
    (f"{NOON_S},10,12,11,11,1", "low is above another price"),
    (f"{NOON_S},10,12,9,11,-1", "negative volume"),
    (f"{NOON_S + 7},10,12,9,11,1", "opens between two bars of 1m"),
    (f"{NOON_S}999999999999,10,12,9,11,1", "time is beyond all calendars"),
    (f"{NOON_S}999,10,12,9,11,1", "opens in no year"),
    (f"{NOON_S},10,12,9,11", "has 5 columns where there are 6"),
    (f"{NOON_S},1,234,12,9,11,1", "has 7 columns where there are 6"),
    (f'{NOON_S},"10,12,9,11,1', "quotes are not closed"),
    ("time,open,high,low,close,volume", "time is no number"),
]


@pytest.mark.parametrize("row, reason", BAD, ids=[reason for _, reason in BAD])
async def test_a_row_that_is_no_bar_is_kept_with_its_line_and_the_reason(desk, row, reason):
    good = table(every(60, NOON_S + 600, 5))
    done = await desk.take("BTC-USD.csv", f"{good}{row}\n{table(every(60, NOON_S + 1200, 5)).partition(chr(10))[2]}")
    assert (done.rows, done.stored, done.rejected) == (11, 10, 1)
    ((line, why),) = desk.rejected("BTC-USD.csv")
    assert line == "7"
    assert reason in why
    assert row.replace('"', '""') in desk.rejects("BTC-USD.csv").read_text()
    assert len(await desk.stored("BTC/USD")) == 10


async def test_rejects_of_an_earlier_run_are_gone_when_the_file_is_sound(desk):
    await desk.take("BTC-USD.csv", table(MINUTES) + "rubbish\n")
    assert desk.rejects("BTC-USD.csv").exists()
    await desk.take("BTC-USD.csv", table(MINUTES))
    assert not desk.rejects("BTC-USD.csv").exists()


async def test_bars_that_come_again_or_late_are_counted_and_the_last_version_stays(desk):
    text = "time,open,high,low,close,volume\n" + "\n".join(
        f"{NOON_S + 60 * nth},{price},{price},{price},{price},1"
        for nth, price in [(0, 1), (2, 2), (1, 3), (2, 4), (3, 5), (0, 6)]
    )
    done = await desk.take("BTC-USD.csv", text, Wishes(timeframe=MINUTE))
    assert (done.rows, done.stored, done.repeated, done.backwards, done.rejected) == (6, 4, 2, 2, 0)
    assert [bar[4] for bar in await desk.stored("BTC/USD")] == [6, 3, 4, 5]


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.one_of(st.integers(0, 400), st.none()), min_size=1, max_size=60))
async def test_every_row_is_accounted_for(desk, places):
    """None is a row that is no bar; another is a bar at that minute, whose price says which row it was."""
    lines = [
        "rubbish" if place is None else f"{NOON_S + 60 * place},{nth},{nth},{nth},{nth},1"
        for nth, place in enumerate(places)
    ]
    text = "\n".join(["time,open,high,low,close,volume", f"{NOON_S - 60},1,1,1,1,1", *lines])
    done = await desk.take("BTC-USD.csv", text, Wishes(timeframe=MINUTE, replace=True))
    last = {NOON_S + 60 * place: float(nth) for nth, place in enumerate(places) if place is not None}
    assert done.rows == len(places) + 1 == done.stored + done.repeated + done.rejected
    assert done.rejected == places.count(None)
    assert [(bar[0], bar[4]) for bar in await desk.stored("BTC/USD")][1:] == sorted(last.items())


async def test_a_column_of_symbols_parts_the_rows(desk):
    lines = [f"{second},{name},1,1,1,1,1" for second in MINUTES for name in ("btcusd", "ETH-USD", "AAPL", "??")]
    done = await desk.take("all.csv", "time,ticker,open,high,low,close,volume\n" + "\n".join(lines))
    assert (done.stored, done.rejected) == (15, 5)
    assert await desk.candles.symbols(as_of=FAR) == ["AAPL", "BTC/USD", "ETH/USD"]
    assert all(bars == 5 for bars, _, _ in done.spans.values())
    assert "symbol" in desk.rejected("all.csv")[0][1]


@pytest.mark.parametrize(
    "name, symbol",
    [
        ("BTCUSDT-1m-2024-01.csv", "BTC/USDT"), ("aapl.us.txt", "AAPL"), ("EUR_USD_1h.csv", "EUR/USD"),
        ("BTC-USD.csv", "BTC/USD"), ("brk.b_1d.csv", "BRK.B"), ("AAPL_2024-01-01_2024-12-31_daily.csv", "AAPL"),
        ("EURUSD_M15.csv", "EUR/USD"), ("BTC_USD_1m.demo.csv", "BTC/USD"),
    ],
)  # fmt: skip
async def test_the_symbol_is_told_by_the_name_of_the_file(desk, name, symbol):
    await desk.take(name, table(MINUTES))
    assert await desk.candles.symbols(as_of=FAR) == [symbol]
    assert f"symbol: {symbol}" in desk.said


async def test_the_symbol_that_is_said_counts_first(desk):
    await desk.take("prices.csv", table(MINUTES), Wishes(symbol="eth-usd"))
    assert await desk.candles.symbols(as_of=FAR) == ["ETH/USD"]
    for wishes, option in ((Wishes(), "--symbol"), (Wishes(symbol="??"), "--symbol '\\?\\?'")):
        with pytest.raises(FileProblem, match=option):
            await desk.take("prices-2.csv", table(MINUTES), wishes)


async def test_another_length_is_refused_and_may_replace_what_there_is(desk):
    await desk.take("BTC-USD.csv", table(MINUTES))
    hourly = table(every(3600, NOON_S, 5))
    with pytest.raises(QueryFailed, match="is stored in bars of 1m"):
        await desk.take("BTC-USD.csv", hourly)
    assert len(await desk.stored("BTC/USD")) == 5
    await desk.take("BTC-USD.csv", hourly, Wishes(replace=True))
    assert (await desk.candles.series("BTC/USD", as_of=FAR)).base == TIMEFRAMES["1h"]


async def test_an_import_may_be_repeated(desk):
    bars = walk(every(60, NOON_S, 4000))
    text = "time,open,high,low,close,volume\n" + "\n".join(",".join(map(repr, bar)) for bar in rows(bars))
    for _ in range(2):
        await desk.take("BTC-USD.csv", text)
        assert await desk.stored("BTC/USD") == rows(bars)


async def test_a_dry_run_stores_nothing(desk):
    done = await desk.take("BTC-USD.csv", table(MINUTES), Wishes(dry=True))
    assert done.stored == 5
    assert not (desk.folder / "home").exists()


NO_TABLES: list[tuple[bytes, str]] = [
    (b"", "is empty"),
    (b"\n\n", "has no rows"),
    (b"hello\nworld\n", "no table of columns"),
    (b"time,open,high,low,close\n", "no rows"),
    (b"PAR1 and then nothing", "no Parquet file that can be read"),
    (b"\x1f\x8b and then nothing", "damaged or cut off"),
    (bytes(range(256)) * 40, "no column was recognised"),
    (b"\xff\xfe\x00", "no table of columns"),
    (b"time,open,high,low,close\n1,\n", "no row has a time"),
]


@pytest.mark.parametrize("content, why", NO_TABLES)
async def test_what_is_no_table_is_one_sentence(desk, content, why):
    with pytest.raises(FileProblem, match=why):
        await desk.take("BTC-USD.csv", content, Wishes())


async def test_a_file_that_is_not_there_is_one_sentence(desk):
    with pytest.raises(FileProblem, match="No such file"):
        await import_file(
            desk.candles, desk.folder / "none.csv", Wishes(), Rejects(desk.folder / "r"), print, lambda *_: None
        )


PARQUET: dict[str, Callable[[str], str]] = {
    "instants": lambda t: f"to_timestamp({t})",
    "epoch": lambda t: t,
    "milliseconds": lambda t: f"{t} * 1000",
    "text": lambda t: f"strftime(to_timestamp({t}) AT TIME ZONE 'UTC', '%Y-%m-%dT%H:%M:%SZ')",
    "without a zone": lambda t: f"to_timestamp({t}) AT TIME ZONE 'UTC'",
    "nanoseconds": lambda t: f"CAST(to_timestamp({t}) AT TIME ZONE 'UTC' AS TIMESTAMP_NS)",
}


@pytest.mark.parametrize("kind", PARQUET)
async def test_parquet_is_read_whatever_its_times_are(desk, kind):
    path = desk.folder / "BTC_USD.parquet"
    time = PARQUET[kind](f"(60 * i + {NOON_S})")
    with duckdb.connect() as engine:
        engine.execute(
            f"COPY (SELECT {time} AS timestamp, CAST(0.1 AS DOUBLE) + 0.2 AS open, 12 AS high,"
            " CAST(0.25 AS FLOAT) AS low,"
            f" CAST(1.5 AS DECIMAL(9, 3)) AS close, i AS volume FROM range(5) r(i)) TO '{path}' (FORMAT parquet)"
        )
    done = await desk.take(path.name, path.read_bytes())
    assert (done.stored, done.rejected) == (5, 0)
    assert (await desk.stored("BTC/USD"))[3] == (MINUTES[3], 0.30000000000000004, 12, 0.25, 1.5, 3)


async def test_rows_of_parquet_that_are_none_are_rejected_too(desk):
    path = desk.folder / "BTC_USD.parquet"
    with duckdb.connect() as engine:
        engine.execute(
            f"COPY (SELECT 60 * i + {NOON_S} AS time, CASE WHEN i = 2 THEN NULL ELSE 1.0 END AS open, 1 AS high,"
            f" 1 AS low, 1 AS close, 1 AS volume FROM range(5) r(i)) TO '{path}' (FORMAT parquet)"
        )
    done = await desk.take(path.name, path.read_bytes())
    assert (done.stored, done.rejected) == (4, 1)
    assert desk.rejected(path.name) == [["3", "open is empty"]]
