"""`quantdeck collect alpaca` as a process: how it begins, is asked, is stopped and is killed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from quantdeck.app import ADAPTERS
from quantdeck.domain.timeframes import MINUTE
from tests.support.alpaca_stub import KEY, SECRET, AlpacaStub, alpaca
from tests.support.bars import FAR, every, rows, walk
from tests.support.candle_stores import EmbeddedPlace
from tests.support.pages import FOLDER, blocks
from tests.support.program import PROGRAM, quantdeck

JSON = {"content-type": "application/json"}


@pytest.fixture
def stub() -> Iterator[AlpacaStub]:
    with alpaca() as made:
        yield made


def told(stub: AlpacaStub) -> dict[str, str]:
    return {**stub.environment(), "QUANTDECK_CANDLES": "embedded"}


def recent(many: int, *, ago: int = 0) -> Any:
    return walk(every(60, MINUTE.floor(time.time()) - 60 * (many + ago), many))


async def stored(home: Path, symbol: str) -> list[tuple[Any, ...]]:
    async with EmbeddedPlace(home).open() as candles:
        return rows(await candles.newest(symbol, MINUTE, 10**6, as_of=FAR))


class Running:
    def __init__(self, process: subprocess.Popen[str], log: Path) -> None:
        self.process = process
        self.log = log
        assert process.stdout is not None
        self.said = process.stdout.readline()

    def heard(self, start: str) -> str:
        """The next line, which begins so."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith(start), (line, self.log.read_text())
        return line.removeprefix(start).strip()

    def end(self, number: int) -> tuple[int, str]:
        self.process.send_signal(number)
        out, _ = self.process.communicate(timeout=30)
        return self.process.returncode, out


@contextmanager
def running(stub: AlpacaStub, home: Path, *arguments: str, **environment: str) -> Iterator[Running]:
    inherited = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    env = {**inherited, **told(stub), "QUANTDECK_HOME": str(home), **environment}
    log = home / "log.txt"
    home.mkdir(exist_ok=True)
    with log.open("w") as stderr:
        process = subprocess.Popen(
            [*PROGRAM, "collect", "alpaca", *arguments], env=env, text=True, stdout=subprocess.PIPE, stderr=stderr
        )
        try:
            yield Running(process, log)
        finally:
            process.kill()
            process.communicate()


def wait_for(holds: Any) -> None:
    while not holds():
        time.sleep(0.01)


def listened(stub: AlpacaStub, *symbols: str) -> Any:
    return lambda: stub.do(lambda: stub.stream.subscribed() >= set(symbols))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_what_is_in_memory_is_stored_when_it_is_asked_to_end(stub, tmp_path, number):
    past, live = recent(100, ago=5), recent(5)
    stub.reveal("AAPL", past)
    with running(stub, tmp_path, "--symbols", "AAPL,btc", "--days", "1") as collector:
        assert collector.said == "collecting 1 stocks (iex) and 1 coins of Alpaca into sqlite; Ctrl-C ends it\n"
        wait_for(listened(stub, "AAPL", "BTC/USD"))
        wait_for((tmp_path / "market.db").exists)
        while await stored(tmp_path, "AAPL") != rows(past):
            pass
        stub.reveal("AAPL", live, asked=False)
        stub.reveal("BTC/USD", live, asked=False)
        wait_for(lambda: stub.do(lambda: not stub.stream._sending))
        code, said = collector.end(number)
    assert (code, said) == (0, "110 bars were stored in sqlite\n")
    assert await stored(tmp_path, "AAPL") == [*rows(past), *rows(live)]
    assert await stored(tmp_path, "BTC/USD") == rows(live)


async def test_a_killed_collector_loses_what_was_not_written_and_gets_it_when_it_is_back(stub, tmp_path):
    bars = recent(60)
    stub.reveal("AAPL", bars[:40])
    with running(stub, tmp_path, "--symbols", "AAPL", "--days", "1", QUANTDECK_ALPACA__FLUSH_S="0.2") as collector:
        wait_for(listened(stub, "AAPL"))
        stub.reveal("AAPL", bars[40:50])
        wait_for((tmp_path / "market.db").exists)
        while (await stored(tmp_path, "AAPL"))[-1:] != rows(bars)[49:50]:
            pass
        assert collector.end(signal.SIGKILL)[0] == -signal.SIGKILL
    with running(stub, tmp_path, "--symbols", "AAPL", "--days", "1", QUANTDECK_ALPACA__FLUSH_S="3600") as collector:
        wait_for(listened(stub, "AAPL"))
        stub.reveal("AAPL", bars[50:])
        assert collector.end(signal.SIGKILL)[0] == -signal.SIGKILL
    assert (await stored(tmp_path, "AAPL"))[:50] == rows(bars)[:50]
    once = quantdeck("collect", "alpaca", "--symbols", "AAPL", "--once", home=tmp_path, environment=told(stub))
    assert once.returncode == 0, once.stderr
    assert await stored(tmp_path, "AAPL") == rows(bars)


