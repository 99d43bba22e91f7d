"""Pyth's two services, as the tests' stub has them, with a list of 3,500 feeds. Prints its address and serves."""

from __future__ import annotations

import asyncio
import sys

import orjson

from tests.support.http_stub import Answer, HttpStub, Request
from tests.support.pyth_stub import FEEDS, PythStub, feed

__all__ = ["MANY"]

_FIRST_ID, _COUNT = 10_001, 3500 - len(FEEDS)
_KINDS = ("crypto", "equity", "fx", "metal", "commodity", "rates", "funding-rate")
MANY = [
    *FEEDS,
    *(
        feed(number, f"Bench.X{number}/USD", f"FEED {number} / US DOLLAR", asset_type=_KINDS[number % len(_KINDS)],
             hermes_id=f"{number:064x}", notes="x" * 320)
        for number in range(_FIRST_ID, _FIRST_ID + _COUNT)
    ),
]  # fmt: skip
"""As many as there are, and as long."""


async def serve() -> None:
    stub = PythStub(feeds=MANY)
    listed = orjson.dumps(MANY)  # once: the stub would take as long as the reader

    async def answer(request: Request) -> Answer | None:
        if request.path == "/counts":
            counts = {"connections": stub.http.most_connected, "requests": len(stub.http.heard)}
            return 200, orjson.dumps(counts)
        if request.path == "/v1/symbols":
            return 200, listed
        return await stub.answer(request)

    stub.http = HttpStub(answer)
    async with stub.serving():
        print(stub.url, flush=True)
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(serve())
