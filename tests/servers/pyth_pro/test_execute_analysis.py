"""execute_analysis, through a client, over a stub of Pyth's services."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import orjson
import pytest

from quantdeck import listing
from quantdeck.domain import indicators
from quantdeck.servers import load
from quantdeck.settings import Pyth as Group
from tests.servers.pyth_pro.conftest import THEN_S
from tests.support.over_http import body_of, served
from tests.support.pyth_stub import KEY, PythStub

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="full isolation is Linux's"),
    pytest.mark.skipif("execute_analysis" not in {one.name for one in load("pyth-pro").tools}, reason="no engines"),
]

NO_LANDLOCK = Path(__file__).parents[2] / "support" / "no_landlock.py"
SEED = Path(__file__).parents[3] / "docs" / "spec" / "pyth.json"


@pytest.fixture
def era() -> str:
    return "auto"


def candles(symbol: str, begin_s: int, end_s: int, resolution: str) -> dict[str, object]:
    """A day each, rising from 100, or from 50 for anything but BTC."""
    times = list(range(begin_s - begin_s % 86_400 + 86_400, end_s + 1, 86_400))
    start = 100.0 if "BTC" in symbol else 50.0
    closes = [start + place * 1.5 + (place % 5) for place in range(len(times))]
    return {"s": "ok", "t": times, "o": closes, "h": closes, "l": closes, "c": closes, "v": [1.0] * len(times)}


EXAMPLE = """
const now = Math.floor(Date.now() / 1000);
const thirtyDaysAgo = now - 30 * 24 * 60 * 60;

const [btc, eth] = await Promise.all([
  pyth.getCandlestickData("BTC/USD", "D", thirtyDaysAgo, now),
  pyth.getCandlestickData("ETH/USD", "D", thirtyDaysAgo, now),
]);

const btcMA = indicators.sma(btc.c, 20);
const ethMA = indicators.sma(eth.c, 20);
const btcBB = indicators.bollingerBands(btc.c, 20, 2);

