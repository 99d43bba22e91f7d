"""Strategy specs, their implementations, and what those came to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal
from uuid import uuid4

from quantdeck.connections.database import Database, Row
from quantdeck.core.clock import Now
from quantdeck.core.contract import Source
from quantdeck.domain.strategy_specs import StrategySpec, structure
from quantdeck.sources.sql.as_of import canonical_uuid, refuse_later
from quantdeck.sources.sql.revision import Revision

__all__ = ["Implementation", "Origin", "RankedSpec", "Saved", "Specs", "Status"]

Origin = Literal["CANONICAL", "LLM_GENERATED", "ALL"]
Status = Literal["CANDIDATE", "VALIDATED", "DEPLOYED", "RETIRED", "ALL"]

_COMPARED = 2000
"""So many of the newest specs are looked at for one of the same structure."""

# NaN and the infinities would be best or worst of all; the bound leaves room for a sum.
_MEASURED = "CASE WHEN {0} BETWEEN -1e290 AND 1e290 THEN {0} END"

_ORIGINS: dict[Origin, str] = {
    "ALL": "",
    "CANONICAL": "AND s.source IN ('CANONICAL', 'MIGRATED')",  # other people's tables say MIGRATED of the same
    "LLM_GENERATED": "AND s.source = 'LLM_GENERATED'",
}

# One statement, so that the count and the page agree without a transaction, which costs more than they do. Means are
# rounded: a sum of floats depends on the order of its rows, and pages must agree.
_RANKED = f"""
    SELECT t.total, s.spec_id, s.name, s.indicators, s.entry_conditions, s.exit_conditions, s.parameters,
           r.avg_sharpe, r.implementations
    FROM (SELECT count(*) AS total FROM strategy_specs s WHERE s.is_active AND s.created_at <= :as_of {{origin}}) t
    LEFT JOIN (
        SELECT s.spec_id, s.name, i.avg_sharpe, COALESCE(i.implementations, 0) AS implementations
        FROM strategy_specs s LEFT JOIN (
            SELECT spec_id, count(*) AS implementations,
                   round(CAST(avg(CASE WHEN status IN ('VALIDATED', 'DEPLOYED')
                                       THEN {_MEASURED.format("forward_sharpe")} END) AS NUMERIC), 9) AS avg_sharpe
            FROM strategy_implementations WHERE created_at <= :as_of GROUP BY spec_id
        ) i ON i.spec_id = s.spec_id
        WHERE s.is_active AND s.created_at <= :as_of {{origin}}
        ORDER BY avg_sharpe DESC NULLS LAST, implementations DESC, s.name
        LIMIT :limit OFFSET :offset
    ) r ON TRUE
    LEFT JOIN strategy_specs s ON s.spec_id = r.spec_id
    ORDER BY r.avg_sharpe DESC NULLS LAST, r.implementations DESC, s.name
"""  # noqa: S608 - put together from the literals of this module

# Whatever they say now: what is retired or of another source today may have been in the ranking then.
_CHANGED = """
    SELECT max(i.updated_at) AS "implementations [TIMESTAMP]", max(s.updated_at) AS "specs [TIMESTAMP]"
    FROM strategy_specs s
    LEFT JOIN strategy_implementations i ON i.spec_id = s.spec_id AND i.created_at <= :as_of
    WHERE s.created_at <= :as_of
"""

_OF_STATUS = """
    FROM strategy_implementations i
    WHERE i.spec_id = :spec_id AND i.created_at <= :as_of AND (:status IS NULL OR i.status = :status)
"""

# No row where there is no spec, and one without an implementation where the page is empty.
_IMPLEMENTATIONS = f"""
    SELECT t.total, p.impl_id, p.parameters, p.symbol, p.status, p.sharpe, p.accuracy
    FROM (
        SELECT (SELECT count(*) {_OF_STATUS}) AS total FROM strategy_specs
        WHERE spec_id = :spec_id AND created_at <= :as_of
    ) t
    LEFT JOIN (
        SELECT i.impl_id, i.parameters, i.symbol, i.status, i.created_at,
               {_MEASURED.format("i.forward_sharpe")} AS sharpe, {_MEASURED.format("i.forward_accuracy")} AS accuracy
        {_OF_STATUS}
        ORDER BY sharpe DESC NULLS LAST, i.created_at DESC, i.impl_id
        LIMIT :limit OFFSET :offset
    ) p ON TRUE
    ORDER BY p.sharpe DESC NULLS LAST, p.created_at DESC, p.impl_id
