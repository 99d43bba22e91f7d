"""`quantdeck sweep`, as a person runs it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest

from quantdeck.backtesting.engine import run
from quantdeck.domain.candles import Bars
from quantdeck.domain.spec_reader import read
from tests.support.bars import at, every, rows, walk
from tests.support.program import PROGRAM, quantdeck
from tests.support.specs import spec

NOON = "2026-06-01T12:00:00Z"
CLOCK = {"QUANTDECK_CLOCK": NOON}
GRID = ("--grid", "movingAveragePeriod=10:50:20", "rsiPeriod=7,14")
LONG = (
    "--timeframe",
    "1m",
    "--days",
    "7",
    "--grid",
    "movingAveragePeriod=10:50",
    "rsiPeriod=7:20",
    "--no-walk-forward",
)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A demo home, at noon, in which nothing is done: to make one takes seconds, to copy it none."""
    home = tmp_path_factory.mktemp("demo")
    assert quantdeck("demo", "--quiet", "--days", "1", home=home, environment=CLOCK).returncode == 0
    return home


@pytest.fixture(scope="module")
def world(demo: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home that tests share which leave it as they found it, or say what is new there."""
    return copied(demo, tmp_path_factory.mktemp("world"))


@pytest.fixture
def home(demo: Path, tmp_path: Path) -> Path:
    """One of its own."""
    return copied(demo, tmp_path)


def copied(demo: Path, folder: Path) -> Path:
    return Path(shutil.copytree(demo, folder / "home"))


def sweep(home: Path, *arguments: str, spec: str = "SMA_RSI", symbol: str = "BTC/USD", **said: Any):
    environment = {**CLOCK, **said.pop("environment", {})}
    return quantdeck("sweep", spec, "--symbol", symbol, *arguments, home=home, environment=environment, **said)


def told(home: Path, *arguments: str, **said: Any) -> dict[str, Any]:
    done = sweep(home, *arguments, "--json", **said)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def listed(home: Path) -> tuple[list[dict[str, Any]], int]:
    """The candidates of SMA_RSI, as an agent is told them."""

    def call(tool: str, arguments: dict[str, Any]) -> Any:
        done = quantdeck("call", tool, json.dumps(arguments), home=home, environment=CLOCK)
        return json.loads(done.stdout)["data"]

    specs = call("get_top_specs", {"limit": 50})["items"]
    spec_id = next(one["spec_id"] for one in specs if one["name"] == "SMA_RSI")
    items: list[dict[str, Any]] = []
    while True:
        page = call(
            "get_implementations", {"spec_id": spec_id, "status": "CANDIDATE", "offset": len(items), "limit": 100}
        )
        items += page["items"]
        if not page["pagination"]["has_more"]:
            return items, page["pagination"]["total"]


def test_the_best_are_shown_and_stored_once_and_agents_are_told_of_them(home):
    before = listed(home)[1]
    done = sweep(home, *GRID)
    assert (done.returncode, done.stderr) == (0, "")
    assert (
        "SMA_RSI on BTC/USD, 17,520 bars of 1h from 2024-06-01T12:00:00Z to 2026-06-01T12:00:00Z (demo)" in done.stdout
    )
    assert "6 points, 0 of them failed; the best by sharpe, then score, then trades" in done.stdout
    assert "walk-forward of the first: " in done.stdout
    assert "stored as implementations: 6 new, 0 updated, 0 unchanged" in done.stdout
    items, total = listed(home)
    assert total == before + 6
    again = told(home, *GRID)
    assert again["stored"] == {"new": 0, "updated": 0, "unchanged": 6}
    assert {one["impl_id"] for one in again["best"]} <= {one["impl_id"] for one in items}
    stored = {one["impl_id"]: one["parameters"] for one in items}
    assert all(stored[one["impl_id"]] == one["parameters"] for one in again["best"])
    assert listed(home)[1] == total
    assert not any((home / "sweeps").iterdir())


def test_json_has_every_figure_and_the_verdict(world):
    found = told(
        world, *GRID, "--objective", "return,drawdown", "--top", "2", "--store", "0", "--windows", "900,300,300,2"
    )
    assert [found[name] for name in ("spec", "symbol", "timeframe", "points", "failed", "stored", "source")] == [
        "SMA_RSI", "BTC/USD", "1h", 6, 0, None, "demo",
    ]  # fmt: skip
    assert found["objectives"] == ["return", "drawdown", "score", "trades"]
    assert [one["rank"] for one in found["best"]] == [1, 2]
    assert found["best"][0]["total_return"] >= found["best"][1]["total_return"]
    assert found["walk_forward"]["status"] in {"APPROVED", "REJECTED"}
    assert found["walk_forward"]["windows"] == 55
    assert "walk_forward" in told(world, *GRID, "--no-walk-forward", "--store", "0")


def test_what_is_drawn_is_the_same_for_its_seed(world):
    first, again, other = (
        told(world, "--random", "5", "--seed", seed, "--store", "0", "--days", "200") for seed in ("3", "3", "4")
    )
    assert first == again
    assert first["points"] == 5
    assert first["best"] != other["best"]


def test_a_spec_of_a_file_is_stored_where_its_name_is_free(world, tmp_path):
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(spec(name="my_own")))
    (tmp_path / "other.json").write_text(json.dumps(spec(name="SMA_RSI")))
    short = ("--days", "30", "--no-walk-forward")
    assert told(world, "--grid", "period=10,20", *short, spec=str(path))["stored"]["new"] == 2
    assert told(world, "--grid", "period=10,20", *short, spec=str(path))["stored"]["unchanged"] == 2
    assert told(world, "--grid", "period=10,20", *short, spec="my_own")["stored"]["unchanged"] == 2
    taken = sweep(world, "--grid", "period=10", *short, spec=str(tmp_path / "other.json"))
    assert (taken.returncode, "another spec is stored as SMA_RSI" in taken.stderr) == (2, True)
    assert told(world, "--grid", "period=10", *short, "--store", "0", spec=str(tmp_path / "other.json"))["points"] == 1


def test_the_best_can_be_told_trade_by_trade_in_an_event_log(world, tmp_path):
    log = tmp_path / "events.db"
    found = told(
        world, "--grid", "fast=5,10", "--days", "60", "--store", "0", "--events", str(log), spec="MACD_CROSSOVER"
    )
    environment = {**CLOCK, "QUANTDECK_EVENTS": f"sqlite:///{log}"}
    done = quantdeck("call", "list_backtest_runs", home=tmp_path / "real", environment=environment)
    assert found["run_id"] in done.stdout


@pytest.mark.parametrize("name", ["letter.txt", "folder", "letter.txt/events.db"])
def test_a_log_that_cannot_be_written_is_said_before_anything_is_computed(home, tmp_path, name):
    (tmp_path / "letter.txt").write_text("no log at all" * 500)
    (tmp_path / "folder").mkdir()
    before = listed(home)[1]
    done = sweep(home, "--grid", "rsiPeriod=7", "--days", "60", "--events", str(tmp_path / name))
    assert (done.returncode, done.stdout, listed(home)[1]) == (2, "", before)
    assert done.stderr.startswith("quantdeck: --events: ")
    assert name in done.stderr


def test_points_that_cannot_be_computed_are_counted_and_named(world):
    done = sweep(world, "--grid", "fast=5,40", "slow=30", "--days", "60", "--store", "0", spec="MACD_CROSSOVER")
    assert done.returncode == 0
    assert "2 points, 1 of them failed" in done.stdout
    assert "failed: fast=40, slow=30, signalPeriod=9: shortPeriod of 'macd' is 40, above longPeriod 30" in done.stdout
    none = sweep(world, "--grid", "rsiPeriod=0", "--days", "60")
    assert (none.returncode, "1 points, 1 of them failed" in none.stdout, "stored" in none.stdout) == (1, True, False)


def test_where_nothing_trades_that_is_said_and_nothing_is_made_up(world):
    found = told(world, "--grid", "oversoldThreshold=0.001", "--days", "30", "--store", "0")
    (best,) = found["best"]
    assert (best["trades"], best["sharpe_ratio"], best["profit_factor"], best["win_rate"]) == (0, None, None, None)
    assert found["walk_forward"]["status"] == "INSUFFICIENT_DATA"
    done = sweep(world, "--grid", "oversoldThreshold=0.001", "--days", "30", "--store", "0", "--objective", "drawdown")
    assert "None of them closed a trade." in done.stdout


def imported(home: Path, folder: Path, bars: Bars) -> None:
    path = folder / "BTCUSD-1m.csv"
    lines = (",".join(map(str, row)) for row in rows(bars))
    path.write_text("\n".join(("time,open,high,low,close,volume", *lines)) + "\n")
    assert quantdeck("import", "candles", str(path), home=home).returncode == 0


def test_no_sweep_reads_past_the_clock(tmp_path):
    """The same at an instant whether or not there are bars that close after it, to the last digit of the best."""
    bars = walk(every(60, at("2026-05-31T00:00"), 3000))
    seen = bars[: int(bars.time.searchsorted(at("2026-06-01T12:00")))]
    (tmp_path / "mine.json").write_text(json.dumps(spec(name="MINE")))
    found = []
    for name, there in (("all", bars), ("seen", seen)):
        home = tmp_path / name
        imported(home, tmp_path, there)
        said = ("--timeframe", "1m", "--grid", "period=10:14", "oversold=40,45", "--windows", "300,100,100,2")
        found.append(told(home, *said, spec=str(tmp_path / "mine.json")))
    assert found[0]["best"] == [
        {**one, "impl_id": found[0]["best"][place]["impl_id"]} for place, one in enumerate(found[1]["best"])
    ]
    assert found[0]["walk_forward"] == found[1]["walk_forward"]
    assert (found[0]["end"], found[0]["bars"]) == (NOON, len(seen))
    best = found[0]["best"][0]
    strategy = read(**spec()).spec
    assert strategy is not None
    assert best["total_return"] == run(strategy.instantiate(best["parameters"]), seen).metrics.total_return
    late = sweep(
        tmp_path / "all", "--grid", "period=10", "--end", "2026-06-01T12:01:00Z", spec=str(tmp_path / "mine.json")
    )
    assert (late.returncode, "--end is after the world's clock" in late.stderr) == (2, True)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs an output that cannot be written")
def test_a_sweep_whose_bars_have_changed_since_it_was_broken_off_begins_anew(tmp_path):
    home, opens = tmp_path / "home", every(60, at("2026-05-31T00:00"), 2000)
    (tmp_path / "mine.json").write_text(json.dumps(spec(name="MINE")))
    mine = str(tmp_path / "mine.json")
    said = ("--timeframe", "1m", "--grid", "period=10:14", "--no-walk-forward", "--store", "0", "--json")
    imported(home, tmp_path, walk(opens))
    environment = {**os.environ, **CLOCK, "QUANTDECK_HOME": str(home)}
    with open("/dev/full", "wb") as full:  # noqa: PTH123 - so that all is done and nothing is told
        program = [*PROGRAM, "sweep", mine, "--symbol", "BTC/USD", *said]
        assert subprocess.run(program, env=environment, stdout=full, stderr=subprocess.DEVNULL, check=False).returncode
    bars = walk(opens)
    bars.close[1500] = bars.high[1500]
    imported(home, tmp_path, bars)
    done = sweep(home, *said, spec=mine)
    assert (done.returncode, "have changed, so it begins anew" in done.stderr) == (0, True), done.stderr
    assert done.stdout == sweep(home, *said, "--fresh", spec=mine).stdout


HOSTILE = {
    "nothing.json": b"",
    "broken.json": b'{"name": "A_B_C", ',
    "list.json": b"[]",
    "number.json": b"1",
    "deep.json": b"[" * 100_000,
    "empty.json": b"{}",
    "unrunnable.json": json.dumps(spec(indicators=[{"id": "x", "type": "EVAL"}])).encode(),
    "large.json": b" " * (2**20 + 1) + b"{}",
    "odd.json": json.dumps({**spec(), "name": {"a": []}, "parameters": "all"}).encode(),
    "binary.json": bytes(range(256)),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_file_that_is_no_spec_is_refused_in_a_sentence(world, tmp_path, name):
    path = tmp_path / name
    path.write_bytes(HOSTILE[name])
    done = sweep(world, "--grid", "period=10", spec=str(path))
    assert (done.returncode, done.stdout, "Traceback" in done.stderr) == (2, "", False)
    assert done.stderr.startswith("quantdeck: ")
    assert len(done.stderr) < 3000


@pytest.mark.parametrize(
    "arguments, said",
    [
        ([], "say which points"),
        (["--grid", "length=1"], "no parameter 'length'"),
        (["--grid", "rsiPeriod=7", "--objective", "fame"], "no objective 'fame'"),
        (["--grid", "rsiPeriod=7", "--timeframe", "7m"], "invalid choice"),
        (["--grid", "rsiPeriod=7", "--start", "yesterday"], "no day such as"),
        (["--grid", "rsiPeriod=7", "--start", "2026-01-01T00:00:00"], "no instant with an offset"),
        (["--grid", "rsiPeriod=7", "--start", "2026-01-01", "--days", "3"], "not both"),
        (["--grid", "rsiPeriod=7", "--start", "2026-05-01", "--end", "2026-04-01"], "not before their end"),
        (["--grid", "rsiPeriod=7", "--days", "0"], "not before their end"),
        (["--grid", "rsiPeriod=7", "--end", "1999-01-01"], "no closed bars of BTC/USD"),
        (["--grid", "rsiPeriod=7", "--fee", "1.5"], "fee and slippage"),
        (["--grid", "rsiPeriod=7", "--fee", "nan"], "fee and slippage"),
        (["--grid", "rsiPeriod=7", "--risk-free", "-2"], "risk_free"),
        (["--grid", "rsiPeriod=7", "--windows", "0,1,1,1"], "four whole numbers"),
        (["--grid", "rsiPeriod=7", "--processes", "0"], "1 or more"),
        (["--grid", "rsiPeriod=7", "--processes", "2", "--ray", "auto"], "not allowed with"),
        (["--random", "0"], "draws 1 or more"),
    ],
    ids=str,
)
def test_what_cannot_be_is_said_in_a_sentence(world, arguments, said):
    done = sweep(world, *arguments)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    assert said in done.stderr
    assert not (world / "sweeps").exists() or not any((world / "sweeps").iterdir())


def test_unknown_names_and_an_empty_home_are_said_too(world, tmp_path):
    assert "there is no spec 'NOBODY'" in sweep(world, *GRID, spec="NOBODY").stderr
    assert "'BTC' " not in sweep(world, *GRID, symbol="??").stderr
    assert "is neither a trading pair" in sweep(world, *GRID, symbol="??").stderr
    assert "quantdeck demo" in sweep(tmp_path, *GRID).stderr


def test_without_ray_it_is_said_how_to_have_it(world):
    program = "import sys; sys.modules['ray'] = None; from quantdeck.cli import main; sys.exit(main(sys.argv[1:]))"
    asked = [sys.executable, "-c", program, "sweep", "SMA_RSI", "--symbol", "BTC/USD", *GRID, "--ray", "auto"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False, env={**os.environ, **CLOCK})
    assert (done.returncode, "pip install 'quantdeck[ray]'" in done.stderr) == (2, True)


# ended in the middle


@contextmanager
def begun(home: Path) -> Iterator[subprocess.Popen[str]]:
    """A sweep some of which is done, and which stands still, so that it cannot come to its end meanwhile."""
    environment = {**os.environ, **CLOCK, "QUANTDECK_HOME": str(home)}
    program = [*PROGRAM, "sweep", "SMA_RSI", "--symbol", "BTC/USD", *LONG, "--json"]
    with subprocess.Popen(
        program, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        until = monotonic() + 40
        while not any(path.read_bytes().count(b"\n") > 20 for path in (home / "sweeps").glob("*.jsonl")):
            assert process.poll() is None
            assert monotonic() < until
            sleep(0.01)
        process.send_signal(signal.SIGSTOP)
        try:
            yield process
        finally:
            process.kill()


def workers(of: int) -> list[int]:
    told = subprocess.run(["pgrep", "-P", str(of)], capture_output=True, text=True, check=False).stdout
    return [int(pid) for pid in told.split()]


def gone(pids: list[int]) -> bool:
    """Whether they are, soon."""
    until = monotonic() + 20
    while any(_state(pid).strip("Z<+\n ") for pid in pids):  # Z is one that has ended
        if monotonic() > until:
            return False
        sleep(0.02)
    return True


def _state(pid: int) -> str:
    return subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout


@pytest.mark.parametrize(
    "sent, status", [(signal.SIGKILL, -signal.SIGKILL), (signal.SIGTERM, 143), (signal.SIGINT, 130)], ids=str
)
def test_a_sweep_that_was_ended_leaves_nothing_running_and_goes_on_to_the_same_end(world, home, sent, status):
    with begun(home) as process:
        pids = workers(process.pid)
        assert pids
        process.send_signal(sent)
        process.send_signal(signal.SIGCONT)
        out, errors = process.communicate(timeout=30)
    assert (process.returncode, out, "Traceback" in errors) == (status, "", False)
    assert ("the same command goes on" in errors) == (sent != signal.SIGKILL)
    assert gone(pids)
    done = sweep(home, *LONG, "--json")
    assert (done.returncode, "points were done before; going on" in done.stderr) == (0, True)
    assert done.stdout == whole(world)
    assert not any((home / "sweeps").iterdir())


_whole: list[str] = []


def whole(world: Path) -> str:
    """What the long sweep comes to where nobody ends it."""
    if not _whole:
        done = sweep(world, *LONG, "--json")
        assert done.returncode == 0, done.stderr
        _whole.append(done.stdout)
    return _whole[0]


def test_begun_afresh_nothing_of_before_is_gone_on_with(world, home):
    with begun(home) as process:
        process.kill()
    done = sweep(home, *LONG, "--json", "--fresh")
    assert (done.returncode, done.stderr, done.stdout) == (0, "", whole(world))
