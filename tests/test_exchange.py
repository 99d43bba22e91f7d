"""`quantdeck import` and `quantdeck export`, as a person runs them."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from quantdeck.commands.export import _KINDS as TAKEN
from quantdeck.commands.import_ import _KINDS as BROUGHT
from tests.support import postgresql
from tests.support.program import quantdeck


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.services)])
async def real(request, tmp_path):
    """What runs a command over an empty database of each engine."""
    said = {} if request.param == "sqlite" else {"QUANTDECK_DATABASE": await postgresql.available().new_database()}

    def run(*arguments, stdin="", **environment):
        return quantdeck(*arguments, home=tmp_path / "home", stdin=stdin, environment={**said, **environment})

    assert run("migrate").returncode == 0
    return run


def example() -> str:
    return quantdeck("import", "desk", "--example", home=Path("nowhere")).stdout


def test_a_portfolio_comes_in_is_answered_for_and_goes_out(real, tmp_path):
    brought = real("import", "desk", "-", stdin=example())
    assert (brought.returncode, brought.stdout) == (0, "accounts: 1 added\npositions: 2 added\nrisk_limits: 1 added\n")
    held = json.loads(real("call", "get_positions").stdout)["data"]
    assert held["pagination"]["total"] == 2
    trade = {"symbol": "BTC/USD", "side": "SELL", "size": 0.1}
    assert json.loads(real("call", "validate_trade", json.dumps(trade)).stdout)["data"]["valid"]
    file = tmp_path / "out.json"
    assert real("export", "desk", str(file)).returncode == 0
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.read_text() == real("export", "desk").stdout
    again = real("import", "desk", str(file))
    assert again.stdout == "accounts: 1 as they were\npositions: 2 as they were\nrisk_limits: 1 as they were\n"
    assert real("export", "desk").stdout == file.read_text()


def test_what_is_wrong_with_a_file_is_told_with_its_paths_and_nothing_is_brought_in(real, tmp_path):
    contents = json.loads(example())
    contents["positions"][1]["size"] = -1
    file = tmp_path / "wrong.json"
    file.write_text(json.dumps(contents))
    done = real("import", "desk", str(file))
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    assert "positions[1].size: must be greater than 0" in done.stderr
    assert json.loads(real("export", "desk").stdout)["accounts"] == []


def test_rows_go_to_the_account_of_the_settings(real):
    assert real("import", "desk", "-", stdin=example(), QUANTDECK_ACCOUNT="mine").returncode == 0
    assert json.loads(real("call", "get_balance").stdout)["error"]["code"] == "ACCOUNT_NOT_FOUND"
    assert "data" in json.loads(real("call", "get_balance", QUANTDECK_ACCOUNT="mine").stdout)
    assert json.loads(real("export", "desk", "--account", "default").stdout)["positions"] == []


def test_a_demo_world_takes_nothing_and_gives_nothing_to_a_real_one_unless_told(tmp_path):
    world, home = tmp_path / "world", tmp_path / "home"
    assert quantdeck("demo", "--days", "1", "--quiet", home=world).returncode == 0
    assert quantdeck("migrate", home=home).returncode == 0
    refused = quantdeck("import", "desk", "-", home=world, stdin=example())
    assert (refused.returncode, "--into-demo" in refused.stderr) == (2, True)
    assert quantdeck("import", "desk", "-", "--into-demo", home=world, stdin=example()).returncode == 0
    made_up = quantdeck("export", "desk", home=world).stdout
    assert json.loads(made_up)["source"] == "demo"
    refused = quantdeck("import", "desk", "-", home=home, stdin=made_up)
    assert (refused.returncode, "--from-demo" in refused.stderr) == (2, True)
    assert quantdeck("import", "desk", "-", "--from-demo", home=home, stdin=made_up).returncode == 0


@pytest.mark.parametrize(
    "arguments, said",
    [
        (("import", "desk"), "--example"),
        (("import", "desk", "nowhere.json"), "nowhere.json cannot be read"),
        (("import", "desk", "-"), "no such file"),
        (("export", "desk", "/nonexistent/x.json"), "cannot be written"),
    ],
    ids=" ".join,
)
def test_what_cannot_be_done_is_said(tmp_path, arguments, said):
    assert quantdeck("migrate", home=tmp_path).returncode == 0
    done = quantdeck(*arguments, home=tmp_path)
    assert (done.returncode, said in done.stderr, "Traceback" in done.stderr) == (2, True, False)


def test_an_export_does_not_write_over_a_file(tmp_path):
    assert quantdeck("migrate", home=tmp_path).returncode == 0
    (tmp_path / "there.json").write_text("mine")
    done = quantdeck("export", "desk", str(tmp_path / "there.json"), home=tmp_path)
    assert (done.returncode, "is there already" in done.stderr) == (2, True)
    assert (tmp_path / "there.json").read_text() == "mine"


def test_a_desk_is_brought_into_an_empty_home_as_bars_are(tmp_path):
    done = quantdeck("import", "desk", "-", home=tmp_path, stdin=example())
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(quantdeck("call", "get_positions", home=tmp_path).stdout)["data"]["pagination"]["total"] == 2
    decision = {"symbol": "BTC/USD", "action": "HOLD", "confidence": 1, "reasoning": "it is all there"}
    assert quantdeck("call", "save_decision", json.dumps(decision), home=tmp_path).returncode == 0


def test_a_file_that_is_refused_makes_no_home(tmp_path):
    assert quantdeck("import", "desk", "-", home=tmp_path / "home", stdin="{}").returncode == 2
    assert not (tmp_path / "home").exists()


def test_nothing_is_made_beside_a_database_that_is_named(tmp_path):
    named = {"QUANTDECK_DATABASE": f"sqlite:///{tmp_path}/mine.db"}
    done = quantdeck("import", "desk", "-", home=tmp_path, stdin=example(), environment=named)
    assert (done.returncode, "quantdeck migrate" in done.stderr) == (2, True)
    assert list(tmp_path.glob("*.db")) == []


def test_without_a_database_an_export_says_what_to_set(tmp_path):
    done = quantdeck("export", "desk", home=tmp_path)
    assert (done.returncode, "quantdeck migrate" in done.stderr) == (2, True)


@pytest.mark.parametrize(
    "command, kind", [*(("import", kind) for kind in BROUGHT), *(("export", kind) for kind in TAKEN)]
)
def test_each_kind_is_listed_and_has_its_help(tmp_path, command, kind):
    assert f"    {kind} " in quantdeck(command, "--help", home=tmp_path).stdout
    assert quantdeck(command, kind, "--help", home=tmp_path).returncode == 0
