"""Which of the home's two stores an answer is of, where no setting names one."""

from __future__ import annotations

from quantdeck.connections.databases import Databases
from quantdeck.domain.timeframes import MINUTE
from quantdeck.sources.candles import Candles, parquet
from tests.support.bars import at, every, walk

BARS = walk(every(60, at("2026-01-15T12:00"), 120))


async def test_what_was_collected_and_what_was_imported_is_answered_each_by_its_name(serve):
    """Also where it comes while the server runs: `quantdeck collect alpaca` is another process."""
    served = await serve("market-data-mcp", clock="2026-01-17T00:00:00Z")
    settings = served.app.settings
    files = parquet.connect("parquet:", settings, Databases(settings))
    for symbol, store, source in (("TSLA", files, "parquet"), ("AAPL", served.app.runtime.source(Candles), "sqlite")):
        await store.write(symbol, MINUTE, BARS)
        told = (await served.client.call_tool("get_candles", {"symbol": symbol})).structured_content
        assert (told["_metadata"]["source"], len(told["data"]["items"])) == (source, 2)
    await files.close()
