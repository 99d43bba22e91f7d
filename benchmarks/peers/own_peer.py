"""Servers of ours by name over stdio, as `quantdeck serve` has them, with a tool that does nothing beside them."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from quantdeck.transports.sdk_import import lean

lean(http=False)

from benchmarks.peers import typed_tools  # noqa: E402
from quantdeck.core.contract import Policy  # noqa: E402
from quantdeck.core.server import Server  # noqa: E402
from quantdeck.dialects.declaring import read  # noqa: E402
from quantdeck.dialects.tradestream import tradestream  # noqa: E402
from quantdeck.observability.logs import LineWriter, configure  # noqa: E402
from quantdeck.servers import load  # noqa: E402
from quantdeck.settings import Settings  # noqa: E402
from quantdeck.transports.process import serve_app  # noqa: E402

BARS = [
    {"timestamp": f"2026-05-28T{n // 60:02}:{n % 60:02}:00Z", "open": 66004.63 + n, "high": 66043.87 + n,
     "low": 65837.09 + n, "close": 65868.13 + n, "volume": 783.267111 + n}
    for n in range(100)
]  # fmt: skip
"""A page of a hundred bars, ready."""


async def page(symbol: typed_tools.Symbol) -> dict[str, Any]:
    """Answer a page that is ready."""
    return {"symbol": symbol, "items": BARS}


def nothing() -> Server:
    """What everything else is held against: the whole pipeline around nothing."""
    typed_tools.noop.__doc__ = "Do nothing."
    tools = tuple(
        read(tool, dialect=tradestream, policy=Policy(), name=tool.__name__) for tool in (typed_tools.noop, page)
    )
    return Server(name="nothing", purpose="what the others are held against", tools=tools)


def main() -> None:
    configure(LineWriter(2))
    asyncio.run(serve_app(Settings.read(), (nothing(), *map(load, sys.argv[1:]))))


if __name__ == "__main__":
    main()
