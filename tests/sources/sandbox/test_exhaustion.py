"""Code that wants everything: memory, time, stack, output. D of the research."""

from __future__ import annotations

import asyncio

import pytest

from quantdeck.sources.sandbox import BUDGET_MB, LONGEST_CODE
from tests.support.sandbox import never

MOST_MB = BUDGET_MB * 1.25

HUNGRY = {
    "a list": "const a = []; for (;;) a.push({ x: 1 })",
    "a map": "const a = new Map(); for (let i = 0; ; i++) a.set('k' + i, i)",
    "a set": "const a = new Set(); for (let i = 0; ; i++) a.add(i)",
    "a text": "let s = 'x'; for (;;) s += s",
    "a text in pieces": "const a = []; for (let i = 0; ; i++) a.push(`${i}`.repeat(1000))",
    "a template": "let s = ''; for (let i = 0; ; i++) s += `${i}aaaaaaaaaaaaaaaaaaaaaaaaaaa`",
    "one buffer": "new ArrayBuffer(2 ** 30)",
    "many buffers": "const a = []; for (let i = 0; i < 64; i++) a.push(new Uint8Array(64 << 20).fill(1))",
    "small buffers": "const a = []; for (;;) a.push(new Uint8Array(1 << 16).fill(1))",
    "typed numbers": "return new Float64Array(3e7).fill(1).length",
    "a long list": "return new Array(1e9).fill(0).length",
    "a long join": "return new Array(1e9).join('x').length",
    "a replacement": "return 'a'.repeat(1 << 28).replaceAll('a', 'bbbb').length",
    "promises": "const a = []; for (;;) a.push(Promise.resolve().then(() => 1))",
    "a chain of promises": "const f = () => Promise.resolve().then(f); await f()",
    "what it returns": "return 'x'.repeat(60e6)",
    "what it returns, counted": "return Array.from({ length: 1e7 }, (_, i) => i)",
    "numbers without end": "let b = 2n; for (;;) b *= b",
    "a growing error": "const a = [], m = 'x'.repeat(1e6); for (;;) a.push(new Error(m + a.length).stack)",
}  # fmt: skip

HUNGRY_PYTHON = {
    "a list": "x = []\nwhile True:\n  x.append([1])",
    "a dict": "d = {}\nwhile True:\n  d['k' + str(len(d))] = 1",
    "a text": "s = 'x'\nwhile True:\n  s += s",
    "a power": "10 ** 10 ** 9",
    "a shift": "1 << 2 ** 40",
    "a repetition": "'x' * 2 ** 32",
    "a list of a range": "list(range(10 ** 9))",
    "a width": "f'{1:1000000000}'",
    "a product": "import itertools\nlist(itertools.product(range(1000), repeat=5))",
    "what it returns": "return list(range(10_000_000))",
}


@pytest.mark.parametrize("code", HUNGRY.values(), ids=HUNGRY.keys())
async def test_memory_ends_before_the_budget_is_far_behind(run, code):
    report = await run(code)
    assert report.problem is not None
    assert report.problem.kind == "memory", report.problem
    assert report.memory_mb <= MOST_MB


@pytest.mark.parametrize("code", HUNGRY_PYTHON.values(), ids=HUNGRY_PYTHON.keys())
async def test_memory_ends_in_python_too(run, code):
    report = await run(code, "python")
    assert report.problem is not None
    assert report.problem.kind == "memory", report.problem
    assert report.memory_mb <= MOST_MB


ENDLESS = {
    "a loop": "for (;;) {}",
    "a loop in finally": "try { throw 1 } finally { for (;;) {} }",
    "a loop in catch": "for (;;) { try { for (;;) {} } catch {} }",
    "a promise that never settles": "await new Promise(() => {})",
    "a thenable": "return { then() { for (;;) {} } }",
    "a getter of the result": "return { get a() { for (;;) {} } }",
    "a proxy as the result": "return new Proxy({}, { ownKeys() { for (;;) {} } })",
    "a proxy as the error": "throw new Proxy({}, { has() { for (;;) {} } })",
    "a name of the error": "throw { stack: '', get name() { for (;;) {} } }",
    "a text of the console": "console.log({ toJSON() { for (;;) {} } })",
    "a backreference": "/(a+)\\1+$/.test('a'.repeat(60000) + 'b')",
    "a sort": "[...Array(1e5).keys()].sort(() => { for (;;) {} })",
    "a call that is not answered": "await pyth.getSymbols()",
    "recursion that is caught and tried again": "const f = (n) => { try { f(n + 1) } catch { f(n + 1) } }; f(0)",
}

ENDLESS_PYTHON = {
    "a loop": "while True:\n  pass",
    "a loop that catches": "while True:\n  try:\n    1 / 0\n  except Exception:\n    pass",
    "a product of numbers": "x = 3\nwhile True:\n  x = x * x % (10 ** 2000)",
    "a call that is not answered": "await pyth.get_symbols()",
    "printing": "while True:\n  print('x')",
    "a key": "sorted(range(10 ** 5), key=lambda x: [y for y in range(10 ** 6)])",
}


@pytest.mark.parametrize("code", ENDLESS.values(), ids=ENDLESS.keys())
async def test_time_ends_whatever_the_code_does(run, code):
    report = await run(code, timeout_ms=250, ask=never)
    assert report.problem is not None
    assert report.problem.kind == "timeout", report.problem


