"""quantdeck, with its whole pipeline and its log, serving the workload as tools of its own."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from pathlib import Path

from quantdeck.transports.sdk_import import lean

lean(http=sys.argv[1] == "http")  # as `quantdeck serve` does, before anything else imports the SDK

from benchmarks.peers import typed_tools, workload  # noqa: E402
from quantdeck.core.contract import Contract, Policy  # noqa: E402
from quantdeck.core.server import Server  # noqa: E402
from quantdeck.dialects.chart import chart  # noqa: E402
from quantdeck.dialects.declaring import read  # noqa: E402
from quantdeck.observability.logs import LineWriter, configure  # noqa: E402
from quantdeck.settings import Http, Settings  # noqa: E402


def build(tools: int) -> Server:
    offered = [
        _tool(typed_tools.noop, "noop", "Do nothing."),
        _tool(typed_tools.rows, "rows", "Bars of one instrument."),
        *(_tool(typed_tools.summary, name, workload.describe_filler(name)) for name in workload.filler_names(tools)),
    ]
    return Server(name="bench", purpose="what the benchmark asks", tools=tuple(offered))


def _tool(handler: object, name: str, description: str) -> Contract:
    handler.__doc__ = description  # type: ignore[attr-defined]
    return read(handler, dialect=chart, policy=Policy(), name=name)  # type: ignore[arg-type]


async def serve(transport: str, server: Server) -> None:
    settings = Settings(home=Path(tempfile.gettempdir()) / "quantdeck-bench-nothing", http=Http(port=0))
    if transport == "stdio":
        from quantdeck.transports.process import serve_app

        await serve_app(settings, (server,))
        return
    from quantdeck.transports.http import serve_http

    await serve_http(settings, (server,))


def main() -> None:
    if sys.argv[1] == "stdio":
        configure(LineWriter(2))
    else:
        _announce_on_stdout()
    asyncio.run(serve(sys.argv[1], build(int(sys.argv[2]))))


def _announce_on_stdout() -> None:
    """The benchmark reads the address from stdout; `serve_http` prints it, in a sentence, on stderr."""
    reader, writer = os.pipe()
    stderr = os.dup(2)
    os.dup2(writer, 2)
    os.close(writer)
    if os.fork():  # the parent serves
        os.close(reader)
        configure(LineWriter(os.open(os.devnull, os.O_WRONLY)))
        return
    os.dup2(stderr, 2)  # or the end of what the parent says would never come
    with os.fdopen(reader) as said:
        for line in said:
            if "http://" in line:
                print("http://" + line.strip().split("http://")[1], flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
