"""Code that changes what it was given, and what it sends: B of the research."""

from __future__ import annotations

import orjson
import pytest

from quantdeck.sources.sandbox import MOST_CALLS
from tests.support.sandbox import refusing

REFUSED = {
    "assigning to a binding": "pyth.getSymbols = 1",
    "replacing pyth": "globalThis.pyth = 1",
    "replacing indicators": "indicators = {}",
    "defining over a binding": "Object.defineProperty(pyth, 'getSymbols', { value: 1 })",
    "defining over pyth": "Object.defineProperty(globalThis, 'pyth', { value: 1 })",
    "deleting a binding": "delete pyth.getSymbols",
    "giving pyth a prototype": "Object.setPrototypeOf(pyth, {})",
    "assigning to a figure": "indicators.sma = () => 1",
}


@pytest.mark.parametrize("code", REFUSED.values(), ids=REFUSED.keys())
async def test_what_was_given_cannot_be_changed(run, code):
    report = await run(code)
    assert report.problem is not None
    assert (report.problem.kind, report.problem.name) == ("runtime", "TypeError")


CHANGED = {
    "JSON": "JSON.stringify = () => 'forged'; JSON.parse = () => 'forged';",
    "promises": "Promise.prototype.then = () => {}; globalThis.Promise = null;",
    "lists": "Array.prototype.map = Array.prototype.push = Array.prototype.slice = null; Array.from = null;",
    "lists, by a setter": "Object.defineProperty(Array.prototype, '0', { set() { throw 1 } });",
    "texts": "String.prototype.slice = () => 'forged'; String.prototype.toWellFormed = null;",
    "maps": "Map.prototype.get = Map.prototype.entries = null; globalThis.Map = null;",
    "objects": "Object.fromEntries = Object.defineProperty = Object.freeze = null;",
    "functions": "Function.prototype.call = Function.prototype.apply = Function.prototype.bind = null;",
    "symbols": "Object.prototype[Symbol.iterator] = null; Array.prototype[Symbol.iterator] = null;",
    "a getter for everything": "Object.defineProperty(Object.prototype, 'ok', { get() { throw 1 } });",
}


@pytest.mark.parametrize("change", CHANGED.values(), ids=CHANGED.keys())
async def test_a_changed_language_changes_no_report(run, change):
    report = await run(f"{change} console.log('said'); return {{ a: 1 }}")
    assert report.problem is None, report.problem
    assert report.value == {"a": 1}
    assert report.console == ["said"]


async def test_junk_of_to_json_is_the_codes_own_affair(run):
    assert await run.value("Object.prototype.toJSON = () => 'junk'; return { a: 1 }") == "junk"
    assert await run.value("Object.prototype.toJSON = () => undefined; return { a: 1 }") is None


async def test_names_of_prototypes_are_plain_names(run):
    code = """
        const told = await pyth.getSymbols(JSON.parse('{"__proto__": {"x": 1}, "constructor": 2}'));
        return [told.arguments[0], Object.keys(told.arguments[0]), {}.x, JSON.parse('{"__proto__": 1}')];
    """
    value = await run.value(code)
    assert value[1] == ["__proto__", "constructor"]
    assert value[2] is None


UNFIT = {
    "a getter that throws": "{ get a() { throw new Error('mine') } }",
    "a toJSON that throws": "{ toJSON() { throw new Error('mine') } }",
    "a proxy that throws": "new Proxy({}, { ownKeys() { throw new Error('mine') } })",
    "a cycle": "(() => { const a = {}; a.a = a; return a })()",
    "too long": "'x'.repeat(30e6)",
    "many symbols": "Array(1e6).fill('BTC/USD')",
}


@pytest.mark.parametrize("argument", UNFIT.values(), ids=UNFIT.keys())
async def test_an_argument_that_cannot_be_sent_is_an_error_that_can_be_caught(run, argument):
    code = f"try {{ await pyth.getSymbols({argument}) }} catch (e) {{ return e instanceof Error }} return 'sent'"
    report = await run(code)
    assert report.value is True
    assert sum(report.calls.values()) == 0


async def test_what_is_no_json_in_an_argument_arrives_as_null(run):
    told = await run.value(
        "return (await pyth.getHistoricalPrice([NaN, -1, Infinity, undefined], -Infinity)).arguments"
    )
    assert told == [[None, -1, None, None], None]


async def test_more_arguments_than_the_interface_has_are_refused(run):
    assert await run.kind("await pyth.getSymbols('a', 'b', 'c')") == "runtime"


FORGED = '["result","[0,1]"]\\n["ready",0]\\n["call",1,"getSymbols","[]"]'


@pytest.mark.parametrize(
    "text", [FORGED, "\\ud800 alone", "\\u001b[31mred\\u001b[0m", "\\u2028\\u2029\\0", "[0,1]", '\\"],[\\"']
)
async def test_text_that_looks_like_a_frame_is_text(run, text):
    report = await run(f"console.log('{text}'); return {{ '{text}': '{text}' }}")
    assert report.problem is None, report.problem
    assert sum(report.calls.values()) == 0
    expected = text.encode().decode("unicode_escape").replace("\ud800", "\ufffd")
    assert list(report.value.values()) == [expected]
    assert report.console == [expected.translate({0: "\u2400", 27: "\u241b", 10: "\n"})]


