"""What Python means here: a subset, in an interpreter of its own. F of the research."""

from __future__ import annotations

import pytest

OUT_OF_REACH = {
    "a class by its attribute": "''.__class__.__mro__",
    "the globals of a function": "pyth.get_symbols.__globals__",
    "the code of a function": "(lambda: 1).__code__",
    "a class by a format": "'{0.__class__}'.format(1)",
    "an attribute by a format": "'{0.__init__.__globals__}'.format(pyth)",
    "an attribute of the host's function": "getattr(_call, '__self__')",
    "a traceback's frame": "try:\n  1 / 0\nexcept Exception as e:\n  r = e.__traceback__.tb_frame\nreturn r",
    "subclasses": "object.__subclasses__()",
    "builtins": "import builtins",
    "sys": "import sys\nsys.modules",
    "subprocess": "import subprocess",
    "socket": "import socket",
    "ctypes": "import ctypes",
    "importlib": "import importlib",
    "an environment": "import os\nos.environ",
    "a listing": "import os\nos.listdir('/')",
    "a system call": "import os\nos.system('true')",
    "random bytes of the system": "import os\nos.urandom(8)",
    "a file": "open('/etc/passwd').read()",
    "a file to write": "open('/tmp/x', 'w')",
    "a path": "from pathlib import Path\nPath('/etc/passwd').read_text()",
    "a path's parent": "from pathlib import Path\nlist(Path('/').iterdir())",
}


@pytest.mark.parametrize("code", OUT_OF_REACH.values(), ids=OUT_OF_REACH.keys())
async def test_nothing_of_the_machine_is_in_reach(run, code):
    report = await run(code, "python")
    assert report.problem is not None, report.value
    assert report.problem.kind in ("security", "runtime", "syntax")


MADE_OF_CODE = {
    "eval": "eval('1')",
    "exec": "exec('x = 1')",
    "compile": "compile('1', 'x', 'eval')",
    "__import__": "__import__('os')",
    "eval by another name": "e = eval\ne('1')",
    "eval in a text": "f\"{eval('1')}\"",
    "eval in a function": "def f():\n  return [eval('1') for _ in range(1)]\nf()",
}


@pytest.mark.parametrize("code", MADE_OF_CODE.values(), ids=MADE_OF_CODE.keys())
async def test_code_that_is_made_at_run_time_is_a_matter_of_security(run, code):
    assert await run.kind(code, "python") == "security"


@pytest.mark.parametrize("code", ["open('/etc/passwd')", "import os\nos.environ", "import os\nos.listdir('/')"])
async def test_asking_for_the_machine_is_a_matter_of_security(run, code):
    report = await run(code, "python")
    assert report.problem.kind == "security"
    assert "pyth" in report.problem.hint


async def test_sleeping_waits_for_nothing(run):
    assert await run.value("import time, asyncio\ntime.sleep(100)\nawait asyncio.sleep(100)\nreturn 1", "python") == 1


@pytest.mark.parametrize(
    "code, word",
    [
        ("class A(dict):\n  pass", "bases"),
        ("def g():\n  yield 1", "list"),
        ("x = {'a': 1}\ndel x['a']", "without"),
        ("import numpy", "indicators"),
        ("import statistics", "indicators"),
        ("return pyth.get_symbols()", "await"),
        ("return undefined_name", "pyth and indicators"),
    ],
)
async def test_what_is_not_there_is_told_with_what_to_use_instead(run, code, word):
    report = await run(code, "python")
    assert report.problem is not None, report.value
    assert word in report.problem.hint, report.problem


async def test_an_error_is_told_at_its_line_and_column(run):
    problem = (await run("a = [1]\n\ndef f(x):\n  return x.missing\n\nf(a)", "python")).problem
    assert (problem.kind, problem.name, problem.line, problem.column) == ("runtime", "AttributeError", 4, 10)


