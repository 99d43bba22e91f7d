"""The spec that a sweep is of: one that is stored, by its name, or one in a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from quantdeck.commands import UsageError
from quantdeck.core.clock import Now
from quantdeck.domain.spec_reader import read
from quantdeck.domain.strategy_specs import StrategySpec
from quantdeck.sources.sql.implementations import Implementations, StoredSpec

__all__ = ["SweptSpec", "found_spec"]

_LARGEST = 2**20
_TOLD = 5

# As the spec's tables and tools name its parts, and as the files do that the format comes from.
_PARTS = {
    "indicators": ("indicators",),
    "entry_conditions": ("entry_conditions", "entryConditions"),
    "exit_conditions": ("exit_conditions", "exitConditions"),
    "parameters": ("parameters",),
    "description": ("description",),
    "reasoning": ("reasoning",),
}


@dataclass(frozen=True, slots=True)
class SweptSpec:
    """`spec_id` is None for one of a file that is not stored."""

    spec: StrategySpec
    spec_id: str | None


async def found_spec(said: str, desk: Callable[[], Implementations], *, as_of: Now, to_store: bool) -> SweptSpec:
    """What SPEC names. One of a file is that of its name where both are the same; else it cannot be stored.

    One of a file that is not stored needs no desk, so none is asked for.
    """
    if not (said.endswith(".json") or "/" in said):
        stored = await desk().spec(said.strip().upper(), as_of=as_of)
        if stored is None:
            raise UsageError(f"there is no spec {said[:60]!r}; `get_top_specs` lists those there are, a file is x.json")
        return SweptSpec(_read(said, stored.lists), stored.spec_id)
    spec = _of_file(Path(said))
    if not to_store:
        return SweptSpec(spec, None)
    stored = await desk().spec(spec.name, as_of=as_of)
    if stored is None:
        return SweptSpec(spec, None)
    if _same(spec, stored):
        return SweptSpec(spec, stored.spec_id)
    raise UsageError(
        f"another spec is stored as {spec.name}, so what is found for that of {said} cannot be; give it a name of its "
        "own, or say --store 0"
    )


def _same(spec: StrategySpec, stored: StoredSpec) -> bool:
    reading = read(**stored.lists)
    return reading.spec is not None and reading.spec.stored() == spec.stored()


def _of_file(path: Path) -> StrategySpec:
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST + 1)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    if len(data) > _LARGEST:
        raise UsageError(f"{path} is larger than {_LARGEST:,} bytes, which no spec is")
    try:
        said = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise UsageError(f"{path} is no JSON: {error}") from None
    if not isinstance(said, dict):
        raise UsageError(f"{path} holds no JSON object with name, {', '.join(_PARTS)}")
    found = {part: next((said[key] for key in keys if key in said), None) for part, keys in _PARTS.items()}
    return _read(str(path), {"name": said.get("name"), **found})


def _read(said: str, lists: Mapping[str, Any]) -> StrategySpec:
    reading = read(**lists)
    if reading.spec is not None:
        return reading.spec
    problems = [f"{one.path} {one.message}" for one in reading.problems]
    more = f"; and {len(problems) - _TOLD} more" if len(problems) > _TOLD else ""
    raise UsageError(f"{said[:200]} is no spec that can be run: {'; '.join(problems[:_TOLD])}{more}")
