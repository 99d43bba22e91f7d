"""When a Pyth feed's market is open, by the schedule that its row carries.

`America/New_York;0930-1600,…,C,C;1225/C,1224/0930-1300`: a zone, seven days from Monday, and dates of the year that are
otherwise. A day is O (open), C (closed) or stretches joined by &; 2400 is its end.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from itertools import pairwise
from zoneinfo import ZoneInfo

__all__ = ["MarketState", "Schedule", "schedule_of"]

_LOOK_DAYS = 16
"""How far ahead a change is looked for: no market rests longer."""

Stretches = tuple[tuple[int, int], ...]  # minutes of a local day

_STRETCH = re.compile(r"(\d\d)(\d\d)-(\d\d)(\d\d)")
_DATE = re.compile(r"(\d\d)(\d\d)/(.+)")
_DAY = 1440


@dataclass(frozen=True, slots=True)
class MarketState:
    """Whether a market is open, and when that next changes; None where it does not change for weeks."""

    is_open: bool
    changes_at: datetime | None


@dataclass(frozen=True)
class Schedule:
    """A week of a market, and the dates on which it keeps other hours."""

    zone: ZoneInfo
    week: tuple[Stretches, ...]
    dates: Mapping[tuple[int, int], Stretches]

    def state(self, instant: datetime) -> MarketState:
        """At an instant; its stretches are whole minutes, begin included and end not."""
        local = instant.astimezone(self.zone).date()
        opened = _joined([stretch for ahead in range(_LOOK_DAYS) for stretch in self._of(local, ahead)])
        for begins, ends in opened:
            if instant < begins:
                return MarketState(is_open=False, changes_at=begins)
            if instant < ends:
                endless = ends - instant > timedelta(_LOOK_DAYS - 2)
                return MarketState(is_open=True, changes_at=None if endless else ends)
        return MarketState(is_open=False, changes_at=None)

    def _of(self, local: date, ahead: int) -> list[tuple[datetime, datetime]]:
        day = local + timedelta(ahead)
        stretches = self.dates.get((day.month, day.day), self.week[day.weekday()])
        return [(self._at(day, begins), self._at(day, ends)) for begins, ends in stretches]

    def _at(self, day: date, minutes: int) -> datetime:
        days, rest = divmod(minutes, _DAY)
        local = datetime.combine(day + timedelta(days), time(rest // 60, rest % 60), tzinfo=self.zone)
        return local.astimezone(UTC)


@lru_cache(512)
def schedule_of(text: str) -> Schedule | None:
    """What a row says, or None where it cannot be read: a schedule of tomorrow must not cost a feed."""
    try:
        zone, week, dates = text.split(";")
        days = tuple(_stretches(day) for day in week.split(","))
        if len(days) != 7:
            return None
        return Schedule(ZoneInfo(zone), days, dict(_dated(one) for one in dates.split(",") if one.strip()))
    except (ValueError, KeyError, OSError):  # KeyError is zoneinfo's for a zone that it does not know
        return None


def _dated(text: str) -> tuple[tuple[int, int], Stretches]:
    said = _DATE.fullmatch(text.strip())
    if said is None:
        raise ValueError(text)
    return (int(said[1]), int(said[2])), _stretches(said[3])


def _stretches(text: str) -> Stretches:
    match text.strip():
        case "O":
            return ((0, _DAY),)
        case "C":
            return ()
        case hours:
            return tuple(sorted(_stretch(one) for one in hours.split("&")))


def _stretch(text: str) -> tuple[int, int]:
    said = _STRETCH.fullmatch(text.strip())
    if said is None:
        raise ValueError(text)
    begins, ends = (int(said[at]) * 60 + int(said[at + 1]) for at in (1, 3))
    if not 0 <= begins < ends <= _DAY:
        raise ValueError(text)
    return begins, ends


def _joined(stretches: list[tuple[datetime, datetime]]) -> list[tuple[datetime, datetime]]:
    """Stretches that touch become one: a market that is open till 2400 and from 0000 does not close between."""
    begins = [at for at, _ in stretches[:1]] + [b for (_, ended), (b, _) in pairwise(stretches) if b > ended]
    ends = [ended for (_, ended), (b, _) in pairwise(stretches) if b > ended] + [at for _, at in stretches[-1:]]
    return list(zip(begins, ends, strict=True))