"""  # noqa: S608 - likewise

_IMPLEMENTATIONS_CHANGED = """
    SELECT max(i.updated_at) AS "implementations [TIMESTAMP]"
    FROM strategy_implementations i JOIN strategy_specs s ON s.spec_id = i.spec_id
    WHERE i.spec_id = :spec_id AND i.created_at <= :as_of AND s.created_at <= :as_of
"""

_NEWEST = """
    SELECT name, indicators, entry_conditions, exit_conditions, updated_at FROM strategy_specs
    WHERE created_at <= :as_of ORDER BY created_at DESC, name LIMIT :most
"""

_NAMED = "SELECT spec_id, created_at FROM strategy_specs WHERE name = :name"

_SAVE = """
    INSERT INTO strategy_specs (spec_id, name, description, indicators, entry_conditions, exit_conditions, parameters,
                                source, reasoning, is_active, created_at, updated_at)
    VALUES (:spec_id, :name, :description, :indicators, :entry_conditions, :exit_conditions, :parameters,
            'LLM_GENERATED', :reasoning, TRUE, :now, :now)
    ON CONFLICT (name) DO NOTHING RETURNING spec_id
"""

_MARK = """
    SELECT s.entries AS specs, s.latest AS spec_at, i.entries AS implementations, i.latest AS implementation_at
    FROM (SELECT count(*) AS entries, max(updated_at) AS latest FROM strategy_specs) s
    CROSS JOIN (SELECT count(*) AS entries, max(updated_at) AS latest FROM strategy_implementations) i
"""


@dataclass(frozen=True)  # without slots, which take orjson six times as long to write
class RankedSpec:
    """A spec with how its implementations do. The average is None where none was run forward."""

    spec_id: str
    name: str
    indicators: list[dict[str, Any]]
    entry_conditions: list[dict[str, Any]]
    exit_conditions: list[dict[str, Any]]
    parameters: list[dict[str, Any]]
    avg_sharpe: float | None
    implementations_count: int


@dataclass(frozen=True)  # without slots, which take orjson six times as long to write
class Implementation:
    """A spec's parameters for a symbol. `forward_*` was seen after it was made, never in a backtest."""

    impl_id: str
    parameters: dict[str, Any]
    symbol: str
    forward_sharpe: float | None
    forward_accuracy: float | None
    status: str


@dataclass(frozen=True, slots=True)
class Saved:
    """The spec of a name: a new one, or the one that had it. Its id is None where that is not known yet."""

    spec_id: str | None
    created: bool


