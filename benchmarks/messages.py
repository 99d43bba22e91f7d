"""What the clients say, and how they check that a peer's answer is the one all peers should give."""

import re
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from benchmarks.peers import workload
from benchmarks.process import PeerFailed

Era = Literal["legacy", "modern"]
LEGACY, MODERN = "2025-11-25", "2026-07-28"
CLIENT = {"name": "quantdeck-bench", "version": "0"}
FIRST_ID = 1_000_000  # ids stay seven digits wide, so that request and answer sizes stay the same

_ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": CLIENT,
    "io.modelcontextprotocol/clientCapabilities": {},
}
_ID = re.compile(rb'"id"\s*:\s*(\d+)')
_ID_WITHIN = 60


@dataclass(frozen=True)
class Template:
    """A request encoded once; only the id changes, so the client's own work per call is small and the same for all."""

    method: str
    name: str | None
    head: bytes
    tail: bytes

    def frame(self, request_id: int) -> bytes:
        return b"%b%d%b" % (self.head, request_id, self.tail)


def template(method: str, params: dict[str, Any], era: Era = "legacy") -> Template:
    if era == "modern":
        params = {**params, "_meta": _ENVELOPE}
    tail = msgspec.json.encode({"method": method, "params": params})
    return Template(method, params.get("name"), b'{"jsonrpc":"2.0","id":', b"," + tail[1:])


def call(tool: str, era: Era = "legacy") -> Template:
    return template("tools/call", {"name": tool, "arguments": workload.ARGUMENTS}, era)


INITIALIZE = template("initialize", {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": CLIENT})
INITIALIZED = msgspec.json.encode({"jsonrpc": "2.0", "method": "notifications/initialized"})


def answer_id(line: bytes) -> int | None:
    """The id of a response. Servers write it first or last; decoding 100 KB to find it would weigh on every ratio."""
    found = _ID.search(line, 0, _ID_WITHIN) or _ID.search(line[-_ID_WITHIN:])
    if found:
        return int(found[1])
    decoded = msgspec.json.decode(line)
    return decoded.get("id") if "method" not in decoded else None


def result(frame: bytes) -> dict[str, Any]:
    try:
        decoded = msgspec.json.decode(frame)
    except msgspec.DecodeError as e:
        raise PeerFailed(f"answered something that is not JSON: {frame[:200].decode(errors='replace')}") from e
    if "result" not in decoded:
        raise PeerFailed(f"answered {frame[:200].decode(errors='replace')}")
    found: dict[str, Any] = decoded["result"]
    return found


def check_tools(listed: dict[str, Any], tools: int) -> None:
    names = {tool["name"] for tool in listed["tools"] if tool.get("inputSchema") and tool.get("outputSchema")}
    wanted = {"noop", "rows", *workload.filler_names(tools)}
    if names != wanted:
        raise PeerFailed(f"lists {len(names)} tools with both schemas, not the {len(wanted)} wanted")


def check_call(tool: str, answered: dict[str, Any]) -> None:
    """The structured content is the workload's, and the text is a copy of it."""
    symbol = str(workload.ARGUMENTS["symbol"])
    wanted = workload.rows_answer(symbol) if tool == "rows" else workload.noop_answer(symbol)
    if answered.get("structuredContent") != wanted:
        raise PeerFailed(f"{tool}: structured content differs from the workload's")
    if msgspec.json.decode(answered["content"][0]["text"]) != wanted:
        raise PeerFailed(f"{tool}: the text is not a copy of the structured content")
