"""Chains of every form are judged as the sentence of the port says, however they are walked."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from quantdeck.core.clock import Now
from quantdeck.domain.event_chains import missing
from quantdeck.events import EventLog
from quantdeck.sources.events import Slice
from quantdeck.sources.events.embedded import EventFile
from tests.support.desk import NOON
from tests.support.events import KNOWN, RUN, at, guid

AS_OF = Now.of(NOON, fixed=True)
WORDS = ("TradeExecution", "PositionUpdate", "StateChange", "OrderPlaced")
PATTERNS = (["StateChange"], ["OrderPlaced", "TradeExecution"], ["TradeExecution", "PositionUpdate", "PositionUpdate"])

Grown = tuple[str, int | None, int]
"""A word, the place of the parent, a time."""


def grown(random: Random) -> list[Grown]:
    """A forest in the order of writing: lines, trees, children that are earlier than their parents."""
    return [
        (random.choice(WORDS), random.choice([None, random.randrange(place)]) if place else None, random.randint(0, 9))
        for place in range(random.randint(1, 12))
    ]


def write(path: Path, forests: list[list[Grown]]) -> None:
    with EventLog.open(path) as log, log.run(run_id=RUN, created_at=KNOWN) as run:
        for number, forest in enumerate(forests):
            for place, (word, parent, hour) in enumerate(forest):
                placed = {"OrderStatus": "Placed"} if word == "OrderPlaced" else {}
                run.event(
                    "StateChange" if placed else word,  # type: ignore[arg-type]
                    at(hour),
                    {"SecuritySymbol": "AAPL", **placed},
                    event_id=guid(f"{number} {place}"),
                    parent=None if parent is None else guid(f"{number} {parent}"),
                )


def words(word: str) -> tuple[str, ...]:
    return ("StateChange", "OrderPlaced") if word == "OrderPlaced" else (word,)


def expected(forest: list[Grown], pattern: list[str], depth: int) -> dict[int, list[str]]:
    """By root, what it lacks."""
    lacking = {}
    for root, (word, parent, _) in enumerate(forest):
        if parent is not None or pattern[0] not in words(word):
            continue
        below, generation = list[int](), {root}
        for _ in range(depth - 1):
            generation = {place for place, (_, above, _) in enumerate(forest) if above in generation}
            below += generation
        below.sort(key=lambda place: (forest[place][2], place))
        lacking[root] = missing(pattern, words(word), [words(forest[place][0]) for place in below])
    return lacking


@pytest.mark.parametrize("depth", [1, 2, 3, 50])
async def test_chains_lack_what_their_events_in_the_order_of_time_lack(tmp_path, depth):
    random = Random(7)
    forests = [grown(random) for _ in range(80)]
    write(tmp_path / "events.db", forests)
    source = EventFile(tmp_path / "events.db")
    try:
        for pattern in PATTERNS:
            wanted = {
                guid(f"{number} {root}"): lacking
                for number, forest in enumerate(forests)
                for root, lacking in expected(forest, pattern, depth).items()
            }
            told: dict[str, list[str]] = {}
            for incomplete in (True, False):
                answer = await source.chains(RUN, pattern, depth, Slice(0, 999), incomplete=incomplete, as_of=AS_OF)
                assert answer is not None
                found, total = answer
                assert total == len(found)
                assert all(bool(one.missing) is incomplete for one in found)
                told |= {one.root: one.missing for one in found}
            assert told == wanted
    finally:
        await source.close()