@pytest.mark.parametrize("code", ENDLESS_PYTHON.values(), ids=ENDLESS_PYTHON.keys())
async def test_time_ends_in_python_too(run, code):
    report = await run(code, "python", timeout_ms=250, ask=never)
    assert report.problem is not None
    assert report.problem.kind == "timeout", report.problem


async def test_what_was_written_before_time_ended_is_told(run, language):
    code = {"typescript": "console.log('begun'); for (;;) {}", "python": "print('begun')\nx = 1\nwhile True:\n  x += 1"}
    report = await run(code[language], language, timeout_ms=600)
    assert report.console == ["begun"]


async def test_a_call_that_is_late_is_cancelled_where_it_is_asked(run, language):
    cancelled = asyncio.Event()

    async def ask(method, arguments):
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    code = {"typescript": "await pyth.getSymbols()", "python": "await pyth.get_symbols()"}[language]
    assert await run.kind(code, language, timeout_ms=300, ask=ask) == "timeout"
    assert cancelled.is_set()


async def test_a_call_that_nobody_waits_for_is_cancelled_with_the_end(run):
    cancelled = asyncio.Event()

    async def ask(method, arguments):
        try:
            await (asyncio.sleep(0) if method == "getSymbols" else asyncio.Event().wait())
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return b"1"

    report = await run("pyth.getLatestPrice([]); return await pyth.getSymbols()", ask=ask)
    assert report.value == 1
    assert cancelled.is_set()


FINE = {
    "nested quantifiers": ("return /^(a+)+$/.test('a'.repeat(50) + 'b')", False),
    "recursion that is caught": ("const f = () => f(); try { f() } catch (e) { return e.name }", "RangeError"),
    "a sort that lies": ("return [...Array(1000).keys()].sort(() => Math.random() - 0.5).length", 1000),
    "an unhandled rejection": ("Promise.reject(new Error('x')); await pyth.getSymbols(); return 1", 1),
    "many declarations": (
        "".join(f"const a{n}={n};" for n in range(3000)) + "return a2999",
        2999,
    ),
    "comments": (f"/*{'x' * 60_000}*/ return 1", 1),
    "code as long as it may be": ("return 1;".ljust(LONGEST_CODE), 1),
}


@pytest.mark.parametrize("code, value", FINE.values(), ids=FINE.keys())
async def test_what_looks_dangerous_and_is_not_runs(run, code, value):
    assert await run.value(code) == value


DEEP = {
    "brackets": "return " + "(" * 30_000 + "1" + ")" * 30_000,
    "lists": "return " + "[" * 30_000 + "]" * 30_000,
    "types": "let a: " + "Array<" * 8_000 + "1" + ">" * 8_000,
    "signs": "return " + "- " * 30_000 + "1",
    "blocks": "{" * 30_000 + "}" * 30_000,
}


@pytest.mark.parametrize("code", DEEP.values(), ids=DEEP.keys())
async def test_source_that_is_nested_too_deeply_is_a_matter_of_syntax(run, code):
    report = await run(code)
    assert report.problem is None or report.problem.kind == "syntax", report.problem


@pytest.mark.parametrize("code", ["x = " + "(" * 30_000 + "1" + ")" * 30_000, "x = " + "[" * 30_000 + "]" * 30_000])
async def test_in_python_too(run, code):
    assert await run.kind(code, "python") == "syntax"


async def test_a_result_that_is_nested_too_deeply_is_an_error(run, language):
    code = {
        "typescript": "let o = {}; for (let i = 0; i < 1e5; i++) o = { o }; return o",
        "python": "x = []\nfor i in range(100000):\n  x = [x]\nreturn x",
    }
    assert await run.kind(code[language], language) == "runtime"


async def test_a_nesting_that_only_we_cannot_read_is_an_error_too(run):
    report = await run("let o = {}; for (let i = 0; i < 2000; i++) o = { o }; return o")
    assert report.problem is not None
    assert report.problem.kind == "runtime", report.problem


async def test_a_result_longer_than_the_cap_says_what_to_do(run, language):
    code = {"typescript": "return 'x'.repeat(300000)", "python": "return 'x' * 300000"}
    report = await run(code[language], language)
    assert report.problem.kind == "runtime"
    assert "Return figures rather than rows" in report.problem.hint


@pytest.mark.parametrize(
    "code", ["for (;;) console.log('x'.repeat(1e4))", "for (;;) console.log('')"], ids=["size", "count"]
)
async def test_a_flood_of_the_console_is_cut(run, code):
    report = await run(code, timeout_ms=400)
    assert report.problem.kind == "timeout"
    assert report.console[-1] == "[the console is full; the rest is left out]"
    assert sum(map(len, report.console)) < 70_000
    assert len(report.console) <= 1001


async def test_a_flood_of_printing_is_cut(run):
    report = await run("for i in range(20000):\n  print('x' * 100)\nprint('y' * 50_000_000)\nreturn 1", "python")
    assert report.value == 1, report.problem
    assert report.console[-1] == "[the console is full; the rest is left out]"
    assert sum(map(len, report.console)) < 70_000
