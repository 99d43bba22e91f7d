"""Open every peer that can be had, load all of them in turn, and put the medians next to each other."""

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks.absence import NotAvailable
from benchmarks.figures import Cell
from benchmarks.load import Client, Pace, Sample, medians, rounds
from benchmarks.progress import say
from benchmarks.registry import PEERS, Peer


@dataclass(frozen=True)
class Subject:
    """One case of one peer, opened and its answer checked."""

    client: Client
    tool: str
    answer_bytes: int
    body: str = ""  # how the answer travels, where there is a choice


@dataclass
class Comparison:
    subjects: dict[tuple[str, str], Subject] = field(default_factory=dict)  # by peer and case
    samples: dict[tuple[str, str], list[Sample]] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    stopped: dict[tuple[str, str], str] = field(default_factory=dict)

    def cells(self, case: str) -> dict[str, Cell]:
        return {peer.name: self._cell(peer.name, case) for peer in PEERS}

    def _cell(self, peer: str, case: str) -> Cell:
        if reason := self.reasons.get(peer) or self.stopped.get((peer, case)):
            return reason
        return {**medians(self.samples[peer, case]), "answer_bytes": self.subjects[peer, case].answer_bytes}

    def bodies(self, case: str) -> dict[str, str]:
        return {peer: subject.body for (peer, of), subject in self.subjects.items() if of == case}

    def raw(self) -> dict[str, Any]:
        """All that was seen, for the JSON file."""
        taken = {" ".join(key): [asdict(sample) for sample in samples] for key, samples in self.samples.items()}
        return {
            "rounds": taken,
            "not_available": self.reasons,
            "stopped": {" ".join(k): v for k, v in self.stopped.items()},
        }


Opener = Callable[[Peer], AbstractAsyncContextManager[Mapping[str, Subject]]]


async def compare(open_peer: Opener, pace: Pace) -> Comparison:
    """A peer that cannot be had, or stops midway, costs its own row only."""
    found = Comparison()
    async with AsyncExitStack() as stack:
        for peer in PEERS:
            try:
                cases = await stack.enter_async_context(open_peer(peer))
            except NotAvailable as e:
                say(f"{peer.name} not available: {e}")
                found.reasons[peer.name] = str(e)
                continue
            found.subjects |= {(peer.name, case): subject for case, subject in cases.items()}
        clients = {key: (subject.client, subject.tool) for key, subject in found.subjects.items()}
        found.samples, found.stopped = await rounds(clients, pace)
    for key, reason in found.stopped.items():
        say(f"{' '.join(key)} stopped: {reason}")
    return found