async def test_what_cannot_be_parsed_is_told_with_its_place(run):
    problem = (await run("x = 1\ny = = 2", "python")).problem
    assert (problem.kind, problem.name, problem.line) == ("syntax", "SyntaxError", 2)


async def test_a_call_that_cannot_be_right_is_refused_before_anything_is_done(run):
    asked = []

    async def ask(method, arguments):
        asked.append(method)
        return b"[]"

    code = "await pyth.get_symbols()\nx = 1\nawait pyth.get_latest_price('BTC/USD', [1], 2)"
    problem = (await run(code, "python", ask=ask)).problem
    assert (problem.kind, problem.name, problem.line) == ("syntax", "TypeError", 3)
    assert asked == []


async def test_the_last_expression_is_the_result_as_a_return_is(run):
    assert await run.value("x = 2\nx * 3", "python") == 6
    assert await run.value("for i in range(3):\n  if i == 1:\n    return 'out'", "python") == "out"


async def test_results_become_json(run):
    code = """import datetime, decimal
class Bar:
  def __init__(self):
    self.close = 1.5
return {"a": (1, 2), "b": {3}, "c": float("nan"), "d": 2 ** 70, "e": datetime.date(2025, 1, 2), 5: None, "f": True,
        "g": Bar(), "h": decimal.Decimal("1.10"), "i": "ü"}"""
    report = await run(code, "python")
    assert report.problem is None, report.problem
    assert report.value == {
        "a": [1, 2], "b": [3], "c": None, "d": str(2**70), "e": "2025-01-02", "5": None, "f": True, "g": {"close": 1.5},
        "h": "1.10", "i": "ü",
    }  # fmt: skip
    assert len(report.notes) == 1


@pytest.mark.parametrize("digits, kind", [(5_000, None), (200_000, None), (400_000, "runtime")])
async def test_long_integers_are_text_as_far_as_results_may_be_long(run, digits, kind):
    report = await run(f"return 10 ** {digits}", "python")
    assert (report.problem and report.problem.kind) == kind
    assert kind or report.value == "1" + "0" * digits


async def test_what_the_host_says_and_knows_is_not_in_an_error(run):
    async def ask(method, arguments):
        raise RuntimeError("a password of the server")

    report = await run("await pyth.get_symbols()", "python", ask=ask)
    assert report.problem.message == "internal: The server failed in a way it did not foresee."
    assert "password" not in repr(report)


async def test_numbers_are_pinned(run):
    """Monty rounds in its own way; whoever moves its version should know."""
    code = "return [round(2.675, 2), sum([0.1] * 10), 10 ** 20, 7 // 2, -7 // 2, -7 % 3, 0.1 + 0.2, 1e22]"
    assert await run.value(code, "python") == [
        2.68,
        0.9999999999999999,
        str(10**20),
        3,
        -4,
        2,
        0.30000000000000004,
        1e22,
    ]


async def test_printing_is_the_console(run):
    report = await run("print('a', 1, [2])\nprint('no end', end='')\nprint()\nprint('last', end='')", "python")
    assert report.console == ["a 1 [2]", "no end", "last"]


async def test_names_have_underscores_and_the_server_hears_the_specs(run):
    code = """await pyth.get_symbols("BTC", "crypto")
await pyth.get_candlestick_data("BTC/USD", "D", 1, to=2)
await pyth.get_historical_price([1], 1750000000)
return await pyth.get_latest_price(["BTC/USD"], properties=["price"])"""
    asked = []

    async def ask(method, arguments):
        asked.append((method, arguments))
        return b"{}"

    await run.value(code, "python", ask=ask)
    assert asked == [
        ("getSymbols", ["BTC", "crypto"]),
        ("getCandlestickData", ["BTC/USD", "D", 1, 2]),
        ("getHistoricalPrice", [[1], 1750000000]),
        ("getLatestPrice", [["BTC/USD"], ["price"]]),
    ]
