"""What TypeScript means here: positions, results, time. E of the research."""

from __future__ import annotations

import asyncio

import pytest

from quantdeck.sources.sandbox.failures import excerpt

INTERFACES = """interface Bar { time: number; close: number }
type Bars = Bar[];
const bars: Bars = [{ time: 1, close: 2 }];
function last<T>(list: T[]): T { return list[list.length - 1]!; }
const found = last(bars) satisfies Bar;
const other = undefined as unknown as { deep: { down: number } };
const value = found.close + other.deep.down;
return value;"""

SHOWN = """\
     6 | const other = undefined as unknown as { deep: { down: number } };
>    7 | const value = found.close + other.deep.down;
       |                                   ^
     8 | return value;"""


async def test_an_error_is_told_at_its_own_line_and_column_whatever_types_stand_before_it(run):
    problem = (await run(INTERFACES)).problem
    assert (problem.name, problem.line, problem.column) == ("TypeError", 7, 35)
    assert problem.message == "Cannot read properties of undefined (reading 'deep')"
    assert excerpt(INTERFACES, problem.line, problem.column) == SHOWN


async def test_in_the_first_line_too(run):
    problem = (await run("const a: any = null; a.b")).problem
    assert (problem.line, problem.column) == (1, 24)


async def test_an_error_in_a_function_is_told_where_it_was_thrown(run):
    code = "const f = (x: number) => {\n  throw new RangeError('too far');\n};\nf(1);"
    problem = (await run(code)).problem
    assert (problem.name, problem.message, problem.line, problem.column) == ("RangeError", "too far", 2, 9)


async def test_an_error_of_a_figure_is_told_where_it_was_called(run):
    problem = (await run("const a = [1, 2];\nconst b = indicators.sma(a, 0);")).problem
    assert (problem.name, problem.line) == ("RangeError", 2)


@pytest.mark.parametrize(
    "code, line, column",
    [
        ("const a = 1;\nlet b: = 3;", 2, 8),
        ("let b: = 3;", 1, 8),
        ("const a = {\n  b: 1,\n  c: [1, 2\n};", 4, 1),
        ("if (1 { }", 1, 7),
    ],
)
async def test_what_cannot_be_parsed_is_told_with_its_place(run, code, line, column):
    problem = (await run(code)).problem
    assert (problem.kind, problem.name) == ("syntax", "SyntaxError")
    assert (problem.line, problem.column) == (line, column)


async def test_a_name_that_is_declared_twice_is_a_matter_of_syntax(run):
    problem = (await run("const a = 1;\nconst a = 2;")).problem
    assert problem.kind == "syntax"
    assert "already been declared" in problem.message


@pytest.mark.parametrize(
    "code, word",
    [
        ("enum Side { Buy, Sell }", "const"),
        ("namespace N { export const a = 1 }", "object"),
        ("class A { constructor(private a: number) {} }", "constructor"),
    ],
)
async def test_what_would_need_code_to_be_generated_is_refused_with_what_to_write(run, code, word):
    problem = (await run(f"const x = 1;\n{code}\nreturn x;")).problem
    assert (problem.kind, problem.line) == ("syntax", 2)
    assert word in problem.hint


@pytest.mark.parametrize(
    "thrown, name, message",
    [
        ("'a text'", "Error", "a text"),
        ("null", "Error", "object null"),
        ("undefined", "Error", "undefined undefined"),
        ("{ code: 7 }", "Error", '{"code":7}'),
        ("Object.freeze(new TypeError('frozen'))", "TypeError", "frozen"),
        ("Symbol('s')", "Error", "symbol Symbol(s)"),
        ("Object.create(null)", "Error", "{}"),
        ("new Proxy(new Error('behind'), {})", "Error", "behind"),
        ("{ get stack() { throw 1 }, get name() { throw 2 } }", "Error", "An error that cannot be read"),
    ],
)
async def test_whatever_is_thrown_is_told(run, thrown, name, message):
    problem = (await run(f"throw {thrown}")).problem
    assert (problem.kind, problem.name, problem.message) == ("runtime", name, message)


