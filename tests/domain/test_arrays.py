"""What is loaded, and when: nothing by importing, and never what TA-Lib would like to have."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

MODULES = ("arrays", "calendars", "indicators", "symbols", "volatility")
HEAVY = ("numpy", "talib", "pandas", "polars", "holidays", "dateutil")

REPORT = """
import json, sys
print(json.dumps(sorted(name for name in {heavy!r} if name in sys.modules)))
"""


def loaded_after(program: str, *, path: str = "") -> list[str]:
    """Which heavy modules a new process has after running this."""
    before = f"import sys; sys.path.insert(0, {path!r})\n" if path else ""
    told = subprocess.run(
        [sys.executable, "-c", before + program + REPORT.format(heavy=HEAVY)],
        check=True,
        capture_output=True,
        text=True,
    )
    found: list[str] = json.loads(told.stdout.splitlines()[-1])
    return found


@pytest.fixture
def polars(tmp_path):
    """A polars to be found; the real one is too large to install for this. TA-Lib takes two classes from it."""
    (tmp_path / "polars.py").write_text("class Series: ...\nclass DataFrame: ...\n")
    return str(tmp_path)


@pytest.mark.parametrize("module", MODULES)
def test_importing_a_module_of_figures_loads_nothing_heavy(module):
    assert loaded_after(f"import quantdeck.domain.{module}") == []


def test_figures_load_neither_pandas_nor_polars_though_both_are_installed(polars):
    assert {"pandas", "polars"} <= set(loaded_after("import talib", path=polars))  # or nothing would be shown here
    program = "from quantdeck.domain.indicators import macd, rsi\nmacd([1.0] * 60), rsi([1.0] * 60)"
    assert loaded_after(program, path=polars) == ["numpy", "talib"]


def test_both_can_still_be_imported_afterwards_and_before(polars):
    use = "from quantdeck.domain.indicators import ema\nema([1.0] * 60, 9)\n"
    have = "import pandas, polars\n"
    assert {"pandas", "polars"} <= set(loaded_after(use + have, path=polars))
    assert {"pandas", "polars"} <= set(loaded_after(have + use + "assert pandas.Series and polars.Series", path=polars))


def test_threads_that_ask_at_once_are_all_answered():
    program = """
from concurrent.futures import ThreadPoolExecutor
from quantdeck.domain.indicators import macd
with ThreadPoolExecutor(16) as pool:
    found = list(pool.map(lambda _: macd([float(n) for n in range(60)]).line[-1], range(64)))
assert len(set(found)) == 1
"""
    assert loaded_after(program) == ["numpy", "talib"]
