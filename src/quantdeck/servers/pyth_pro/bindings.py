"""`pyth` of an analysis: the tools' own contracts, asked for the code by the server that holds the token.

A call passes every stage that a client's would, but is no event of its own: what it asked is added to the event of the
analysis. It answers what the spec's interface says, which is lists where the tools have objects around them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

from quantdeck.core.call import STAGES, Call, Progress, chain
from quantdeck.core.contract import Contract
from quantdeck.core.observe import observe
from quantdeck.core.wire import Answer, RpcFailure, encode
from quantdeck.servers.pyth_pro.get_candlestick_data import get_candlestick_data
from quantdeck.servers.pyth_pro.get_historical_price import get_historical_price
from quantdeck.servers.pyth_pro.get_latest_price import get_latest_price
from quantdeck.servers.pyth_pro.get_symbols import get_symbols
from quantdeck.sources.sandbox import RefusedError

__all__ = ["Bindings"]

_PAGE = 200
_LISTS = ("symbols_queried", "feed_ids_queried", "asset_types", "properties")
_SUMS = ("num_feeds", "num_feeds_returned", "api_latency_ms")


class Bindings:
    """See the module. It is an `Ask` of the sandbox."""

    def __init__(self, call: Call) -> None:
        self._call = call

    @classmethod
    def from_call(cls, call: Call) -> Bindings:
        return cls(call)

    @property
    def from_afar(self) -> bool:
        """Whether the code came over a network."""
        return self._call.transport != "stdio"

    def note(self, **fields: Any) -> None:
        """Add to the analysis's event."""
        self._call.notes.update(fields)

    async def __call__(self, method: str, arguments: list[Any]) -> bytes:
        names, answer = _METHODS[method]
        if len(arguments) > len(names):
            raise RefusedError("invalid_input", f"pyth.{method} takes {len(names)} arguments at most")
        given = {name: value for name, value in zip(names, arguments, strict=False) if value is not None}
        return encode(await answer(self, given))

    async def asked(self, contract: Contract, arguments: dict[str, Any]) -> Any:
        """What a tool answers."""
        call = replace(
            self._call, contract=contract, arguments=arguments, progress=Progress(), idempotency_key=None,
            values={}, notes={}, cache_key=None, cached=False, source="",
        )  # fmt: skip
        outcome = await _CHAINS[contract.name](call)
        self._add(call.notes)
        if isinstance(outcome, RpcFailure):
            raise RefusedError("invalid_input", outcome.message)
        if outcome.is_error:
            raise RefusedError(outcome.code or "upstream", _sentence(outcome))
        return outcome.body

    def _add(self, told: dict[str, Any]) -> None:
        notes = self._call.notes
        for name in _LISTS:
            notes[name] = list(dict.fromkeys([*notes.get(name, ()), *told.get(name, ())]))
        for name in _SUMS:
            notes[name] = notes.get(name, 0) + told.get(name, 0)
        notes["channel"] = notes.get("channel") or told.get("channel", "")
        if told.get("is_trial"):
            notes["is_trial"] = True


def _sentence(outcome: Answer) -> str:
    return outcome.text or str(outcome.body["error"]["message"])


async def _symbols(bindings: Bindings, given: dict[str, Any]) -> Any:
    """All that match: the interface has no pages."""
    found: list[Any] = []
    while True:
        page = await bindings.asked(get_symbols, {**given, "offset": len(found), "limit": _PAGE})
        found += page["feeds"]
        if not page["has_more"]:
            return found


async def _candles(bindings: Bindings, given: dict[str, Any]) -> Any:
    return await bindings.asked(get_candlestick_data, given)


async def _historical(bindings: Bindings, given: dict[str, Any]) -> Any:
    return (await bindings.asked(get_historical_price, given))["prices"]


async def _latest(bindings: Bindings, given: dict[str, Any]) -> Any:
    return await bindings.asked(get_latest_price, given)


_METHODS: dict[str, tuple[Sequence[str], Callable[[Bindings, dict[str, Any]], Awaitable[Any]]]] = {
    "getSymbols": (("query", "asset_type"), _symbols),
    "getCandlestickData": (("symbol", "resolution", "from", "to"), _candles),
    "getHistoricalPrice": (("ids", "timestamp"), _historical),
    "getLatestPrice": (("symbols", "properties"), _latest),
}

_CHAINS = {
    tool.name: chain(tool, [stage for stage in STAGES if stage is not observe])
    for tool in (get_symbols, get_candlestick_data, get_historical_price, get_latest_price)
}
