"""Code made at run time, and what is in reach of a realm that holds nothing but the language: A of the research."""

from __future__ import annotations

import pytest

REFUSED = {
    "eval": "return eval('1')",
    "eval by another name": "const e = eval; return (0, e)('1')",
    "Function by name": "return new Function('return 1')()",
    "Function without new": "return Function('return 1')()",
    "this.constructor.constructor": "return (function () { return this }).call({}).constructor.constructor('1')()",
    "an arrow's constructor": "return (() => 1).constructor('return 1')()",
    "an async function's": "return (async () => 1).constructor('return 1')()",
    "a generator's": "return (function* () {}).constructor('yield 1')().next()",
    "an async generator's": "return (async function* () {}).constructor('yield 1')().next()",
    "a binding's": "return pyth.getSymbols.constructor('return 1')()",
    "a binding's, at its root": "return pyth.getSymbols.constructor.constructor('return globalThis')()",
    "a figure's": "return indicators.sma.constructor('return 1')()",
    "the console's": "return console.log.constructor('return 1')()",
    "a promise's": "return pyth.getSymbols().constructor.constructor('return 1')()",
    "an answer's": "return (await pyth.getSymbols()).constructor.constructor('return 1')()",
    "an error's of a binding": "try { await pyth.getSymbols(1, 2, 3) } catch (e) { e.constructor.constructor('1')() }",
    "an error's of a figure": "try { indicators.sma(1, 2) } catch (e) { return e.constructor.constructor('1')() }",
    "an error's of the parser": "try { JSON.parse('{') } catch (e) { return e.constructor.constructor('return 1')() }",
    "an error's of the stack": "const f = () => f(); try { f() } catch (e) { return e.constructor.constructor('1')() }",
    "import of node": "return await import('node:fs')",
    "import of npm": "return await import('npm:left-pad')",
    "import of jsr": "return await import('jsr:@std/fs')",
    "import of https": "return await import('https://example.com/x.js')",
    "import of a file": "return await import('file:///etc/passwd')",
    "import of data": "return await import('data:text/javascript,export default 1')",
    "import of a blob": "return await import('blob:null/1')",
    "import by a loop": "for (const m of ['node:vm', 'node:module']) { await import(m) } return 1",
    "import as a statement": "import fs from 'node:fs'; return 1",
    "export": "export const a = 1",
    "import with a type": "import type { A } from 'x'; return 1",
    **{
        f"{name} by name": f"return {name}.toString()"
        for name in (
            "fetch", "WebSocket", "EventSource", "Worker", "BroadcastChannel", "localStorage", "caches", "process",
            "Deno", "require", "module", "WebAssembly", "SharedArrayBuffer", "Atomics",
        )
    },
}  # fmt: skip


@pytest.mark.parametrize("code", REFUSED.values(), ids=REFUSED.keys())
async def test_code_that_reaches_out_is_a_matter_of_security(run, code):
    assert await run.kind(code) == "security"


HARMLESS = {
    "brackets that close the wrapper": "return 1 }); (async () => { return 2",
    "the wrapper closed and left": "return 1 }); globalThis.left = 1; (async () => {",
    "import, escaped": r"return await i\u006dport('node:fs')",
    "import.meta": "return import.meta.url",
    "import at the end of the wrapper": "return 1 }); import('node:fs'); (async () => {",
    "setTimeout with a string": "setTimeout('1', 1)",
    "a caller": "function f() { return f.caller } return f()",
    "arguments of a function": "function f() { return f.arguments } return f()",
}


@pytest.mark.parametrize("code", HARMLESS.values(), ids=HARMLESS.keys())
async def test_tricks_with_the_wrapper_come_to_nothing(run, code):
    report = await run(code)
    assert report.problem is not None or report.value in (1, 2, None)
    if report.problem is not None:
        assert report.problem.kind in ("syntax", "runtime", "security")


async def test_the_globals_are_the_language_and_three_more(run):
    found = await run.value("""
        const names = new Set(Reflect.ownKeys(globalThis).map(String));
        const chain = [];
        for (let at = globalThis; at; at = Object.getPrototypeOf(at)) chain.push(...Reflect.ownKeys(at).map(String));
        const ours = (n) => typeof globalThis[n] !== 'function' || globalThis[n] instanceof Function;
        const foreign = [...names].filter((n) => !ours(n));
        return { names: [...names], chain, foreign };
    """)
    assert found["foreign"] == []
    assert {"pyth", "indicators", "console"} <= set(found["names"])
    strangers = {name for name in found["chain"] if name.islower() and name not in _LOWER and not name.startswith("_")}
    assert strangers == set()


_LOWER = {
    "undefined", "globalThis", "eval", "escape", "unescape", "console", "pyth", "indicators", "constructor",
}  # fmt: skip


async def test_call_sites_show_neither_functions_nor_paths(run):
    found = await run.value("""
        Error.prepareStackTrace = (e, sites) => sites.map((s) =>
            [typeof s.getFunction(), typeof s.getThis(), String(s.getFileName()), String(s.getEvalOrigin())]);
        const here = new Error('x').stack;
        let there;
        try { indicators.sma(1, 2) } catch (e) { there = e.stack }
        return [...here, ...there];
    """)
    assert {(function, this) for function, this, *_ in found} == {("undefined", "undefined")}
    assert {file for _, _, file, _ in found} <= {"user.ts", "realm"}


async def test_no_stack_says_where_we_live(run):
    told = await run.value("""
        const all = [];
        try { null.x } catch (e) { all.push(e.stack) }
        try { await pyth.getSymbols(1, 2, 3) } catch (e) { all.push(e.stack) }
        try { JSON.parse('{') } catch (e) { all.push(e.stack) }
        const f = () => f();
        try { f() } catch (e) { all.push(e.stack) }
        return all.join('\\n');
    """)
    assert "/" not in told.replace("http://", "")


async def test_errors_of_a_full_stack_belong_to_the_code(run):
    """What overflows inside of our own functions must not throw an error of the other realm."""
    assert (
        await run.value("""
        let strange = 0;
        const deep = (n) => {
            try { deep(n + 1) } catch (e) {
                if (!(e instanceof RangeError)) strange += 1;
                for (const act of [() => console.log('x'), () => pyth.getSymbols(), () => indicators.sma([1, 2], 1)]) {
                    try { const p = act(); p?.catch?.((e) => { if (!(e instanceof Error)) strange += 1 }) }
                    catch (e) { if (!(e instanceof RangeError)) strange += 1 }
                }
                if (n % 50) throw e;
            }
        };
        try { deep(0) } catch {}
        return strange;
    """)
        == 0
    )
