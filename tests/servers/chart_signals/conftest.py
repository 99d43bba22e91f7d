"""chart-signals over files of bars, at whatever instant a test wants, behind a client of each era."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import orjson
import pytest
from mcp.shared.exceptions import MCPError
from pydantic import SecretStr

from quantdeck.domain.candles import Bars
from quantdeck.domain.timeframes import MINUTE
from quantdeck.settings import Alpaca
from quantdeck.sources.candles import Candles
from tests.servers.conftest import Served
from tests.support.bars import every
from tests.support.desk import NOON

__all__ = ["KEYS", "NOON_S", "Chart", "Opened", "closing_at", "of_closes"]

NOON_S = int(NOON.timestamp())
KEYS = Alpaca(api_key=SecretStr("id"), secret_key=SecretStr("secret"), fill=False)
Opened = Callable[..., Awaitable["Chart"]]


def of_closes(closes: Any, first_s: int, step_s: int = 60) -> Bars:
    """Bars of which only the closes matter."""
    closes = np.asarray(closes, dtype=np.float64)
    return Bars.of(every(step_s, first_s, len(closes)), closes, closes, closes, closes, np.ones(len(closes)))


def closing_at(closes: Any, end_s: int = NOON_S, step_s: int = 60) -> Bars:
    """Such bars, the last of which closes then."""
    return of_closes(closes, end_s - step_s * len(closes), step_s)


@dataclass(frozen=True)
class Chart:
    """The server, its client and its bars."""

    served: Served

    async def __call__(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """A successful answer, which both channels must carry."""
        result = await self.served.client.call_tool(tool, arguments)
        body: dict[str, Any] = orjson.loads(result.content[0].text)  # type: ignore[union-attr]
        assert not result.is_error, body
        assert result.structured_content == body
        return body

    async def refused(self, tool: str, **arguments: Any) -> tuple[int, str, Any]:
        """Code, message and data of a failure, in the manner of either era."""
        try:
            result = await self.served.client.call_tool(tool, arguments)
        except MCPError as error:
            return error.error.code, error.error.message, error.error.data
        body = orjson.loads(result.content[0].text)  # type: ignore[union-attr]
        assert (result.is_error, result.structured_content) == (True, None), body
        return body["code"], body["message"], body["data"]

    async def fill(self, symbol: str, bars: Bars) -> None:
        await self.served.app.runtime.source(Candles).write(symbol, MINUTE, bars)


@pytest.fixture
def chart_at(serve: Any) -> Opened:
    """The server with the world standing at an instant."""

    async def opened(at: datetime | int = NOON_S, **said: Any) -> Chart:
        at = datetime.fromtimestamp(at, UTC) if isinstance(at, int) else at
        said.setdefault("candles", SecretStr("home:files"))
        return Chart(await serve("chart-signals", clock=at.isoformat(), **said))

    return opened


@pytest.fixture
async def chart(chart_at: Opened) -> Chart:
    """The server at noon."""
    return await chart_at()
