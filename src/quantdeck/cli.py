"""The command line. A command is a file in commands/ and a line here; only the one that is asked for is imported."""

from __future__ import annotations

import argparse
import contextlib
import gc
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from quantdeck import __version__

__all__ = ["main"]

# Each with its file, what it does, and an example that a test runs.
_COMMANDS = {
    "serve": ("serve", "serve MCP servers over stdio, or over HTTP", "strategy-mcp"),
    "tools": ("lists", "list the tools", "--server strategy-mcp --json"),
    "resources": ("lists", "list the resources", "--json"),
    "prompts": ("lists", "list the prompts", "--json"),
    "call": (
        "call",
        "call one tool and print its answer; exit status 1 if it failed",
        'get_strategy_consensus \'{"symbol": "BTC/USD"}\'',
    ),
    "demo": ("demo", "make QUANTDECK_HOME a demo world, offline and deterministic", "--seed 7"),
    "collect": ("collect", "fill a store of bars from a feed", "demo --days 2 --into-demo"),
    "pyth": ("pyth", "serve pyth-pro alone, by the flags and names of its spec", "stdio --channel fixed_rate@1000ms"),
    "evaluate": (
        "evaluate",
        "run strategies on the newest closed bars and store their signals",
        "--symbol BTC/USD",
    ),
    "backtester": ("backtester", "run backtests for other programs, over gRPC", "--port 50051"),
    "client-config": (
        "client_config",
        "print what a client needs to start or find the servers",
        "opencode strategy-mcp",
    ),
    "import": ("import_", "store what you have in files: candles, desk, events", "desk --example"),
    "export": ("export", "write what is stored into files: candles, desk, events", "desk"),
    "sweep": (
        "sweep",
        "backtest a spec with many sets of numbers, and store the best",
        "SMA_RSI --symbol BTC/USD --days 20 --grid rsiPeriod=7:21:7",
    ),
    "migrate": ("migrate", "bring the database's tables up to date", ""),
    "doctor": ("doctor", "say what each source is, whether it answers, and what to set", ""),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; its exit status."""
    _fill_standard()
    gc.disable()  # what is imported stays: looking it over meanwhile is a tenth of a cold start
    given = sys.argv[1:] if argv is None else list(argv)
    arguments = _parser(given[:1]).parse_args(given)
    from quantdeck.commands import UsageError
    from quantdeck.core.errors import DeclarationError
    from quantdeck.settings import MisconfiguredError

    try:
        status = int(arguments.run(arguments) or 0)
        if sys.stdout is not None:
            sys.stdout.flush()  # or what cannot be written is noticed when nobody can say so any more
        return status  # noqa: TRY300 - what can fail ends here
    except (MisconfiguredError, UsageError, DeclarationError) as error:
        print(f"quantdeck: {error}", file=sys.stderr)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return 0
    except OSError as error:
        print(f"quantdeck: {error}", file=sys.stderr)
        _drop_output()
    return 2


def _fill_standard() -> None:
    """Have 0, 1 and 2 lead nowhere where they were closed, lest what is opened next be taken for them."""
    for fd in range(3):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest that is free, which is this one


def _drop_output() -> None:
    """Let Python write what is left of its output to nowhere: it would fail again, and end in its own status."""
    with contextlib.suppress(OSError, AttributeError, ValueError), open(os.devnull, "wb") as nowhere:  # noqa: PTH123
        os.dup2(nowhere.fileno(), sys.stdout.fileno())


def _parser(wanted: Sequence[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="quantdeck",
        description="Tools for trading agents, as MCP servers.",
        epilog='example:\n  quantdeck demo && quantdeck call get_top_strategies \'{"symbol": "BTC/USD"}\'',
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"quantdeck {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", dest="command", required=True)
    for name, (file, words, example) in _COMMANDS.items():
        command = commands.add_parser(
            name,
            help=words,
            description=words[0].upper() + words[1:] + ".",
            epilog=f"example:\n  quantdeck {name} {example}".rstrip(),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        if name in wanted:
            module = import_module(f"quantdeck.commands.{file}")
            command.set_defaults(run=module.run)
            if hasattr(module, "add"):
                module.add(command)
    return parser
