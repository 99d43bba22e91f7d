"""Between the server and Monty: a program that owns one interpreter, and says its frames as Deno's worker does.

    python -I -S -B host.py SITE_PACKAGES MONTY [ARGUMENT OF THE LAUNCHER…]

Monty's own client turns whatever the interpreter says into Python's values, as many and as large as it likes. That is
no work for the process that holds the token, so it is done here: without a network, without files, with a limit on
memory, and killed with the interpreter. The interpreter itself is started by the launcher, which binds it tighter.
"""

from __future__ import annotations

import json
import math
import os
import re
import resource
import shlex
import sys
from datetime import UTC, date, datetime
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec
from pathlib import Path

TYPE_CHECKING = False  # `typing` costs milliseconds, and every cold start has them
if TYPE_CHECKING:
    from typing import Any

BUDGET = 128 * 2**20
LONGEST_ARGUMENTS = 65_536
LONGEST_RESULT = 262_144
MOST_CONSOLE = 65_536
MOST_LINES = 1_000
MOST_CALLS = 100
MOST_DEPTH = 95
MOST_STOPS = 50_000
PRELUDE = "<python-input-0>"

_WRONG_CALLS = frozenset(
    ("invalid-argument-type", "missing-argument", "too-many-positional-arguments", "unknown-argument")
)
"""Of what a type checker has to say, what would surely fail. The rest may be its own idea of good code."""

_OURS = {"`_Pyth.": "`pyth.", "`_Indicators.": "`indicators."}
"""Whose calls are checked: what these take is known."""

_COROUTINE = re.compile(r"<coroutine object \w+>")


def send(*frame: Any) -> None:
    data = json.dumps(frame).encode() + b"\n"
    while data:
        data = data[os.write(1, data) :]


class Lines:
    """What has been printed, line by line, and no more of it than anybody will read."""

    def __init__(self) -> None:
        self._part, self._left, self._lines = "", MOST_CONSOLE, MOST_LINES

    def __call__(self, stream: str, text: str) -> None:
        if not self._is_full:
            *whole, part = (self._part + text[: self._left + 1]).split("\n")
            for line in whole:
                self._send(line)
            self._part = part[: max(self._left, 0)]

    @property
    def _is_full(self) -> bool:
        return self._left <= 0 or self._lines <= 0

    def flush(self) -> None:
        if self._part:
            self._send(self._part)
            self._part = ""

    def _send(self, line: str) -> None:
        if self._is_full:
            return
        send("log", line[: self._left].encode("utf-8", "replace").decode())
        self._left -= len(line) + 1
        self._lines -= 1
        if self._is_full:
            send("log", "[the console is full; the rest is left out]")