class Specs(Source):
    """Every read is as of an instant: what became known later is not in the answer."""

    group = "desk"

    def __init__(self, database: Database, source: str = "") -> None:
        self._database = database
        self.source = source or database.source
        self.journal = database.journal
        self._revision = Revision(self._mark)

    async def ping(self) -> None:
        """Return if these tables can be read."""
        await self._database.row("SELECT count(*) AS specs FROM strategy_specs WHERE FALSE")

    async def revision(self) -> Any:
        """Another one when a spec or an implementation was added, changed or taken away."""
        return await self._revision()

    async def ranked(self, origin: Origin, *, offset: int, limit: int, as_of: Now) -> tuple[list[RankedSpec], int]:
        """The active specs of an origin, the best average first, and how many there are in all.

        The average is over the forward Sharpe ratios of what is validated or deployed. What nobody measured comes
        last; ties go to more implementations, then to the name.
        """
        sql = _RANKED.format(origin=_ORIGINS[origin])
        page = {"as_of": as_of, "limit": limit, "offset": offset}
        if as_of.fixed:
            async with self._database.snapshot():
                (changed,) = await self._database.rows(_CHANGED, as_of=as_of)
                refuse_later(changed.values(), as_of=as_of, what="The ranking of specs", source=self.source)
                rows = await self._database.rows(sql, **page)
        else:
            rows = await self._database.rows(sql, **page)
        return [_ranked(row) for row in rows if row["spec_id"] is not None], int(rows[0]["total"])

    async def implementations(
        self, spec_id: str, status: Status, *, offset: int, limit: int, as_of: Now
    ) -> tuple[list[Implementation], int] | None:
        """A spec's implementations, the best forward Sharpe ratio first, and how many; None where there is no spec.

        What was not measured comes last; ties go to the newer one, then to the id. ALL is also whatever status a
        table has that is none of ours.
        """
        canonical = canonical_uuid(spec_id)
        if canonical is None:
            return None
        asked = {"spec_id": canonical, "as_of": as_of}
        page = {**asked, "status": None if status == "ALL" else status, "limit": limit, "offset": offset}
        if as_of.fixed:
            async with self._database.snapshot():
                (changed,) = await self._database.rows(_IMPLEMENTATIONS_CHANGED, **asked)
                what = f"The list of spec {canonical}'s implementations"
                refuse_later(changed.values(), as_of=as_of, what=what, source=self.source)
                rows = await self._database.rows(_IMPLEMENTATIONS, **page)
        else:
            rows = await self._database.rows(_IMPLEMENTATIONS, **page)
        if not rows:
            return None
        return [_implementation(row) for row in rows if row["impl_id"] is not None], int(rows[0]["total"])

    async def alike(self, spec: StrategySpec, *, as_of: Now) -> list[str]:
        """Names of specs that use the same types in the same order, the newest first, and not its own."""
        lists = ("indicators", "entry_conditions", "exit_conditions")
        stored = spec.stored()
        own = structure(*(stored[part] for part in lists))
        rows = await self._database.rows(_NEWEST, as_of=as_of, most=_COMPARED)
        then = (row for row in rows if not as_of.fixed or row["updated_at"] <= as_of)  # what others were then is gone
        found = (row["name"] for row in then if structure(*(row[part] for part in lists)) == own)
        return [name for name in found if name != spec.name]

    async def named(self, name: str, *, as_of: Now) -> Saved | None:
        """The spec that has a name, which is nobody's twice; None where it is free.

        Of one that was saved after a fixed instant no more is told than that the name is taken.
        """
        row = await self._database.row(_NAMED, name=name)
        if row is None:
            return None
        unseen = as_of.fixed and row["created_at"] > as_of
        return Saved(None if unseen else str(row["spec_id"]), created=False)

    async def save(self, spec: StrategySpec, *, as_of: Now) -> Saved:
        """Keep a spec under its name; whoever comes second finds the first. It is known from `as_of` on."""
        async with self._database.transaction():
            made = await self._database.returning(
                _SAVE,
                spec_id=str(uuid4()),
                name=spec.name,
                description=spec.description,
                reasoning=spec.reasoning,
                now=as_of,
                **spec.stored(),
            )
            held = None if made else await self.named(spec.name, as_of=as_of)
        self._revision.changed()
        if made:
            return Saved(str(made[0]["spec_id"]), created=True)
        return held or Saved(None, created=False)

    async def _mark(self) -> Any:
        row = await self._database.row(_MARK)
        return None if row is None else list(row.values())


def _ranked(row: Row) -> RankedSpec:
    return RankedSpec(
        spec_id=str(row["spec_id"]),
        name=row["name"],
        indicators=_objects(row["indicators"]),
        entry_conditions=_objects(row["entry_conditions"]),
        exit_conditions=_objects(row["exit_conditions"]),
        parameters=_objects(row["parameters"]),
        avg_sharpe=row["avg_sharpe"],
        implementations_count=int(row["implementations"]),
    )


def _objects(stored: Any) -> list[dict[str, Any]]:
    """What a list of ours holds; other programs have stored other things there."""
    return [one for one in stored if isinstance(one, dict)] if isinstance(stored, list) else []


def _implementation(row: Row) -> Implementation:
    parameters = row["parameters"]
    return Implementation(
        str(row["impl_id"]),
        parameters if isinstance(parameters, dict) else {},
        row["symbol"],
        row["sharpe"],
        row["accuracy"],
        row["status"],
    )