async def test_one_killed_before_the_past_was_there_fetches_it_all_the_same_later(stub, tmp_path):
    bars = recent(60)
    stub.reveal("AAPL", bars[:50])
    stub.do(lambda: stub.market.failing.extend([(503, b"{}")] * 100))
    with running(stub, tmp_path, "--symbols", "AAPL", "--days", "1", QUANTDECK_ALPACA__FLUSH_S="0.1") as collector:
        wait_for(listened(stub, "AAPL"))
        stub.reveal("AAPL", bars[50:])
        wait_for((tmp_path / "market.db").exists)
        while await stored(tmp_path, "AAPL") != rows(bars)[50:]:
            pass
        collector.end(signal.SIGKILL)
    stub.do(stub.market.failing.clear)
    once = quantdeck("collect", "alpaca", "--symbols", "AAPL", "--once", home=tmp_path, environment=told(stub))
    assert once.returncode == 0, once.stderr
    assert await stored(tmp_path, "AAPL") == rows(bars)


async def test_its_http_is_that_of_the_spec(stub, tmp_path):
    minute_s = MINUTE.floor(time.time()) - 600
    with running(stub, tmp_path, "--symbols", "AAPL", "--http", "--port", "0") as collector:
        url = collector.heard("listening on ")
        wait_for(listened(stub, "AAPL"))
        async with httpx2.AsyncClient(base_url=url, trust_env=False) as http:
            told = (await http.post("/subscribe", json=["MSFT", "btc", "EUR/USD", "no such"])).json()
            assert (told["stocks"], told["crypto"], len(told["errors"])) == (["MSFT"], ["BTC/USD"], 2)
            wait_for(listened(stub, "AAPL", "MSFT", "BTC/USD"))
            told = (await http.post("/subscribe?asset_type=crypto", json={"symbols": ["LTC"]})).json()
            assert told == {"stocks": [], "crypto": ["LTC/USD"], "errors": []}
            told = (await http.post("/subscribe", json={"symbols": ["BTC/USD"], "asset_type": "stocks"})).json()
            assert told == {"stocks": [], "crypto": [], "errors": ["BTC/USD is none of stocks"]}
            bar = {"t": minute_s, "o": 1, "h": 3, "l": 0.5, "c": 2, "v": 10}
            hooked = await http.post("/hook", json={"symbol": "tsla", "tf": "1min", "bar": bar})
            assert (hooked.status_code, hooked.json()) == (200, {"ok": True})
            status = (await http.get("/status")).json()
        assert status["alpaca_configured"] is True
        assert status["streams"] == {"stocks_active": True, "crypto_active": True}
        assert status["subscribed"] == {"stocks": ["AAPL", "MSFT"], "crypto": ["BTC/USD", "LTC/USD"]}
        assert (status["bar_counts"], status["storage_path"]) == ({"TSLA": 1}, str(tmp_path))
        assert collector.end(signal.SIGTERM)[0] == 0
    assert await stored(tmp_path, "TSLA") == [(minute_s, 1, 3, 0.5, 2, 10)]


REFUSED: list[tuple[str, Any, dict[str, str], int]] = [
    ("/hook", {"symbol": "TSLA"}, {}, 422),
    ("/hook", {"symbol": "TSLA", "tf": "5min", "bar": {"t": 60, "o": 1, "h": 1, "l": 1, "c": 1, "v": 1}}, {}, 422),
    ("/hook", {"symbol": "TSLA", "bar": {"t": 61, "o": 1, "h": 1, "l": 1, "c": 1, "v": 1}}, {}, 422),
    ("/hook", {"symbol": "TSLA", "bar": {"t": 60, "o": 1, "h": 1, "l": 2, "c": 1, "v": 1}}, {}, 422),
    ("/hook", {"symbol": "../x", "bar": {"t": 60, "o": 1, "h": 1, "l": 1, "c": 1, "v": 1}}, {}, 422),
    ("/hook", {"symbol": "TSLA", "bar": {"t": 99999999960, "o": 1, "h": 1, "l": 1, "c": 1, "v": 1}}, {}, 422),
    ("/subscribe", {"symbols": "AAPL"}, {}, 422),
    ("/subscribe", 5, {}, 422),
    ("/subscribe?asset_type=bonds", ["AAPL"], {}, 422),
    ("/subscribe", ["AAPL"], {"content-type": "text/plain"}, 415),
    ("/subscribe", ["AAPL"], {"origin": "https://evil.example"}, 403),
    ("/subscribe", ["AAPL"], {"host": "evil.example"}, 421),
    ("/status", {}, {}, 405),
]


