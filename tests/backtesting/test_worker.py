"""What a process of its own hears and says."""

from __future__ import annotations

import pickle
from io import BytesIO
from typing import Any

from quantdeck.backtesting.engine import Terms, run
from quantdeck.backtesting.worker import Work, frames
from tests.backtesting.made import of_closes, runnable


def said(data: bytes) -> list[Any]:
    out = BytesIO()
    frames(BytesIO(data), out)
    told, rest = [], out.getvalue()
    while rest:
        size = int.from_bytes(rest[:4], "big")
        told.append(pickle.loads(rest[4 : 4 + size]))  # noqa: S301 - our own
        rest = rest[4 + size :]
    return told


def test_it_tells_how_far_it_is_and_what_it_comes_to():
    bars = of_closes([9.0, 10.0, 11.0, 12.0])
    found = said(pickle.dumps(Work(runnable(), bars, Terms())))
    assert found == [("done", 0.5), ("told", run(runnable(), bars).metrics)]


def test_whatever_goes_wrong_is_told_and_no_more_than_its_kind():
    assert said(b"no job") == [("failed", "UnpicklingError")]
    assert said(pickle.dumps({"a": "job"})) == [("failed", "AttributeError")]
