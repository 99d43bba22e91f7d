"""Servers of ours by name over stdio, as `quantdeck serve` has them, with a tool that does nothing beside them."""

from __future__ import annotations

import asyncio
import sys

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


def nothing() -> Server:
    """What everything else is held against: the whole pipeline around nothing."""
    typed_tools.noop.__doc__ = "Do nothing."
    tool = read(typed_tools.noop, dialect=tradestream, policy=Policy(), name="noop")
    return Server(name="nothing", purpose="what the others are held against", tools=(tool,))


def main() -> None:
    configure(LineWriter(2))
    asyncio.run(serve_app(Settings.read(), (nothing(), *map(load, sys.argv[1:]))))


if __name__ == "__main__":
    main()