async def test_results_become_json(run):
    value = await run.value("""return {
        nothing: undefined, none: null, nan: NaN, endless: -Infinity, big: 123456789012345678901234567890n,
        day: new Date(0), map: new Map([["a", 1], [2, "b"]]), set: new Set([1, 2]), bytes: new Uint8Array([1, 2]),
        numbers: new Float64Array([1.5]), text: "ü\\u0000", hidden: () => 1, nested: [[{}]], zero: -0, small: 5e-324,
    }""")
    assert value == {
        "none": None, "nan": None, "endless": None, "big": "123456789012345678901234567890",
        "day": "1970-01-01T00:00:00.000Z", "map": {"a": 1, "2": "b"}, "set": [1, 2], "bytes": [1, 2],
        "numbers": [1.5], "text": "ü\0", "nested": [[{}]], "zero": 0, "small": 5e-324,
    }  # fmt: skip


async def test_numbers_that_json_has_not_are_counted(run):
    report = await run("return [NaN, 1, Infinity]")
    assert report.value == [None, 1, None]
    assert report.notes == ["2 numbers in the result were NaN or infinite and are null"]


@pytest.mark.parametrize("code", ["return", "", "return undefined", "return () => 1", "return Symbol()"])
async def test_no_result_is_null(run, code):
    assert await run.value(code or " ") is None


async def test_a_cycle_is_an_error_with_a_hint(run):
    problem = (await run("const a: any = {}; a.a = a; return a")).problem
    assert (problem.kind, problem.name) == ("runtime", "TypeError")
    assert "cycles" in problem.hint


async def test_three_calls_at_once_take_the_time_of_one(run, language):
    arrived = asyncio.Event()
    waiting = []

    async def ask(method, arguments):
        waiting.append(method)
        if len(waiting) == 3:
            arrived.set()
        await arrived.wait()  # none is answered before all have come
        return b"1"

    codes = {
        "typescript": "return await Promise.all([pyth.getSymbols(), pyth.getSymbols(), pyth.getLatestPrice(['x'])])",
        "python": "import asyncio\nreturn await asyncio.gather(pyth.get_symbols(), pyth.get_symbols(), "
        "pyth.get_latest_price(['x']))",
    }
    assert await run.value(codes[language], language, ask=ask) == [1, 1, 1]


async def test_two_analyses_share_nothing(run, language):
    codes = {
        "typescript": (
            "globalThis.kept = 1; Array.prototype.kept = 1; return 1",
            "return [typeof kept, typeof [].kept]",
        ),
        "python": ("kept = 1\nreturn 1", "try:\n  r = kept\nexcept NameError:\n  r = 'none'\nreturn r"),
    }
    first, second = codes[language]
    assert await run.value(first, language) == 1
    assert await run.value(second, language) in (["undefined", "undefined"], "none")


async def test_where_the_world_stands_still_so_does_the_code(run, language):
    codes = {
        "typescript": """return [Date.now(), new Date().toISOString(), typeof Date(), new Date(5).getTime(),
            new Date() instanceof Date, Date.UTC(1970, 0), Object.prototype.toString.call(new Date())]""",
        "python": "import datetime, time\nreturn [datetime.datetime.now().isoformat(), int(time.time() * 1000)]",
    }
    value = await run.value(codes[language], language, now_ms=1_750_000_000_000)
    if language == "typescript":
        assert value == [
            1_750_000_000_000, "2025-06-15T15:06:40.000Z", "string", 5, True, 0, "[object Date]",
        ]  # fmt: skip
    else:
        assert value == ["2025-06-15T15:06:40", 1_750_000_000_000]


async def test_the_console_shows_what_it_is_given(run):
    report = await run("""
        console.log("a", 1, { b: [2] }, null, undefined, 3n, NaN);
        console.warn("careful");
        console.error(new Error("wrong").message);
        console.log(new Map([["a", 1]]), Symbol("s"), () => 1);
    """)
    assert report.console == [
        'a 1 {"b":[2]} null undefined 3 NaN', "warn: careful", "error: wrong", '{"a":1} Symbol(s) () => 1',
    ]  # fmt: skip


async def test_the_measure_of_memory_is_the_codes_own_share(run, language):
    """A hundred megabytes above what an idle engine holds; not the engine's."""
    codes = {
        "typescript": "const a = new Uint8Array(100e6).fill(1); return a.length",
        "python": "a = 'x' * 100_000_000\nreturn len(a)",
    }
    report = await run(codes[language], language)
    assert report.value == 100_000_000
    assert report.memory_exact
    assert 95 < report.memory_mb < 125
    assert report.process_mb > report.memory_mb


async def test_the_measure_of_time_counts_waiting_apart(run):
    report = await run("return await pyth.getSymbols()")
    assert 0 < report.host_wait_ms < report.duration_ms
    assert report.boot_ms > 0
    assert (await run("return 1")).host_wait_ms == 0