async def test_without_keys_it_takes_webhooks_and_refuses_what_is_none(stub, tmp_path):
    with running(stub, tmp_path, "--http", "--port", "0", ALPACA_API_KEY="") as collector:
        assert "set ALPACA_API_KEY and ALPACA_SECRET_KEY" in collector.said
        url = collector.heard("listening on ")
        async with httpx2.AsyncClient(base_url=url, trust_env=False) as http:
            for path, body, headers, status in REFUSED:
                told = await http.request("POST", path, json=body, headers={**JSON, **headers})
                assert told.status_code == status, (path, body, told.text)
            errors = (await http.post("/subscribe", json=["AAPL"])).json()["errors"]
            assert "ALPACA_SECRET_KEY" in errors[0]
            assert (await http.get("/status")).json()["alpaca_configured"] is False
        assert collector.end(signal.SIGTERM)[0] == 0
    assert stub.stream.connects == 0


def test_there_is_one_collector_in_a_home(stub, tmp_path):
    with running(stub, tmp_path, "--symbols", "AAPL") as collector:
        wait_for(listened(stub, "AAPL"))
        second = quantdeck("collect", "alpaca", home=tmp_path, environment=told(stub))
        assert (second.returncode, "Traceback" in second.stderr) == (2, False)
        assert f"process {collector.process.pid} collects" in second.stderr
        assert collector.end(signal.SIGTERM)[0] == 0
    assert stub.stream.most_connected == 1


def test_no_key_is_in_its_log(stub, tmp_path):
    with running(stub, tmp_path, "--symbols", "AAPL", QUANTDECK_LOG_LEVEL="debug") as collector:
        wait_for(listened(stub, "AAPL"))
        stub.do(stub.stream.drop)
        wait_for(lambda: stub.stream.accepted == 2)
        collector.end(signal.SIGTERM)
        log = collector.log.read_text()
    assert "alpaca_stream_lost" in log
    assert (SECRET in log, KEY in log) == (False, False)


def test_what_cannot_be_is_said_in_a_sentence(stub, tmp_path):
    (tmp_path / "empty.txt").write_text("# nothing\n")
    demo = tmp_path / "demo"
    demo.mkdir()
    (demo / "demo.json").write_text('{"seed": 7, "days": 1}')
    cases: list[tuple[list[str], dict[str, str], str]] = [
        ([], {"ALPACA_SECRET_KEY": ""}, "set ALPACA_API_KEY and ALPACA_SECRET_KEY"),
        ([], {"ALPACA_SECRET_KEY": "wrong"}, "refused the key"),
        (["--once"], {"ALPACA_SECRET_KEY": "wrong"}, "refused the key"),
        ([], {"QUANTDECK_ALPACA__FEED": "sip"}, "plan does not cover"),
        (["--once"], {"QUANTDECK_ALPACA__FEED": "sip"}, "does not cover the last 15 minutes"),
        ([], {"QUANTDECK_CLOCK": "2026-01-01T00:00:00Z"}, "QUANTDECK_CLOCK stands still"),
        ([], {"QUANTDECK_CANDLES": "alpaca:"}, "names Alpaca itself"),
        ([], {"QUANTDECK_CANDLES": "influxdb://127.0.0.1:1/b"}, "down or out of reach"),
        (["--symbols", "AAPL,EUR/USD"], {}, "neither a stock nor a coin"),
        ([], {"QUANTDECK_WATCHLIST": str(tmp_path / "empty.txt")}, "the watchlist is empty"),
        ([], {"QUANTDECK_WATCHLIST": str(tmp_path / "none.txt")}, "cannot be read"),
        (["--once", "--http"], {}, "--once ends at once"),
        ([], {"QUANTDECK_HOME": str(demo)}, "is a demo world"),
    ]
    for arguments, said, expected in cases:
        done = quantdeck("collect", "alpaca", *arguments, home=tmp_path / "home", environment={**told(stub), **said})
        assert (done.returncode, expected in done.stderr, "Traceback" in done.stderr) == (2, True, False), done.stderr


