"""An InfluxDB of your own, version 1, 2 or 3: bars are written to a measurement of this run's own, read, and forgotten.

The settings are the program's: INFLUXDB_URL, INFLUXDB_TOKEN, INFLUXDB_ORG, INFLUXDB_BUCKET, QUANTDECK_INFLUXDB__….
"""

from __future__ import annotations

import os
import warnings
from uuid import uuid4

import numpy as np
import pytest

from quantdeck.connections.databases import Databases
from quantdeck.core.clock import Clock
from quantdeck.core.errors import SourceError
from quantdeck.domain.candles import resampled
from quantdeck.domain.timeframes import DAY, MINUTE, TIMEFRAMES
from quantdeck.settings import Settings
from quantdeck.sources.candles import influxdb
from tests.support.bars import at, every, walk

NEEDS = ("INFLUXDB_URL",)
SYMBOL = "BTC/USD"
BEGIN_S = at("2026-01-15T00:00")
LATER = Clock.parse("2026-02-01T00:00:00Z").now()


class LeftBehind(UserWarning):
    """A measurement of this run that could not be removed."""


pytestmark = pytest.mark.filterwarnings("always::tests.live.test_influxdb.LeftBehind")


@pytest.fixture
async def candles(tmp_path):
    said = {name: value for name, value in os.environ.items() if name.startswith(("INFLUXDB_", "QUANTDECK_INFLUXDB__"))}
    own = {"QUANTDECK_HOME": str(tmp_path), "QUANTDECK_INFLUXDB__MEASUREMENT": f"quantdeck_test_{uuid4().hex[:8]}",
           "QUANTDECK_CLOCK": "2026-02-01T00:00:00Z", "QUANTDECK_INFLUXDB__LOOKBACK_DAYS": "1000"}  # fmt: skip
    settings = Settings.read({**said, **own})
    opened = influxdb.connect("influxdb:", settings, Databases(settings))
    try:
        yield opened
        try:
            await opened.forget(SYMBOL)
        except SourceError as error:  # a token may write and not delete, and version 3 deletes in another way
            warnings.warn(f"{own['QUANTDECK_INFLUXDB__MEASUREMENT']} is left behind: {error}", LeftBehind, stacklevel=1)
    finally:
        await opened.close()


@pytest.mark.parametrize("timeframe", [MINUTE, TIMEFRAMES["1h"], DAY], ids=str)
async def test_what_is_written_is_read_and_made_coarser(candles, timeframe):
    bars = walk(every(60, BEGIN_S, 3000))
    await candles.ping()
    assert await candles.write(SYMBOL, MINUTE, bars) == 3000
    expected = resampled(bars, timeframe)
    found = await candles.newest(SYMBOL, timeframe, len(expected), as_of=LATER)
    assert found.time.tolist() == expected.time.tolist()
    for name in ("open", "high", "low", "close", "volume"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-9)
    assert await candles.symbols(as_of=LATER) == [SYMBOL]


async def test_nothing_is_told_before_it_was_known(candles):
    await candles.write(SYMBOL, MINUTE, walk(every(60, BEGIN_S, 200)))
    early = Clock.parse("2026-01-15T01:00:30Z").now()
    found = await candles.newest(SYMBOL, MINUTE, 500, as_of=early)
    assert int(found.time[-1]) == BEGIN_S + 59 * 60