class Plain:
    """A value as plain data, as far as it may be returned. What is shared counts each time: nothing multiplies."""

    def __init__(self, longest: int) -> None:
        self.lost, self._left = 0, longest

    def __call__(self, value: Any, depth: int = 0) -> Any:
        self._spend(2 + len(value) if isinstance(value, str) else 2)
        if depth > MOST_DEPTH:
            raise UnfitError("ResultError", "The result is nested too deeply")
        if isinstance(value, (list, tuple, set, frozenset)):
            return [self(one, depth + 1) for one in value]
        if isinstance(value, dict):
            return {self._key(name): self(held, depth + 1) for name, held in value.items()}
        return self._single(value, depth)

    def _single(self, value: Any, depth: int) -> Any:
        match value:
            case None | bool():
                return value
            case str() if _COROUTINE.fullmatch(value):
                raise UnfitError("TypeError", "The result is a coroutine: `await` is missing")
            case str():
                return value.encode("utf-8", "replace").decode()
            case float():
                self._spend(8)
                self.lost += not math.isfinite(value)
                return value if math.isfinite(value) else None
            case int():
                self._spend(value.bit_length() // 3)
                return value if abs(value) < 2**53 else str(value)
            case date():
                return value.isoformat()
        return self._other(value, depth)

    def _key(self, name: Any) -> str:
        return str(self(name, 1))

    def _spend(self, characters: int) -> None:
        self._left -= characters
        if self._left < 0:
            raise UnfitError("ResultError", f"The result is too large: at most {LONGEST_RESULT} characters of JSON")

    def _other(self, value: Any, depth: int) -> Any:
        kind = type(value).__name__
        if kind in ("Decimal", "Fraction"):
            return str(value)
        if kind == "MontyClassProxy":
            return self(value.attributes, depth + 1)
        raise UnfitError("TypeError", f"The result has a {kind} in it, which is no plain data")


class UnfitError(Exception):
    """Something that is not returned."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name


class WrongCallError(Exception):
    """What the type checker found, and where."""

    def __init__(self, message: str, line: int, column: int) -> None:
        super().__init__(message)
        self.place = (line, column)


class Incoming:
    """Frames of the server."""

    def __init__(self) -> None:
        self._rest = b""

    def __call__(self) -> list[Any]:
        while b"\n" not in self._rest:
            data = os.read(0, 65_536)
            if not data:
                os._exit(0)
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        frame: list[Any] = json.loads(line)
        return frame


def script(monty: str, arguments: list[str]) -> str:
    """A path that starts Monty by the launcher; its client takes no more. It is a file in memory, where no other is."""
    line = [sys.executable, "-I", "-S", "-B", str(Path(__file__).parents[1] / "launcher.py"), str(os.getpid())]
    words = " ".join(map(shlex.quote, [*line, *arguments, "--", monty]))
    held = os.memfd_create("monty", 0)
    os.write(held, f'#!/bin/sh\nexec {words} "$@"\n'.encode())
    os.fchmod(held, 0o700)
    return f"/proc/self/fd/{held}"


def bounded() -> None:
    """Limit the memory of this process itself, now that it is ready."""
    if sys.platform == "linux":
        with Path("/proc/self/status").open() as lines:
            held = next(int(line.split()[1]) for line in lines if line.startswith("VmData"))
        resource.setrlimit(resource.RLIMIT_DATA, (held * 1024 + BUDGET, held * 1024 + BUDGET))


def main(site: str, monty: str, arguments: list[str]) -> None:
    sys.path.append(site)
    sys.set_int_max_str_digits(0)  # what may be returned is bounded here
    client = monty_client(site)
    here = Path(__file__).parent
    prelude, stubs = (here / "prelude.txt").read_text(), (here / "stubs.txt").read_text()
    path = script(monty, arguments) if arguments else monty
    incoming = Incoming()
    limits = {"max_memory": BUDGET, "max_suspensions": MOST_STOPS}
    with client.Monty(binary_path=path, min_processes=1, max_processes=1, max_checkouts_per_worker=2) as pool:
        checked: dict[str, Any] = {"type_check": True, "type_check_stubs": stubs, "type_check_format": "json"}
        with pool.checkout(**checked) as session:
            # The first check reads the types of all there is, which is not the code's share.
            session.feed_run("1 + 1")
            pid = session.worker_pid
        bounded()
        send("ready", pid)
        _, code, now_ms, *_ = incoming()
        policy: dict[str, Any] = {"sleep": "zero"}
        if now_ms is not None:
            policy["datetime"] = datetime.fromtimestamp(now_ms / 1000, UTC)
        with pool.checkout(script_name="user.py", limits=limits, os_policy=policy, **checked) as session:
            session.feed_run(prelude, skip_type_check=True)
            Analysis(client, session, incoming).run(code)
            while True:
                incoming()  # until the server ends this, with the interpreter still there to be measured


def monty_client(site: str) -> Any:
    """The compiled part of its client, which is all that is used: the rest of the package takes three times as long."""
    spec = ModuleSpec("pydantic_monty", None, is_package=True)
    spec.submodule_search_locations = [f"{site}/pydantic_monty"]
    sys.modules["pydantic_monty"] = module_from_spec(spec)
    return import_module("pydantic_monty._monty")


class Analysis:
    """One piece of code, fed to one session."""

    def __init__(self, client: Any, session: Any, incoming: Incoming) -> None:
        self._client, self._session, self._incoming = client, session, incoming
        self._printed = Lines()
        self._calls = 0
        self._waiting: dict[int, int] = {}  # the server's number of a call, and Monty's

    def run(self, code: str) -> None:
        client = self._client
        try:
            value = self._checked(code)
            self._printed.flush()
            plain = Plain(LONGEST_RESULT)
            told = json.dumps([None, plain(value)])
            send("result", f"[{plain.lost},{told[7:]}")
        except client.MontyCrashedError as error:
            os.write(2, f"{error}\n".encode())
            os._exit(70)
        except client.MontyError as error:
            self._printed.flush()
            self._failed(error)
        except WrongCallError as error:
            send("failed", "syntax", json.dumps(["TypeError", str(error), *error.place]))
        except MemoryError:
            send("failed", "runtime", json.dumps(["MemoryError", "The result is too large", None, None]))
        except UnfitError as error:
            send("failed", "runtime", json.dumps([error.name, str(error), None, None]))

    def _checked(self, code: str) -> Any:
        try:
            return self._driven(code, check=True)
        except self._client.MontyTypingError as error:
            for told in json.loads(error.display()):
                message = told["message"]
                for ours, name in _OURS.items():
                    if told["code"] in _WRONG_CALLS and ours in message:
                        place = told["location"]
                        raise WrongCallError(message.replace(ours, name), place["row"], place["column"]) from None
        return self._driven(code, check=False)

    def _driven(self, code: str, *, check: bool) -> Any:
        """The value of the code, whose calls are answered as their answers come."""
        client = self._client
        stop = self._session.feed_start(code, print_callback=self._printed, skip_type_check=not check)
        while not isinstance(stop, client.MontyComplete):
            if isinstance(stop, client.NameLookupSnapshot):
                stop = stop.resume(value=_call) if stop.variable_name == "_call" else stop.resume()
            elif isinstance(stop, client.FutureSnapshot):
                stop = stop.resume(self._answered())
            elif stop.is_os_function:
                stop = stop.resume_not_handled()
            else:
                stop = stop.resume(self._asked(stop))
        return stop.output

    def _asked(self, stop: Any) -> dict[str, Any]:
        try:
            method, arguments = stop.args
            said = json.dumps(Plain(LONGEST_ARGUMENTS)(arguments))
        except (ValueError, UnfitError):
            said = ""
        if not said or stop.function_name != "_call" or not isinstance(method, str) or len(said) > LONGEST_ARGUMENTS:
            return _refusal(f"The arguments are no plain data, or longer than {LONGEST_ARGUMENTS} characters.")
        if self._calls >= MOST_CALLS:
            return _refusal(f"An analysis may make {MOST_CALLS} calls; ask for more in each.")
        self._calls += 1
        self._waiting[self._calls] = stop.call_id
        send("call", self._calls, method, said)
        return {"future": ...}

    def _answered(self) -> dict[int, Any]:
        self._printed.flush()
        _, number, ok, text = self._incoming()
        value = json.loads(text)
        result = {"return_value": value} if ok else _refusal(f"{value['code']}: {value['message']}")
        return {self._waiting.pop(number): result}

    def _failed(self, error: Any) -> None:
        inner = error.exception()
        frames = [frame for frame in error.traceback() if frame.filename != PRELUDE]
        place = [frames[-1].line, frames[-1].column] if frames else [None, None]
        stage = "syntax" if isinstance(error, self._client.MontySyntaxError) else "runtime"
        send("failed", stage, json.dumps([type(inner).__name__, str(inner)[:4000], *place]))


def _call(method: str, arguments: list[Any]) -> None:
    """What the name stands for in the interpreter; it is never called here."""


def _refusal(message: str) -> dict[str, Any]:
    return {"exc_type": "RuntimeError", "message": message}


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
