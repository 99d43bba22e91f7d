"""A job as one message is the same job when it is read."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest
from google.protobuf.message import DecodeError
from hypothesis import given, settings
from hypothesis import strategies as st

from quantdeck.backtesting.engine import Costs, Terms
from quantdeck.backtesting.messages import Unfit
from quantdeck.backtesting.messages.jobs import MARKETS, as_request
from quantdeck.backtesting.protocol.backtesting_pb2 import BacktestRequest
from quantdeck.backtesting.service.asked import backtest
from quantdeck.domain.candles import EARLIEST_S, LARGEST, LATEST_S, Bars
from tests.support.backtester import minutes, written
from tests.support.bars import rows

PRICE = st.floats(5e-324, LARGEST)
SHARE = st.floats(0, 0.99)
TERMS = st.builds(
    Terms,
    market=st.sampled_from(list(MARKETS.values())),
    cash=st.floats(1e-3, 1e12),
    costs=st.builds(Costs, fee=SHARE, slippage=SHARE),
    risk_free=st.floats(-0.9, 10),
)


@st.composite
def series(draw):
    """Regular or not, of any time that there is."""
    many = draw(st.integers(1, 40))
    steps = (
        [draw(st.integers(1, 10**6))] * many
        if draw(st.booleans())
        else draw(st.lists(st.integers(1, 10**9), min_size=many, max_size=many))
    )
    first = draw(st.integers(EARLIEST_S, LATEST_S - sum(steps)))
    columns = [draw(st.lists(PRICE, min_size=many, max_size=many)) for _ in range(4)]
    volume = draw(st.lists(st.floats(-LARGEST, LARGEST), min_size=many, max_size=many))
    return Bars.of(np.cumsum([first, *steps[1:]]), *columns, volume)


def read(data: bytes):
    return backtest(BacktestRequest.FromString(data), {})


@settings(max_examples=60)
@given(bars=series(), terms=TERMS, period=st.integers(1, 100_000), oversold=st.floats(-1e9, 1e9))
def test_nothing_is_lost_on_the_way(bars, terms, period, oversold):
    spec, numbers = written(), {"period": period, "oversold": oversold}
    found = read(as_request(spec, numbers, "BTC/USD", bars, terms))
    assert found.spec == spec.instantiate(numbers)
    assert rows(found.bars) == rows(bars)
    assert found.terms == terms
    assert found.terms.market is terms.market


@settings(max_examples=60)
@given(place=st.integers(0, 10**6), value=st.integers(0, 255), cut=st.booleans())
def test_whatever_is_done_to_a_message_it_is_read_or_refused(place, value, cut):
    data = bytearray(as_request(written(), {}, "BTC/USD", minutes(20), Terms()))
    place %= len(data)
    data[place] = value
    with suppress(Unfit, DecodeError):
        assert 0 < len(read(bytes(data[:place] if cut else data)).bars) <= 20


def columns(**changed):
    request = BacktestRequest.FromString(as_request(written(), {}, "BTC/USD", minutes(20), Terms()))
    for name, value in changed.items():
        setattr(request.job.bars, name, value)
    return request


@pytest.mark.parametrize(
    "request_, said",
    [
        (columns(high=b""), "not of one length"),
        (columns(high=b"1234567"), "not of one length"),
        (columns(step_s=0), "at no times that there are"),
        (columns(step_s=2**62), "at no times that there are"),
        (columns(first_s=2**62), "at no times that there are"),
        (columns(first_s=LATEST_S - 5), "opens in no year"),
        (columns(close=np.full(20, np.nan).tobytes()), "candle 1 has something that is not a finite number"),
        (columns(**dict.fromkeys(("open", "high", "low", "close", "volume"), b"")), "there are no candles"),
    ],
)
def test_columns_that_are_none_are_refused(request_, said):
    with pytest.raises(Unfit, match=said):
        backtest(request_, {})


def test_a_job_tells_everything_that_is_wrong_with_it():
    request = columns(open=np.zeros(20).tobytes())
    request.job.spec = b'{"indicators": [{"id": "a", "type": "NOPE"}], "more": 1}'
    request.job.terms.fee = 2.0
    with pytest.raises(Unfit) as told:
        backtest(request, {})
    for said in ("unknown parts: more", "indicators", "entry_conditions", "fee and slippage", "candle 1 has a price"):
        assert said in str(told.value)
    request.job.spec, request.job.parameters, request.job.terms.market = b"[]", b"1", "moon"
    with pytest.raises(Unfit) as told:
        backtest(request, {})
    for said in ("the spec of the job are no JSON object", "there is no market 'moon'; there are crypto"):
        assert said in str(told.value)