return {
  btc: { currentPrice: btc.c.at(-1), sma20: btcMA.at(-1), bollingerUpper: btcBB.upper.at(-1), bollingerLower: btcBB.lower.at(-1) },
  eth: { currentPrice: eth.c.at(-1), sma20: ethMA.at(-1) },
};
"""  # noqa: E501 - word for word as the spec has it


@pytest.mark.parametrize("era", ["legacy", "auto"])
async def test_the_specs_example_runs_as_it_is(pyth, era):
    server = await pyth(stub=PythStub(candles=candles))
    body = await server("execute_analysis", code=EXAMPLE)
    closes = candles("BTC", 0, 30 * 86_400, "D")["c"]
    count = len(closes)  # type: ignore[arg-type]
    bands = indicators.bollinger(closes, 20, 2)  # type: ignore[arg-type]
    assert body["result"]["btc"] == {
        "currentPrice": pytest.approx(closes[-1]),  # type: ignore[index]
        "sma20": pytest.approx(float(bands.middle[-1]), rel=1e-9),
        "bollingerUpper": pytest.approx(float(bands.upper[-1]), rel=1e-9),
        "bollingerLower": pytest.approx(float(bands.lower[-1]), rel=1e-9),
    }
    assert set(body["result"]["eth"]) == {"currentPrice", "sma20"}
    assert count == 30
    assert (body["isolation"], body["language"], body["api_calls"]) == ("landlock+seccomp", "typescript", 2)
    assert "notes" not in body


async def test_bindings_answer_what_the_specs_interface_says(pyth):
    server = await pyth(stub=PythStub(candles=candles))
    code = f"""
        const symbols = await pyth.getSymbols("BTC");
        const crypto = await pyth.getSymbols(undefined, "crypto");
        const day = await pyth.getCandlestickData("BTC/USD", "D", {THEN_S - 864_000}, {THEN_S});
        const then = await pyth.getHistoricalPrice([1, 2], {THEN_S});
        const latest = await pyth.getLatestPrice(["BTC/USD"], ["price"]);
        return {{ symbols, crypto: crypto.length, day, then, latest }};
    """
    told = (await server("execute_analysis", code=code))["result"]
    assert told["symbols"][0]["symbol"] == "Crypto.BTC/USD"
    assert told["crypto"] == (await server("get_symbols", asset_type="crypto", limit=200))["total_available"]
    assert told["day"].keys() >= {"s", "t", "o", "h", "l", "c", "v"}
    assert [row["price_feed_id"] for row in told["then"]] == [1, 2]
    assert told["then"] == (await server("get_historical_price", ids=[1, 2], timestamp=THEN_S))["prices"]
    assert [row["symbol"] for row in told["latest"]["priceFeeds"]] == ["Crypto.BTC/USD"]
    assert "timestampUs" in told["latest"]


async def test_all_symbols_are_told_however_many_pages_that_takes(pyth):
    feeds = [{**PythStub().feeds[0], "pyth_lazer_id": n, "symbol": f"Crypto.A{n}/USD"} for n in range(1, 451)]
    server = await pyth(stub=PythStub(feeds=feeds))
    body = await server("execute_analysis", code="return (await pyth.getSymbols()).length")
    assert (body["result"], body["api_calls"]) == (450, 1)


async def test_in_python_the_same_with_underscores(pyth):
    server = await pyth(stub=PythStub(candles=candles))
    code = f"""
        import asyncio
        day, then, latest = await asyncio.gather(
            pyth.get_candlestick_data("BTC/USD", "D", {THEN_S - 30 * 86_400}, {THEN_S}),
            pyth.get_historical_price([1], {THEN_S}),
            pyth.get_latest_price(["BTC/USD"]),
        )
        print(len(day["c"]))
        return {{"sma": indicators.sma(day["c"], 20)[-1], "id": then[0]["price_feed_id"],
                "price": latest["priceFeeds"][0]["display_price"]}}
    """
    body = await server("execute_analysis", code=dedent(code), language="python")
    closes = candles("BTC", THEN_S - 30 * 86_400, THEN_S, "D")["c"]
    assert body["result"]["sma"] == pytest.approx(float(indicators.sma(closes, 20)[-1]), rel=1e-9)  # type: ignore[arg-type]
    assert body["result"]["id"] == 1
    assert body["console"] == ["30"]


async def test_a_failure_is_told_with_its_place_an_excerpt_and_a_hint(pyth):
    server = await pyth()
    types = "const a: number = 1;\ninterface B { c: { d: number } }\nconst b = {} as B;"
    code = f"{types}\nconsole.log('here');\nreturn b.c.d + a;"
    kind, sentence = await server.refused("execute_analysis", code=code)
    assert kind == "sandbox_runtime"
    assert sentence == dedent("""\
        TypeError: Cannot read properties of undefined (reading 'd') (line 5, column 12)

             4 | console.log('here');
        >    5 | return b.c.d + a;
               |            ^

        Hint: Is an `await` missing, or a list empty?

        Console:
        here""")
    result = await server.client.call_tool("execute_analysis", {"code": code})
    told = result.meta["quantdeck/error"]
    assert (told["name"], told["line"], told["column"], told["console"]) == ("TypeError", 5, 12, ["here"])
    assert told["sandbox_error_type"] == "runtime"
    assert told["excerpt"] in sentence


@pytest.mark.parametrize(
    "code, kind",
    [
        ("for (;;) {}", "sandbox_timeout"),
        ("const a = []; for (;;) a.push(new Uint8Array(8 << 20).fill(1))", "sandbox_memory"),
        ("let b: = 3", "sandbox_syntax"),
        ("throw new Error('x')", "sandbox_runtime"),
        ("return fetch('https://example.com')", "sandbox_security"),
    ],
)
async def test_each_kind_of_failure_has_its_code_and_stands_in_the_log(pyth, code, kind):
    server = await pyth()
    assert (await server.refused("execute_analysis", code=code, timeout_ms=1000))[0] == kind
    (event,) = server.events
    assert event["sandbox_error_type"] == kind.removeprefix("sandbox_")
    assert event["status"] == "error"
    assert event["error_code"] == kind


async def test_the_log_has_the_specs_five_fields_and_they_are_true(pyth):
    server = await pyth(stub=PythStub(candles=candles))
    code = """
        const held = new Uint8Array(50e6).fill(1);
        await pyth.getCandlestickData("BTC/USD", "D", 1750000000, 1750086400);
        await pyth.getLatestPrice(["ETH/USD"]);
        try { await pyth.getLatestPrice(["NONE/SUCH"]) } catch {}
        return held.length;
    """
    await server("execute_analysis", code=code)
    (event,) = server.events  # the calls of the code are no events of their own
    assert event["code_length"] == len(code)
    assert 45 < event["sandbox_memory_mb"] < 90
    assert event["sandbox_memory_exact"] is True
    assert 0 < event["sandbox_duration_ms"] <= event["latency_ms"]
    assert event["api_calls_from_sandbox"] == 3
    assert event["sandbox_calls"] == {"ok": 2, "failed": 1, "refused": 0}
    assert "sandbox_error_type" not in event
    assert event["symbols_queried"] == ["BTC/USD", "ETH/USD", "NONE/SUCH"]
    assert event["api_latency_ms"] > 0
    assert event["tool_name"] == "execute_analysis"


async def test_the_token_is_never_in_the_code_the_answer_or_the_log(pyth):
    server = await pyth(token=KEY)
    code = """
        const all = [];
        const walk = (value, depth) => {
            all.push(String(value));
            if (depth && value && (typeof value === 'object' || typeof value === 'function')) {
                for (const key of Reflect.ownKeys(value)) { try { walk(value[key], depth - 1) } catch {} }
            }
        };
        walk(globalThis, 3);
        walk(await pyth.getLatestPrice(["BTC/USD"]), 4);
        try { await pyth.getLatestPrice(["NONE"]) } catch (e) { walk(e, 3); all.push(e.stack) }
        console.log(all.length > 50);
        return all.join(' ').slice(0, 200000);
    """
    body = await server("execute_analysis", code=code)
    assert body["console"] == ["true"]
    assert KEY not in json.dumps(body)
    assert KEY not in json.dumps(server.events)
    assert server.stub.last("/latest_price").headers["authorization"] == f"Bearer {KEY}"  # it was used all the same


async def test_without_a_token_latest_prices_are_an_error_of_the_specs_and_history_works(pyth):
    server = await pyth(token="", stub=PythStub(candles=candles))
    code = """
        const day = await pyth.getCandlestickData("BTC/USD", "D", 1749000000, 1750000000);
        try { await pyth.getLatestPrice(["BTC/USD"]) } catch (e) { return [day.s, e.code, e.message] }
    """
    status, kind, sentence = (await server("execute_analysis", code=code))["result"]
    assert (status, kind) == ("ok", "auth")
    assert sentence.startswith("This tool requires a Pyth Pro access token.")


@pytest.mark.parametrize(
    "call",
    [
        "getHistoricalPrice([1], -5)",
        "getHistoricalPrice([1], NaN)",
        "getHistoricalPrice([-1], 1750000000)",
        "getHistoricalPrice('1', 1750000000)",
        "getCandlestickData('BTC/USD', 'D', 5, 1)",
        "getCandlestickData('BTC/USD', '7', 1, 5)",
        "getCandlestickData('../../v1/latest_price', 'D', 1, 5)",
        "getCandlestickData('https://example.com/x?y=#z', 'D', 1, 5)",
        "getLatestPrice(['BTC/USD'], ['evm'])",
        "getLatestPrice([])",
        "getLatestPrice({ __proto__: null })",
        "getSymbols(7)",
    ],
)
async def test_what_the_tools_refuse_is_refused_to_code_as_well(pyth, call):
    server = await pyth()
    code = f"try {{ await pyth.{call} }} catch (e) {{ return e.code }} return 'answered'"
    assert (await server("execute_analysis", code=code))["result"] in ("invalid_input", "not_found")
    assert not [path for path in server.stub.asked if "example.com" in path or ".." in path]


@pytest.mark.parametrize("timeout_ms", [999, 30_001, "abc", 1.5, -1])
async def test_a_timeout_outside_the_schema_is_refused(pyth, timeout_ms):
    server = await pyth()
    with pytest.raises(Exception, match="timeout_ms"):
        await server.client.call_tool("execute_analysis", {"code": "return 1", "timeout_ms": timeout_ms})


async def test_code_that_is_too_long_or_none_is_refused_with_a_sentence(pyth):
    server = await pyth()
    for code in ("", "/*" + "x" * 65_536 + "*/", "/*" + "x" * 5_000_000 + "*/"):
        kind, sentence = await server.refused("execute_analysis", code=code)
        assert kind == "invalid_input"
        assert "65536 characters" in sentence


async def test_a_language_that_is_none_is_refused(pyth):
    server = await pyth()
    with pytest.raises(Exception, match="language"):
        await server.client.call_tool("execute_analysis", {"code": "return 1", "language": "ruby"})


async def test_an_answer_names_the_source_of_its_data(pyth):
    server = await pyth()
    result = await server.client.call_tool("execute_analysis", {"code": "return 1"})
    assert result.meta["quantdeck/source"] == "pyth"


async def test_who_returns_nothing_is_told(pyth):
    server = await pyth()
    body = await server("execute_analysis", code="1 + 1")
    assert body["result"] is None
    assert body["notes"] == ["Nothing was returned: end the code with `return` and a value"]


async def test_what_the_services_said_is_not_in_an_error_of_the_code(pyth):
    stub = PythStub(candles=candles)
    server = await pyth(stub=stub)
    await server("get_symbols", query="BTC")
    stub.failing += [(500, b"a stack trace of the vendor at https://internal/secret")] * 4
    code = (
        """try { await pyth.getLatestPrice(["BTC/USD"]) } catch (e) { return [e.name, e.code, e.message, e.stack] }"""
    )
    name, kind, *told = (await server("execute_analysis", code=code))["result"]
    assert (name, kind) == ("PythError", "upstream")
    assert "stack trace" not in "".join(told)
    assert "internal/secret" not in "".join(told)


async def test_a_caller_who_gives_up_ends_the_engine(pyth):
    stalled = asyncio.Event()
    stub = PythStub(stalled=stalled)
    server = await pyth(stub=stub)
    from quantdeck.sources.sandbox import Sandbox

    sandbox = server.app.runtime.source(Sandbox)
    call = asyncio.create_task(
        server.client.call_tool("execute_analysis", {"code": "await pyth.getSymbols(); return 1"})
    )
    await stub.arrived.wait()
    assert len(sandbox.running) == 1
    call.cancel()
    await asyncio.gather(call, return_exceptions=True)
    async with asyncio.timeout(10):
        while sandbox.running:  # noqa: ASYNC110 - the server hears of it by a message
            await asyncio.sleep(0.01)
    stalled.set()


async def test_where_the_clock_stands_the_code_stands_there_and_knows_nothing_later(pyth):
    server = await pyth(clock="2025-06-15T15:06:40Z", stub=PythStub(candles=candles))
    code = """
        const now = Math.floor(Date.now() / 1000);
        const told = await pyth.getCandlestickData("BTC/USD", "D", now - 864000, now);
        let later;
        try { await pyth.getCandlestickData("BTC/USD", "D", now, now + 86400 * 10) } catch (e) { later = e.code }
        return { now, last: told.t.at(-1) + 86400 <= now, later };
    """
    assert (await server("execute_analysis", code=code))["result"] == {
        "now": 1_750_000_000, "last": True, "later": "invalid_input",
    }  # fmt: skip


def group(stub):
    given: dict[str, object] = {"router_url": stub.url, "history_url": stub.url, "access_token": KEY}
    return Group.model_validate(given)


def made(_):
    return (load("pyth-pro"),)


async def test_over_http_it_runs_in_full_isolation(tmp_path):
    async with (
        PythStub().serving() as stub,
        served(tmp_path, make=made, stateless=True, pyth=group(stub)) as server,
    ):
        answer = body_of(await server.modern("execute_analysis", code="return (await pyth.getSymbols()).length"))
        assert answer["result"]["structuredContent"]["isolation"] == "landlock+seccomp"
        rest = await server.rest("execute_analysis", arguments={"code": "return 1 + 1"})
        assert rest.json()["result"] == 2
        failed = await server.rest("execute_analysis", arguments={"code": "throw new Error('x')"})
        assert failed.status_code == 422


HOSTED = """
import asyncio, json
from pathlib import Path
from quantdeck.app import open_app
from quantdeck.servers import load
from quantdeck.settings import Settings

