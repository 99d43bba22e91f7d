"""The command line. Every command imports what it needs when it runs, so that starting is quick."""

from __future__ import annotations

import argparse
import asyncio
import gc
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from quantdeck import __version__

if TYPE_CHECKING:
    from quantdeck.app import App
    from quantdeck.core.server import Server
    from quantdeck.settings import Settings

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; its exit status."""
    gc.disable()  # what is imported stays: looking it over meanwhile is a tenth of a cold start
    arguments = _parser().parse_args(argv)
    from pydantic import ValidationError

    from quantdeck.core.errors import DeclarationError
    from quantdeck.settings import MisconfiguredError

    try:
        return int(arguments.run(arguments) or 0)
    except (MisconfiguredError, _UsageError, DeclarationError) as error:
        print(f"quantdeck: {error}", file=sys.stderr)
    except ValidationError as error:
        for problem in error.errors(include_url=False, include_input=False):
            print(f"quantdeck: setting {'.'.join(map(str, problem['loc']))}: {problem['msg']}", file=sys.stderr)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return 0
    return 2


class _UsageError(ValueError):
    """A call that cannot be understood; the sentence says what can."""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="quantdeck",
        description="Tools for trading agents, as MCP servers.",
        epilog='example:\n  quantdeck demo && quantdeck call get_top_strategies \'{"symbol": "BTC/USD"}\'',
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"quantdeck {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, run, words, example, add in _COMMANDS:
        command = commands.add_parser(
            name,
            help=words,
            description=words[0].upper() + words[1:] + ".",
            epilog=f"example:\n  {example}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.set_defaults(run=run)
        add(command)
    return parser


# serve


def _add_serve(command: argparse.ArgumentParser) -> None:
    command.add_argument("names", nargs="+", metavar="NAME", help="a server, several, or `all`")
    command.add_argument("--http", action="store_true", help="serve over HTTP instead of stdio")
    command.add_argument("--host", help="address to bind (default 127.0.0.1; any other needs a token)")
    command.add_argument("--port", type=int, help="port to bind (default 8003; 0 takes a free one)")
    command.add_argument("--stateless", action="store_true", help="no sessions: replicas need no stickiness")
    command.add_argument("--trusted-proxies", help="addresses whose forwarded headers are believed")


def _serve(arguments: argparse.Namespace) -> int:
    from quantdeck.transports.sdk_import import lean

    lean(http=arguments.http)
    servers, settings = _servers(arguments.names, over_http=arguments.http), _settings()
    if arguments.http:
        from quantdeck.transports.http import serve_http

        chosen = {
            "host": arguments.host,
            "port": arguments.port if arguments.port is not None else settings.port,
            "trusted_proxies": arguments.trusted_proxies.split(",") if arguments.trusted_proxies else None,
        }
        http = settings.http.model_copy(update={k: v for k, v in chosen.items() if v is not None})
        settings = settings.model_copy(update={"http": http})
        return _logged(settings, serve_http(settings, servers, stateless=arguments.stateless))
    return _logged(settings, _over_stdio(settings, servers))


async def _over_stdio(settings: Settings, servers: tuple[Server, ...]) -> None:
    from quantdeck.transports.process import serve_app

    await serve_app(settings, servers)


# tools, resources, prompts


def _add_list(command: argparse.ArgumentParser) -> None:
    command.add_argument("--server", metavar="NAME", help="only this server's")
    command.add_argument("--json", action="store_true", help="as JSON, with schemas")


def _tools(arguments: argparse.Namespace) -> None:
    from quantdeck.listing import tools

    _show(tools(_chosen(arguments)), arguments, "name")


def _resources(arguments: argparse.Namespace) -> None:
    from quantdeck.listing import resources

    _show(resources(_chosen(arguments)), arguments, "uri")


def _prompts(arguments: argparse.Namespace) -> None:
    from quantdeck.listing import prompts

    _show(prompts(_chosen(arguments)), arguments, "name")


def _chosen(arguments: argparse.Namespace) -> tuple[Server, ...]:
    return _servers([arguments.server or "all"])


def _show(found: list[dict[str, Any]], arguments: argparse.Namespace, key: str) -> None:
    if arguments.json:
        import orjson

        print(orjson.dumps(found, option=orjson.OPT_INDENT_2).decode())
        return
    for entry in found:
        print(f"{entry['server']:18} {entry[key]:28} {entry['description'].splitlines()[0]}")


# call


def _add_call(command: argparse.ArgumentParser) -> None:
    command.add_argument("tool", metavar="TOOL")
    command.add_argument("arguments", nargs="?", default="{}", metavar="JSON", help="the arguments, as a JSON object")
    command.add_argument("--server", metavar="NAME", help="the server that has it, if you know")
    command.add_argument("--key", metavar="KEY", help="idempotency key: repeat a write safely with the same one")


def _call(arguments: argparse.Namespace) -> int:
    import orjson

    try:
        given = orjson.loads(arguments.arguments)
    except orjson.JSONDecodeError as error:
        raise _UsageError(f"the arguments are not JSON: {error}") from None
    if not isinstance(given, dict):
        raise _UsageError('the arguments must be a JSON object such as \'{"symbol": "BTC/USD"}\'')
    servers = tuple(s for s in _chosen(arguments) if any(arguments.tool in (t.name, t.listed) for t in s.tools))
    if not servers:
        raise _UsageError(f"unknown tool {arguments.tool!r}; `quantdeck tools` lists those there are")
    settings = _settings()
    return _logged(settings, _called(settings, servers, arguments, given), level="error")


async def _called(
    settings: Settings, servers: tuple[Server, ...], arguments: argparse.Namespace, given: dict[str, Any]
) -> int:
    from quantdeck.app import open_app
    from quantdeck.core.wire import RpcFailure, encode

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
    return int(answer.is_error)


def _quiet(app: App) -> None:
    """One answer on stdout is all that a call says; its event is of no use to anyone."""
    app.runtime.observer.tell = lambda *_: None


# demo, migrate, doctor


def _add_demo(command: argparse.ArgumentParser) -> None:
    command.add_argument("--seed", type=int, default=7, help="another seed, another world (default 7)")
    command.add_argument("--days", type=int, default=30, help="how many days back it is lived in (default 30)")
    command.add_argument("--quiet", action="store_true", help="say nothing when it is done")


def _demo(arguments: argparse.Namespace) -> None:
    from quantdeck.demo import make

    settings = _settings()
    made = asyncio.run(make(settings, seed=arguments.seed, days=arguments.days))
    if not arguments.quiet:
        print(f"Demo world (seed {arguments.seed}) in {settings.home_path}: {made}")
        print('Ask it: quantdeck call get_top_strategies \'{"symbol": "BTC/USD"}\'')


def _add_nothing(command: argparse.ArgumentParser) -> None:
    del command


def _migrate(_: argparse.Namespace) -> None:
    from quantdeck.connections.databases import Databases

    settings = _settings()

    async def run() -> list[str]:
        databases = Databases(settings)
        try:
            return await databases.migrate()
        finally:
            await databases.close()

    from quantdeck.core.errors import SourceError

    try:
        applied = asyncio.run(run())
    except SourceError as error:
        raise _UsageError(error.message) from error
    print("\n".join(applied) if applied else "nothing to do: every migration is applied")


def _doctor(arguments: argparse.Namespace) -> int:
    from quantdeck.doctor import examine

    settings = _settings()
    return _logged(settings, examine(settings, _servers(["all"]), as_json=arguments.json), level="error")


def _add_doctor(command: argparse.ArgumentParser) -> None:
    command.add_argument("--json", action="store_true", help="as JSON")


def _add_client_config(command: argparse.ArgumentParser) -> None:
    from quantdeck.client_config import CLIENTS

    command.add_argument("client", metavar="CLIENT", choices=tuple(CLIENTS), help=", ".join(CLIENTS))
    command.add_argument("names", nargs="*", metavar="NAME", help="servers (default: all)")
    command.add_argument("--url", help="a running HTTP server's address, instead of local processes")


def _client_config(arguments: argparse.Namespace) -> None:
    import orjson

    from quantdeck.client_config import render

    names = tuple(server.name for server in _servers(arguments.names or ["all"]))
    settings = _settings()
    environment = {"QUANTDECK_HOME": str(settings.home_path)}
    place, entry = render(arguments.client, names, url=arguments.url, environment=environment)
    print(f"# goes into {place}", file=sys.stderr)
    print(orjson.dumps(entry, option=orjson.OPT_INDENT_2).decode())


# what they share


def _settings() -> Settings:
    from quantdeck.settings import Settings

    return Settings.read()


def _servers(names: Sequence[str], *, over_http: bool = False) -> tuple[Server, ...]:
    from quantdeck import servers

    left_out = servers.ON_REQUEST if over_http else frozenset()
    wanted: list[str] = []
    for name in names:
        if name != "all" and name not in servers.NAMES:
            raise _UsageError(f"unknown server {name!r}; there are {', '.join(servers.NAMES)} and all")
        wanted += [n for n in servers.NAMES if n not in left_out] if name == "all" else [name]
    return tuple(servers.load(name) for name in dict.fromkeys(wanted))


def _logged(settings: Settings, work: Any, level: str | None = None) -> int:
    """Run `work` with its log where the settings say: stdout belongs to answers."""
    import os

    from quantdeck.observability.logs import LineWriter, configure

    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
    writer = LineWriter(2 if settings.log_file is None else os.open(settings.log_file, flags, 0o600))
    configure(writer, level or settings.log_level)
    gc.freeze()
    gc.enable()
    try:
        return asyncio.run(work) or 0
    finally:
        writer.close()


_Command = tuple[str, Callable[[argparse.Namespace], Any], str, str, Callable[[argparse.ArgumentParser], None]]

_COMMANDS: tuple[_Command, ...] = (
    ("serve", _serve, "serve MCP servers over stdio, or over HTTP", "quantdeck serve strategy-mcp", _add_serve),
    ("tools", _tools, "list the tools", "quantdeck tools --server strategy-mcp --json", _add_list),
    ("resources", _resources, "list the resources", "quantdeck resources --json", _add_list),
    ("prompts", _prompts, "list the prompts", "quantdeck prompts --json", _add_list),
    (
        "call",
        _call,
        "call one tool and print its answer; exit status 1 if it failed",
        'quantdeck call get_strategy_consensus \'{"symbol": "BTC/USD"}\'',
        _add_call,
    ),
    (
        "demo",
        _demo,
        "make QUANTDECK_HOME a demo world, offline and deterministic",
        "quantdeck demo --seed 7",
        _add_demo,
    ),
    (
        "client-config",
        _client_config,
        "print what a client needs to start or find the servers",
        "quantdeck client-config opencode strategy-mcp",
        _add_client_config,
    ),
    ("migrate", _migrate, "bring the database's tables up to date", "quantdeck migrate", _add_nothing),
    (
        "doctor",
        _doctor,
        "say what each source is, whether it answers, and what to set",
        "quantdeck doctor",
        _add_doctor,
    ),
)
