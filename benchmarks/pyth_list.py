"""`python -m benchmarks.pyth_list TIMES`: how long the list of 3,500 feeds takes to read, and how much memory."""

from __future__ import annotations

import json
import sys
import tracemalloc
from statistics import median
from time import perf_counter

import orjson

from benchmarks.peers.pyth_services import MANY
from quantdeck.connections.pyth import _large
from quantdeck.sources.pyth.http import _read_catalog


def main() -> None:
    body, took = orjson.dumps(MANY), []
    for _ in range(int(sys.argv[1])):
        begun = perf_counter()
        catalog, _ = _read_catalog(_large(body))
        took.append((perf_counter() - begun) * 1e3)
    tracemalloc.start()
    _read_catalog(_large(body))
    _, peak = tracemalloc.get_traced_memory()
    told = {"feeds": len(catalog.by_id), "bytes": len(body), "ms": median(took), "mb": peak / 1e6}
    print(json.dumps(told))


if __name__ == "__main__":
    main()
