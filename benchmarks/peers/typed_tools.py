"""The workload as typed functions, for the peers that derive their schemas from signatures."""

from typing import Annotated, Literal, cast

from pydantic import Field
from typing_extensions import TypedDict  # pydantic refuses typing's own before Python 3.12

from benchmarks.peers import workload

Symbol = Annotated[str, Field(description="Instrument, such as BTC/USD.")]
Limit = Annotated[int, Field(ge=1, le=1000, description="How many rows at most.")]


class Noop(TypedDict):
    ok: bool
    symbol: str


class Row(TypedDict):
    time: int
    open: float
    high: float
    low: float
    close: float
    volume: float
    trades: int
    venue: str


class Rows(TypedDict):
    symbol: str
    rows: list[Row]


class Summary(TypedDict):
    symbol: str
    count: int
    mean: float
    deviation: float


async def noop(symbol: Symbol, limit: Limit) -> Noop:
    return cast(Noop, workload.noop_answer(symbol))


async def rows(symbol: Symbol, limit: Limit) -> Rows:
    return cast(Rows, workload.rows_answer(symbol))


async def summary(
    symbol: Symbol,
    start: Annotated[str, Field(description="First moment, ISO 8601 with an offset.")],
    end: Annotated[str, Field(description="Moment after the last one, ISO 8601 with an offset.")],
    interval: Annotated[Literal["1m", "5m", "1h", "1d"], Field(description="Width of one bar.")] = "1h",
    limit: Limit = 100,
) -> Summary:
    return {"symbol": symbol, "count": limit, "mean": 0.0, "deviation": 0.0}
