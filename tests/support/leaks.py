"""The leak test: at a fixed clock no read of a source has anything in it that became known later.

A source's reads stand in a dict by their method's name, each as a question put as of an instant:

    READS: Reads = {
        "find": lambda source, as_of: source.find("late", as_of=as_of),
    }

`assert_sealed` asks each before and after later facts are written; a read that is not in the dict fails it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from datetime import datetime
from inspect import Parameter, getmembers, isfunction, signature
from typing import Any

from quantdeck.core.clock import Now
from quantdeck.core.contract import Source

__all__ = ["Reads", "assert_sealed", "reads_of"]

Reads = Mapping[str, Callable[[Any, Now], Awaitable[Any]]]


def reads_of(kind: type[Source], *, no_reads: Collection[str] = ()) -> set[str]:
    """The names of its reads: all public methods that not every source has, but for writes and the like."""
    own = {name: method for name, method in getmembers(kind, isfunction) if not hasattr(Source, name)}
    public = {name: method for name, method in own.items() if not name.startswith("_") and name not in no_reads}
    for name, method in public.items():
        as_of = signature(method).parameters.get("as_of")
        named = as_of is not None and as_of.kind is Parameter.KEYWORD_ONLY and as_of.default is Parameter.empty
        assert named, f"{kind.__name__}.{name} must take `*, as_of: Now`; if it reads no fact, name it in `no_reads`"
    return set(public)


async def assert_sealed(
    source: Source,
    reads: Reads,
    write_later: Callable[[], Awaitable[None]],
    *,
    at: datetime,
    later: datetime,
    no_reads: Collection[str] = (),
) -> None:
    """Every read answers at `at` after `write_later` what it did before; and at `later` what was written then."""
    kind = type(source)
    assert reads.keys() == reads_of(kind, no_reads=no_reads), f"give each read of {kind.__name__} its leak test"
    before = await _asked(source, reads, at)
    await write_later()
    after = await _asked(source, reads, at)
    assert after == before, "something that became known later is in an answer"
    since = await _asked(source, reads, later)
    blind = [name for name in reads if since[name] == before[name]]
    assert not blind, f"what is written later would not show in {', '.join(blind)}, so this could not see a leak"


async def _asked(source: Source, reads: Reads, at: datetime) -> dict[str, Any]:
    as_of = Now.of(at, fixed=True)
    return {name: await read(source, as_of) for name, read in reads.items()}