def test_where_nothing_is_said_it_writes_the_specs_files_if_there_are_such(stub, tmp_path):
    stub.reveal("AAPL", recent(30))
    once = quantdeck("collect", "alpaca", "--symbols", "AAPL", "--once", home=tmp_path, environment=stub.environment())
    where = "parquet" if "parquet" in ADAPTERS["candles"][1] else "sqlite"
    assert once.stdout.splitlines()[-1] == f"30 bars were stored in {where}", once.stderr
    again = quantdeck("collect", "alpaca", "--symbols", "AAPL", "--once", home=tmp_path, environment=stub.environment())
    assert again.returncode == 0, again.stderr


async def test_the_page_about_it_is_right(stub, tmp_path):
    """docs/how-to/collect-bars.md: its watchlist, its commands, its webhook."""
    page, bars = {block.text for block in blocks("collect-bars")}, recent(30)
    (watchlist,) = [text for text in page if text.startswith("# my watchlist")]
    (tmp_path / "watchlist.txt").write_text(watchlist)
    symbols = ("SPY", "BRK.B", "BTC/USD", "SOL/USD")
    for symbol in symbols:
        stub.reveal(symbol, bars)
    (commands,) = [text.splitlines() for text in page if "collect alpaca" in text]
    assert commands[-1] == "quantdeck collect alpaca"
    with running(stub, tmp_path, "--http", "--port", "0") as collector:
        assert "2 stocks (iex) and 2 coins" in collector.said
        url = collector.heard("listening on ")
        (hook,) = re.findall(r'`(\{"symbol".*?\}\})`', (FOLDER / "collect-bars.md").read_text())
        assert httpx2.post(f"{url}/hook", content=hook, headers=JSON, trust_env=False).json() == {"ok": True}
        assert collector.end(signal.SIGTERM)[0] == 0
    assert len(await stored(tmp_path, "TSLA")) == 1
    once = quantdeck("collect", "alpaca", "--once", home=tmp_path, environment=told(stub))
    assert once.returncode == 0, once.stderr
    for symbol in symbols:
        assert await stored(tmp_path, symbol) == rows(bars)


def test_without_the_extra_it_says_how_to_have_it_and_can_still_fetch_the_past(stub, tmp_path):
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "sitecustomize.py").write_text(
        "from importlib.machinery import PathFinder\n"
        "found = PathFinder.find_spec\n"
        "hidden = {'alpaca', 'pandas', 'websockets', 'msgpack'}\n"
        "def find_spec(name, path=None, target=None):\n"
        "    return None if name.partition('.')[0] in hidden else found(name, path, target)\n"
        "PathFinder.find_spec = find_spec\n"
    )
    bars = recent(30)
    stub.reveal("AAPL", bars)
    environment = {**told(stub), "PYTHONPATH": str(hidden)}
    without = quantdeck("collect", "alpaca", home=tmp_path, environment=environment)
    assert (without.returncode, "pip install 'quantdeck[alpaca]'" in without.stderr) == (2, True), without.stderr
    once = quantdeck("collect", "alpaca", "--once", "--symbols", "AAPL", home=tmp_path, environment=environment)
    assert (once.returncode, once.stdout.splitlines()[-1]) == (0, "30 bars were stored in sqlite"), once.stderr


def test_a_server_loads_neither_the_client_nor_pandas(stub, tmp_path):
    """Though it asks Alpaca itself."""
    stub.reveal("AAPL", recent(30))
    program = (
        "import sys, quantdeck.cli as cli\n"
        "status = cli.main(['call', 'get_current_price', '{\"symbol\": \"AAPL\"}'])\n"
        "loaded = {name.partition('.')[0] for name in sys.modules}\n"
        "assert not loaded & {'alpaca', 'pandas', 'polars', 'websockets', 'msgpack'}, loaded\n"
        "sys.exit(status)\n"
    )
    env = {**os.environ, **told(stub), "QUANTDECK_HOME": str(tmp_path), "QUANTDECK_CANDLES": "alpaca:"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=env, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert '"source":"alpaca"' in done.stdout
