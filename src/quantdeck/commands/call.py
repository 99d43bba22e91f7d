"""`quantdeck call`: one tool, once, its answer on stdout."""

from __future__ import annotations

import argparse
import sys
from typing import Any

import orjson

from quantdeck.app import App, open_app
from quantdeck.commands import UsageError, chosen_servers, logged
from quantdeck.core.server import Server
from quantdeck.core.wire import RpcFailure, encode
from quantdeck.dialects.replies import smaller_form
from quantdeck.settings import Settings

__all__ = ["add", "run"]


def add(command: argparse.ArgumentParser) -> None:
    command.add_argument("tool", metavar="TOOL")
    command.add_argument("arguments", nargs="?", default="{}", metavar="JSON", help="the arguments, as a JSON object")
    command.add_argument("--server", metavar="NAME", help="the server that has it, if you know")
    command.add_argument("--key", metavar="KEY", help="idempotency key: repeat a write safely with the same one")


def run(arguments: argparse.Namespace) -> int:
    try:
        given = orjson.loads(arguments.arguments)
    except orjson.JSONDecodeError as error:
        raise UsageError(f"the arguments are not JSON: {error}") from None
    if not isinstance(given, dict):
        raise UsageError('the arguments must be a JSON object such as \'{"symbol": "BTC/USD"}\'')
    among = chosen_servers([arguments.server or "all"])
    servers = tuple(s for s in among if any(arguments.tool in (t.name, t.listed) for t in s.tools))
    if not servers:
        raise UsageError(f"unknown tool {arguments.tool!r}; `quantdeck tools` lists those there are")
    settings = Settings.read()
    return logged(settings, _called(settings, servers, arguments, given), level="error")


async def _called(
    settings: Settings, servers: tuple[Server, ...], arguments: argparse.Namespace, given: dict[str, Any]
) -> int:
    async with open_app(settings, servers) as app:
        _quiet(app)
        contract = app.tool(arguments.tool)
        assert contract is not None
        answer = await app.call(contract, given, transport="cli", idempotency_key=arguments.key)
    if isinstance(answer, RpcFailure):
        body = {"error": {"code": answer.number, "message": answer.message, "data": answer.data}}
        print(encode(body).decode())
        return 1
    print(answer.encoded.decode())
    if said := smaller_form(contract, given, answer, settings.reply_tokens):
        print(said, file=sys.stderr)
    return int(answer.is_error)


def _quiet(app: App) -> None:
    """One answer on stdout is all that a call says; its event is of no use to anyone."""
    app.runtime.observer.tell = lambda *_: None
