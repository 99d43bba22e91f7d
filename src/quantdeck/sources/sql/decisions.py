"""What agents decided, newest first."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from quantdeck.connections.database import Database, Row
from quantdeck.core.clock import Now
from quantdeck.core.contract import Source
from quantdeck.domain.consensus import Action
from quantdeck.domain.decisions import tier
from quantdeck.sources.sql.revision import Revision

__all__ = ["Decision", "Decisions"]

_KNOWN = "created_at <= :as_of"
_FILTERS = {
    (False, False): _KNOWN,
    (True, False): f"symbol = :symbol AND {_KNOWN}",
    (False, True): f"action = :action AND {_KNOWN}",
    (True, True): f"symbol = :symbol AND action = :action AND {_KNOWN}",
}
"""By whether a symbol and an action are asked for."""

# One statement, so one moment and one round trip. The page is chosen in the index and only then are its rows read:
# skipping 40,000 rows would mean reading each of them. Where the page is empty, the total is still told.
_RECENT = """
    SELECT t.total, d.*
    FROM (SELECT count(*) AS total FROM agent_decisions WHERE {filter}) t
    LEFT JOIN (
        SELECT f.seq, f.decision_id, f.symbol, f.action, f.confidence, f.opportunity_score, f.reasoning, f.created_at
        FROM (
            SELECT seq FROM agent_decisions WHERE {filter}
            ORDER BY created_at DESC, seq DESC LIMIT :limit OFFSET :offset
        ) p JOIN agent_decisions f ON f.seq = p.seq
    ) d ON TRUE
    ORDER BY d.created_at DESC, d.seq DESC
"""

_SAVE = """
    INSERT INTO agent_decisions (
        decision_id, symbol, action, confidence, opportunity_score, opportunity_tier, reasoning, tool_calls, caller,
        created_at
    ) VALUES (
        :decision_id, :symbol, :action, :confidence, :opportunity_score, :opportunity_tier, :reasoning, :tool_calls,
        :caller, :created_at
    )
"""

# The highest number alone would not do: on PostgreSQL a row can be committed after one with a higher number. So the
# rows among the last numbers are counted too, more of them than there can be transactions under way. The id tells a
# table that was made anew from one that has as many rows.
_REVISION = """
    SELECT m.seq, l.decision_id, (SELECT count(*) FROM agent_decisions WHERE seq > m.seq - 500) AS latest
    FROM (SELECT max(seq) AS seq FROM agent_decisions) m JOIN agent_decisions l ON l.seq = m.seq
"""


@dataclass(frozen=True)  # without slots, which take orjson six times as long to write
class Decision:
    """One decision. The score is 0 to 100, and None where nobody scored it."""

    decision_id: str
    symbol: str
    action: Action
    confidence: float
    opportunity_score: float | None
    reasoning: str
    created_at: datetime


class Decisions(Source):
    """Decisions are dated by the world's clock, so one that was saved at a fixed instant is known as of it.

    While the clock runs it may be set back. Nothing that is saved here then is older than what was saved before it, nor
    hidden until the clock has caught up.
    """

    group = "decisions"

    def __init__(self, database: Database, source: str = "") -> None:
        self._database = database
        self._revision = Revision(self._ask_revision)
        self.source = source or database.source
        self.journal = database.journal
        self._newest = Now.of(datetime.min.replace(tzinfo=UTC), fixed=False)

    async def ping(self) -> None:
        """Return if the table can be read."""
        await self._database.row("SELECT count(*) AS decisions FROM agent_decisions WHERE FALSE")

    async def revision(self) -> Any:
        """Another one after every save, by whichever process."""
        return await self._revision()

    async def recent(
        self, *, symbol: str | None, action: Action | None, offset: int, limit: int, as_of: Now
    ) -> tuple[list[Decision], int]:
        """A page of what was decided, newest first, and how many there are in all.

        What was decided at one instant comes in the order of its saving, the last first.
        """
        given = {"symbol": symbol, "action": action}
        asked = {name: value for name, value in given.items() if value is not None}
        sql = _RECENT.format(filter=_FILTERS[symbol is not None, action is not None])
        rows = await self._database.rows(sql, **asked, limit=limit, offset=offset, as_of=self._not_before(as_of))
        return [_decision(row) for row in rows if row["decision_id"] is not None], int(rows[0]["total"])

    async def save(
        self,
        *,
        symbol: str,
        action: Action,
        confidence: float,
        opportunity_score: float | None,
        reasoning: str,
        tool_calls: dict[str, Any],
        caller: str,
        at: Now,
    ) -> str:
        """Keep a decision for good; its new id. The tier follows from the score."""
        decision_id, created_at = str(uuid4()), self._not_before(at)
        await self._database.execute(
            _SAVE,
            decision_id=decision_id,
            symbol=symbol,
            action=action,
            confidence=confidence,
            opportunity_score=opportunity_score,
            opportunity_tier=tier(opportunity_score),
            reasoning=reasoning,
            tool_calls=tool_calls,
            caller=caller,
            created_at=created_at,
        )
        if not created_at.fixed:
            self._newest = self._not_before(created_at)
        self._revision.changed()
        return decision_id

    def _not_before(self, now: Now) -> Now:
        return now if now.fixed else max(now, self._newest)

    async def _ask_revision(self) -> Any:
        row = await self._database.row(_REVISION)
        return None if row is None else [row["seq"], str(row["decision_id"]), row["latest"]]


def _decision(row: Row) -> Decision:
    return Decision(
        str(row["decision_id"]), row["symbol"], row["action"], row["confidence"], row["opportunity_score"],
        row["reasoning"], row["created_at"],
    )  # fmt: skip
