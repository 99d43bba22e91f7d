"""A small server on stdio, run as a program by the tests; an argument may be JSON keywords for `serve_stdio`."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quantdeck.transports.sdk_import import lean

lean(http=False)  # as the real program does; it starts in a quarter of the time

import mcp_types as t  # noqa: E402
import orjson  # noqa: E402
from mcp.server.lowlevel import Server  # noqa: E402
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler  # noqa: E402
from mcp.shared.exceptions import MCPError  # noqa: E402

from quantdeck.transports.stdio import serve_stdio  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext

    Context = ServerRequestContext[Any, Any]

ROWS = [{"at": f"2026-01-01T{i % 24:02}:00:00Z", "open": 1.5 * i, "close": 1.25 * i} for i in range(850)]


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # noqa: T201 - the tests wait for these


async def noop(_ctx: Context, _arguments: Mapping[str, Any]) -> object:
    return {"ok": True}


async def sleep(ctx: Context, arguments: Mapping[str, Any]) -> object:
    """Says that it has begun, for those who gave a progress token, so that a test need not guess."""
    await ctx.session.report_progress(0, 1, "begun")
    try:
        await asyncio.sleep(arguments["seconds"])
    except asyncio.CancelledError:
        say("sleep was cancelled")
        raise
    return {"slept": arguments["seconds"]}


async def big(_ctx: Context, _arguments: Mapping[str, Any]) -> object:
    return {"rows": orjson.Fragment(orjson.dumps(ROWS))}


async def shout(_ctx: Context, _arguments: Mapping[str, Any]) -> object:
    print("garbage", flush=True)  # noqa: T201 - the point of it
    os.write(1, b"more garbage\n")
    return {"shouted": True}


async def spawn(_ctx: Context, _arguments: Mapping[str, Any]) -> object:
    child = await asyncio.to_thread(subprocess.run, ["/bin/sh", "-c", "echo garbage; cat"], check=False)
    return {"code": child.returncode}


async def progress(ctx: Context, _arguments: Mapping[str, Any]) -> object:
    for step in range(3):
        await ctx.session.report_progress(step, 3)
    return {"steps": 3}


async def ask(ctx: Context, _arguments: Mapping[str, Any]) -> object:
    """Ask the client for confirmation; its answer, or the error that came instead, is the result."""
    form: dict[str, Any] = {"type": "object", "properties": {}}
    try:
        answer = await ctx.session.elicit_form("Sure?", form, related_request_id=ctx.request_id)
    except MCPError as e:
        return {"error": e.error.message}
    return {"action": answer.action}


async def unwritable(_ctx: Context, arguments: Mapping[str, Any]) -> object:
    return {"huge": 2**70} if arguments.get("huge") else {"half": "\ud800"}


TOOLS = {f.__name__: f for f in (noop, sleep, big, shout, spawn, progress, ask, unwritable)}
listening = ListenHandler(InMemorySubscriptionBus())


async def answer_calls(ctx: Context, call_next: CallNext) -> HandlerResult:
    """Answer tools/call with a finished dict, as the project's own fast path does."""
    if ctx.method != "tools/call" or ctx.request_id is None:
        return await call_next(ctx)
    params = ctx.params or {}
    data = await TOOLS[params["name"]](ctx, params.get("arguments") or {})
    return {"content": [], "structuredContent": data, "resultType": "complete"}


async def list_tools(_ctx: Context, _params: t.PaginatedRequestParams | None) -> t.ListToolsResult:
    return t.ListToolsResult(tools=[t.Tool(name=name, input_schema={"type": "object"}) for name in TOOLS])


async def call_tool(_ctx: Context, _params: t.CallToolRequestParams) -> t.CallToolResult:
    """Only here for the capability; `answer_calls` comes first."""
    raise NotImplementedError


def closing() -> None:
    say("closing")
    listening.close()


def peak_bytes() -> int:
    """What this program needed at most. Not from getrusage or wait4: those also count who started it."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def main() -> None:
    server = Server[Any](
        "fixture",
        version="1",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_subscriptions_listen=listening,
    )
    server.middleware.insert(0, answer_calls)
    keywords = orjson.loads(sys.argv[1]) if len(sys.argv) > 1 else {}
    asyncio.run(serve_stdio(server, on_closing=closing, **keywords))
    if peak_file := os.environ.get("STDIO_FIXTURE_PEAK"):
        Path(peak_file).write_text(str(peak_bytes()))


if __name__ == "__main__":
    main()