async def main():
    async with open_app(Settings.read(), (load("pyth-pro"),)) as app:
        tool = app.tool("execute_analysis")
        for transport in ("http", "rest", "stdio"):
            answer = await app.call(tool, {"code": "return 1 + 1"}, transport=transport)
            print(json.dumps([answer.is_error, answer.code, json.loads(answer.encoded)]))

asyncio.run(main())
"""


def without_landlock(home, code, **said):
    """The lines that a program prints on a kernel that has no Landlock."""
    environment = {**os.environ, "QUANTDECK_HOME": str(home), **said}
    ran = subprocess.run(
        [sys.executable, str(NO_LANDLOCK), "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    return [json.loads(line) for line in ran.stdout.splitlines()]


def test_over_http_a_degraded_level_is_refused_and_over_stdio_named(tmp_path):
    *hosted, local = without_landlock(tmp_path, HOSTED, QUANTDECK_SANDBOX__ISOLATION="degraded")
    for is_error, code, body in hosted:
        assert (is_error, code) == (True, "sandbox_unavailable")
        assert "Full isolation cannot be had here: launcher: this kernel has no Landlock" in body["error"]["message"]
    assert local[2]["isolation"] == "permissions-only"
    assert local[2]["result"] == 2


def test_what_was_not_asked_for_is_no_degraded_level(tmp_path):
    for is_error, code, body in without_landlock(tmp_path, HOSTED):
        assert (is_error, code) == (True, "sandbox_unavailable")
        assert "QUANTDECK_SANDBOX__ISOLATION=degraded" in body["error"]["message"]


def test_what_the_spec_says_of_it_is_what_is_listed():
    tool = next(one for one in listing.tools([load("pyth-pro")]) if one["name"] == "execute_analysis")
    spec = next(one for one in orjson.loads(SEED.read_bytes())["tools"] if one["name"] == "execute_analysis")
    assert [code.removeprefix("sandbox_") for code in tool["errors"][:5]] == [
        "timeout",
        "memory",
        "syntax",
        "runtime",
        "security",
    ]
    assert {code.removeprefix("sandbox_") for code in tool["errors"][:5]} == set(spec["error_types"])
    for name in (*spec["bindings"]["pyth"], *spec["bindings"]["indicators"]):
        assert name in tool["description"]
    assert f"{spec['memory_limit_mb']} MB" in tool["description"]


def test_without_the_engines_the_tool_is_not_listed_and_doctor_says_how_to_get_it(tmp_path):
    """In a process that cannot import them."""
    program = """
import sys
from importlib.machinery import PathFinder

find = PathFinder.find_spec
PathFinder.find_spec = classmethod(lambda cls, name, *a: None if name in ("deno", "pydantic_monty") else find(name, *a))
from quantdeck.cli import main
sys.exit(main(sys.argv[1:]))
"""
    environment = {**os.environ, "QUANTDECK_HOME": str(tmp_path)}

    def said(*words: str) -> str:
        ran = subprocess.run(
            [sys.executable, "-c", program, *words], env=environment, capture_output=True, text=True, check=False
        )
        assert "Traceback" not in ran.stderr, ran.stderr
        return ran.stdout

    listed = [one["name"] for one in json.loads(said("tools", "--server", "pyth-pro", "--json"))]
    assert "get_symbols" in listed
    assert "execute_analysis" not in listed
    told = said("doctor")
    assert "not installed: sandbox (pip install 'quantdeck[sandbox]')" in told
    assert "execute_analysis" in told
