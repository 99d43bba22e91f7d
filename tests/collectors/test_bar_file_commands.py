"""`quantdeck import candles` and `quantdeck export candles`, as a person runs them."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from quantdeck.collectors.bar_files.progress import Progress
from quantdeck.connections.databases import Databases
from quantdeck.domain.candles import Bars
from quantdeck.domain.timeframes import MINUTE, TIMEFRAMES
from quantdeck.settings import Settings
from quantdeck.sources.candles.embedded import connect
from tests.support.bars import FAR, at, every, rows, walk
from tests.support.program import PROGRAM, quantdeck

NOON_S = at("2026-01-15T12:00")
HEADER = "time,open,high,low,close,volume\n"


def table(bars: Bars) -> str:
    return HEADER + "".join(",".join(map(repr, bar)) + "\n" for bar in rows(bars))


async def stored(home: Path, symbol: str, timeframe=MINUTE) -> Bars:
    settings = Settings(home=home)
    databases = Databases(settings)
    try:
        return await connect("", settings, databases).newest(symbol, timeframe, 10**6, as_of=FAR)
    finally:
        await databases.close()


@pytest.mark.parametrize("form", ["csv", "parquet"])
async def test_what_is_exported_comes_back_to_the_last_digit(tmp_path, form):
    bars = walk([*every(60, at("2025-12-31T23:00"), 100), *every(60, NOON_S, 2000)])
    (tmp_path / "BTC-USD.csv").write_text(table(bars))
    assert quantdeck("import", "candles", str(tmp_path / "BTC-USD.csv"), home=tmp_path / "one").returncode == 0
    out = tmp_path / "out"
    told = quantdeck("export", "candles", f"--{form}", "--out", str(out), home=tmp_path / "one")
    assert told.stdout == f"{out}/BTC_USD_1m.{form}: 2,100 bars of 1m\n"
    assert [file.name for file in out.iterdir()] == [f"BTC_USD_1m.{form}"]
    again = quantdeck("import", "candles", str(out / f"BTC_USD_1m.{form}"), home=tmp_path / "two")
    assert again.returncode == 0, again.stderr
    assert (
        rows(await stored(tmp_path / "two", "BTC/USD")) == rows(bars) == rows(await stored(tmp_path / "one", "BTC/USD"))
    )


async def test_an_export_has_the_range_and_the_length_that_were_said_and_nothing_later_than_the_clock(tmp_path):
    (tmp_path / "BTC-USD.csv").write_text(table(walk(every(60, NOON_S, 300))))
    quantdeck("import", "candles", str(tmp_path / "BTC-USD.csv"), home=tmp_path)
    clock = {"QUANTDECK_CLOCK": "2026-01-15T14:30:00Z"}
    asked = ("export", "candles", "btcusd", "--timeframe", "1h", "--out", str(tmp_path))
    told = quantdeck(*asked, "--start", "2026-01-15T12:30:00Z", home=tmp_path, environment=clock)
    assert told.returncode == 0, told.stderr
    lines = (tmp_path / "BTC_USD_1h.csv").read_text().splitlines()
    assert [line.partition(",")[0] for line in lines] == ["time", "2026-01-15T13:00:00Z"]


async def test_one_bad_file_does_not_keep_the_others_out(tmp_path):
    (tmp_path / "BTC-USD.csv").write_text(table(walk(every(60, NOON_S, 5))) + "rubbish\n")
    (tmp_path / "bad.csv").write_text("nothing\n")
    files = [str(tmp_path / name) for name in ("bad.csv", "BTC-USD.csv", "gone.csv")]
    told = quantdeck("import", "candles", *files, home=tmp_path / "home")
    assert told.returncode == 1
    assert [line.split(" ", 2)[1] for line in told.stderr.splitlines()] == [files[0], files[2]]
    for words in (
        "columns: time = time",
        "bars of 1m",
        "symbol: BTC/USD",
        "6 rows: 5 bars stored",
        "1 rows are rejected",
    ):
        assert words in told.stdout
    assert len(await stored(tmp_path / "home", "BTC/USD")) == 5


def test_options_that_cannot_be_are_one_sentence(tmp_path):
    for said in (["--map", "price=x"], ["--map", "open"], ["--tz", "Mars/Olympus"], ["--tz", "../../etc/passwd"]):
        told = quantdeck("import", "candles", "x.csv", *said, home=tmp_path)
        assert told.returncode == 2
        assert said[0] in told.stderr
        assert "Traceback" not in told.stderr


async def test_a_demo_world_takes_bars_only_when_told_to(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    (home / "demo.json").write_text('{"seed": 7}')
    (tmp_path / "BTC-USD.csv").write_text(table(walk(every(60, NOON_S, 5))))
    refused = quantdeck("import", "candles", str(tmp_path / "BTC-USD.csv"), home=home)
    assert refused.returncode == 2
    assert "--into-demo" in refused.stderr
    assert not (home / "market.db").exists()
    taken = quantdeck("import", "candles", str(tmp_path / "BTC-USD.csv"), "--into-demo", home=home)
    assert taken.returncode == 0, taken.stderr
    served = {"QUANTDECK_CANDLES": "embedded"}
    told = quantdeck("export", "candles", "--out", str(tmp_path / "out"), home=home, environment=served)
    assert (tmp_path / "out" / "BTC_USD_1m.demo.csv").exists(), told.stderr


def test_a_home_without_bars_says_how_to_get_some(tmp_path):
    told = quantdeck("export", "candles", home=tmp_path)
    assert told.returncode == 2
    for way in ("QUANTDECK_CANDLES", "quantdeck import candles", "quantdeck demo"):
        assert way in told.stderr


async def test_an_import_that_is_killed_is_repeated_and_nothing_is_missing(tmp_path):
    many = 300_000
    home, file = tmp_path / "home", tmp_path / "BTC-USD.csv"
    file.write_text(HEADER + "".join(f"{NOON_S + 60 * n},1,1,1,1,{n}\n" for n in range(many)))
    environment = {**os.environ, "QUANTDECK_HOME": str(home)}
    _killed_after_it_began([*PROGRAM, "import", "candles", str(file)], environment, home / "market.db-wal")
    again = quantdeck("import", "candles", str(file), home=home)
    assert "300,000 bars stored" in again.stdout
    assert (await stored(home, "BTC/USD", TIMEFRAMES["1d"])).volume.sum() == sum(range(many))


def _killed_after_it_began(program: list[str], environment: dict[str, str], sign: Path) -> None:
    with subprocess.Popen(program, env=environment, stdout=subprocess.PIPE) as running:
        until = time.monotonic() + 50
        while not sign.exists() and running.poll() is None and time.monotonic() < until:
            pass
        running.kill()


WITHOUT_DUCKDB = (
    "import sys; sys.modules['duckdb'] = None; from quantdeck.cli import main; sys.exit(main(sys.argv[1:]))"
)


def test_parquet_without_its_driver_says_what_to_install_and_csv_needs_none(tmp_path):
    (tmp_path / "BTC-USD.csv").write_text(table(walk(every(60, NOON_S, 5))))
    (tmp_path / "x.parquet").write_bytes(b"PAR1")
    environment = {**os.environ, "QUANTDECK_HOME": str(tmp_path / "home")}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        program = [sys.executable, "-c", WITHOUT_DUCKDB, *arguments]
        return subprocess.run(program, env=environment, capture_output=True, text=True, check=False)

    assert run("import", "candles", str(tmp_path / "BTC-USD.csv")).returncode == 0
    for asked in (["import", "candles", str(tmp_path / "x.parquet")], ["export", "candles", "--parquet"]):
        told = run(*asked)
        assert told.returncode != 0
        assert "pip install 'quantdeck[parquet]'" in told.stderr
        assert "Traceback" not in told.stderr


class Terminal(io.StringIO):
    """A stream that says what it is."""

    def __init__(self, *, terminal: bool) -> None:
        super().__init__()
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_is_a_bar_on_a_terminal_and_lines_elsewhere(terminal):
    stream, clock = Terminal(terminal=terminal), iter(range(0, 100, 6))
    with Progress(stream, "x.csv", lambda: float(next(clock))) as progress:
        progress(0.5, 1000)
    if terminal:
        assert "[###############...............]  50% 1,000 rows, 6 s left" in stream.getvalue()
        assert stream.getvalue().endswith("\r\x1b[K")
    else:
        assert stream.getvalue() == "x.csv: 50%, 1,000 rows, 6 s left\n"