@pytest.mark.parametrize("symbol", ["../../latest", "https://example.com", "BTC/USD?x=1", "a\\nb", "%2e%2e"])
async def test_whatever_a_symbol_is_it_is_handed_on_as_a_value(run, symbol):
    told = await run.value(f'return (await pyth.getCandlestickData("{symbol}", "D", 1, 2)).arguments')
    assert told == [symbol.replace("\\n", "\n"), "D", 1, 2]


async def test_only_the_four_methods_are_asked(run, language):
    """In Python the name of the call is in reach, so it is the server that says no."""
    if language == "typescript":
        assert await run.value("return Object.keys(pyth).length") == 4
        return
    report = await run("await _call('close', [])", "python")
    assert report.problem.kind == "runtime"
    assert "no such method" in report.problem.message
    assert report.calls == {"ok": 0, "failed": 0, "refused": 1}


@pytest.mark.parametrize(
    "call",
    [
        "sma(DATA, 0)", "sma(DATA, -1)", "ema(DATA, 1e9)", "rsi(DATA, 1.5)", "sma(DATA, NaN)", "sma(DATA, '3')",
        "sma('abc', 2)", "sma({ length: 1e9 }, 2)", "sma(null, 2)", "macd(DATA, 12, 0)", "bollingerBands(DATA, 2, 'x')",
        "percentChange('1', 2)", "standardDeviation({ length: 3 })",
    ],
)  # fmt: skip
async def test_arguments_of_figures_that_are_none_are_errors_with_a_place(run, call):
    report = await run(f"const DATA = [1, 2, 3];\nreturn indicators.{call}")
    assert report.problem.kind == "runtime"
    assert report.problem.name in ("TypeError", "RangeError")
    assert report.problem.line == 2


async def test_figures_leave_out_what_is_no_number(run, language):
    nothing = {"typescript": "NaN, null, 'x', undefined, Infinity", "python": "float('nan'), None, 'x', True"}
    code = f"return indicators.sma([1, {nothing[language]}, 3], 2)"
    value = await run.value(code, language)
    assert value[-1] == 2
    assert set(value[:-1]) == {None}


async def test_what_the_server_says_no_to_is_an_error_with_its_code(run, language):
    ask = refusing("not_found", "Feed not found: X. Use get_symbols to discover available feeds.")
    codes = {
        "typescript": "try { await pyth.getSymbols() } catch (e) { return [e.name, e.code, e.message, e.stack] }",
        "python": "try:\n  await pyth.get_symbols()\nexcept RuntimeError as e:\n  r = str(e)\nreturn r",
    }
    value = await run.value(codes[language], language, ask=ask)
    if language == "typescript":
        assert value[:3] == [
            "PythError",
            "not_found",
            "Feed not found: X. Use get_symbols to discover available feeds.",
        ]
        assert "user.ts:1:1" in value[3]
    else:
        assert value == "not_found: Feed not found: X. Use get_symbols to discover available feeds."


async def test_what_the_server_refuses_is_told_with_the_place_of_the_call(run, language):
    code = {
        "typescript": "const a = 1;\nconst b: string = 'x';\nawait pyth.getSymbols(b);",
        "python": "a = 1\nb = 'x'\nawait pyth.get_symbols(b)",
    }[language]
    report = await run(code, language, ask=refusing("auth", "No token."))
    assert (report.problem.kind, report.problem.line) == ("runtime", 3)
    assert "No token." in report.problem.message
    assert "pyth" in report.problem.hint


async def test_a_cap_on_calls_can_be_caught_and_the_count_is_the_servers(run, language):
    codes = {
        "typescript": """
            const done = await Promise.allSettled(Array.from({ length: 20000 }, () => pyth.getSymbols()));
            return done.filter((one) => one.status === 'rejected').length""",
        "python": """
import asyncio
failed = 0
async def one():
  try:
    await pyth.get_symbols()
    return 0
  except RuntimeError:
    return 1
return sum(await asyncio.gather(*[one() for _ in range(20000)]))""",
    }
    report = await run(codes[language], language)
    assert report.value == 20_000 - MOST_CALLS, report.problem
    assert report.calls["ok"] == MOST_CALLS


async def test_calls_one_after_another_meet_the_same_cap(run, language):
    codes = {
        "typescript": """let n = 0; for (let i = 0; i < 10000; i++) { try { await pyth.getSymbols(); n++ } catch {} }
            return n""",
        "python": """
n = 0
for i in range(10000):
  try:
    await pyth.get_symbols()
    n += 1
  except RuntimeError:
    pass
return n""",
    }
    report = await run(codes[language], language)
    assert report.value == MOST_CALLS, report.problem
    assert report.calls == {"ok": MOST_CALLS, "failed": 0, "refused": 0}


async def test_an_answer_that_is_too_long_is_refused_before_it_is_sent(run, language):
    async def ask(method, arguments):
        return orjson.dumps("x" * 30_000_000)

    codes = {
        "typescript": "try { await pyth.getSymbols() } catch (e) { return e.code }",
        "python": "try:\n  await pyth.get_symbols()\nexcept RuntimeError as e:\n  r = str(e)[:5]\nreturn r",
    }
    assert await run.value(codes[language], language, ask=ask) == "limit"
