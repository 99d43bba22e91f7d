"""What the times of a file mean. Nothing is taken for granted: what could be two instants is refused or asked for."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

from quantdeck.collectors.bar_files import FileProblem

__all__ = ["UNITS", "TimeReader", "UnreadableTime", "reader", "zone"]

UNITS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_UNIT_NAMES = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WHOLE = re.compile(r"-?\d{1,40}(\.0*)?")
_DATE = re.compile(r"(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})(?=$|[T ])")
_ONLY_A_DATE = re.compile(r"\d{4}-?\d{2}-?\d{2}")
_COMPACT = {8: "%Y%m%d", 12: "%Y%m%d%H%M", 14: "%Y%m%d%H%M%S"}
_YEARS = range(1900, 2101)
_AFTERNOON = 16


class UnreadableTime(ValueError):
    """One time that is none; the sentence is the reason for its row's rejection."""


class TimeReader:
    """Reads the cells of one file. `words` say how; `days` that they are dates and nothing finer."""

    def __init__(
        self,
        words: str,
        read: Callable[[str], int],
        *,
        days: bool = False,
        wall: tzinfo | None = None,
        per_s: int = 0,
    ) -> None:
        self.words, self.read, self.days, self._wall = words, read, days, wall
        self.per_s = per_s  # of mere numbers, how many are a second

    def day(self, cell: str) -> int:
        """The open of a bar that lasts a day: that of its date as it is written, or is in the zone that was said.

        Such a bar is known when that date is over in UTC. One that begins in the afternoon would then be known before
        it ends, and there is no telling which day it is of.
        """
        second = self.read(cell)
        if self.days:
            return second
        written = _parsed(cell)
        wall = self._wall or (written.tzinfo if written is not None else None) or UTC
        local = _at(second).astimezone(wall)
        if local.hour >= _AFTERNOON:
            raise UnreadableTime(f"opens late in its day, which may be the next; write dates: {_shown(cell)}")
        return _second(local.replace(hour=0, minute=0, second=0, tzinfo=UTC), cell)


def _at(second: int) -> datetime:
    return _EPOCH + timedelta(seconds=second)


def zone(name: str) -> tzinfo:
    """The zone of this name."""
    if name.upper() in {"UTC", "Z"}:
        return UTC
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, LookupError) as error:
        raise FileProblem(f"--tz {name!r} is no zone; it is written like UTC or America/New_York") from error


def reader(sample: Sequence[str], *, tz: tzinfo | None, unit: str = "", form: str = "") -> TimeReader:
    """How to read these cells and those that follow them; FileProblem where the file leaves it open."""
    cells = [cell.strip() for cell in sample if cell.strip()]
    if not cells:
        raise FileProblem("no row has a time")
    if form:
        return _by_form(form, tz)
    if unit:
        return _epoch(unit, "as --time-unit says", tz)
    if _most(cells, _WHOLE.fullmatch):
        lengths = {len(cell) for cell in cells}
        compact = _COMPACT.get(lengths.pop()) if len(lengths) == 1 else None
        if compact and all(_is_compact(cell, compact) for cell in cells):
            return _by_form(compact, tz)
        return _epoch(_unit_of(cells), "by the size of the numbers", tz)
    return _iso(cells, tz)


def _most(cells: Sequence[str], test: Callable[[str], object]) -> bool:
    return sum(1 for cell in cells if test(cell)) > len(cells) / 2


def _is_compact(cell: str, form: str) -> bool:
    try:
        return datetime.strptime(cell, form).year in _YEARS  # noqa: DTZ007 - only whether it is one
    except ValueError:
        return False


def _unit_of(cells: Sequence[str]) -> str:
    whole = sorted(abs(int(cell.partition(".")[0])) for cell in cells if _WHOLE.fullmatch(cell))
    middle = whole[len(whole) // 2]
    return next((unit for unit, end in (("s", 10**11), ("ms", 10**14), ("us", 10**17)) if middle < end), "ns")


def _epoch(unit: str, why: str, tz: tzinfo | None) -> TimeReader:
    per_s = UNITS[unit]

    def read(cell: str) -> int:
        if not _WHOLE.fullmatch(cell.strip()):
            raise UnreadableTime(f"time is no number: {_shown(cell)}" if cell.strip() else "time is empty")
        number = int(cell.partition(".")[0])
        second, rest = divmod(number, per_s)
        if rest:
            raise UnreadableTime(f"does not open at a whole second: {_shown(cell)}")
        return second

    return TimeReader(f"{_UNIT_NAMES[unit]} since 1970, {why}", read, wall=tz, per_s=per_s)


def _iso(cells: Sequence[str], tz: tzinfo | None) -> TimeReader:
    readable = [cell for cell in cells if _parsed(cell) is not None]
    if len(readable) <= len(cells) / 2:
        raise FileProblem(
            f"times such as {_shown(cells[0])} are not understood; say how they are written with --time-format, for "
            "example --time-format '%d.%m.%Y %H:%M'"
        )
    if all(_ONLY_A_DATE.fullmatch(_dashed(cell)) for cell in readable):
        return TimeReader("dates; a day is that of UTC", _day, days=True)
    if all(parsed.tzinfo is None for cell in readable if (parsed := _parsed(cell)) is not None):
        if tz is None:
            raise FileProblem(
                f"times such as {_shown(readable[0])} have no offset from UTC; say whose they are with --tz UTC, or "
                "with --tz and a zone such as America/New_York"
            )
        return TimeReader(f"without an offset, taken as {tz} (--tz)", _local(tz), wall=tz)
    return TimeReader("ISO-8601, each with its offset", _with_offset(tz), wall=tz)


def _dashed(cell: str) -> str:
    return _DATE.sub(lambda found: f"{found[1]}-{int(found[2]):02}-{int(found[3]):02}", cell.strip(), count=1)


def _parsed(cell: str) -> datetime | None:
    text = cell.strip()
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        pass
    text = _dashed(text)
    if text.upper().endswith(" UTC"):
        text = text[:-4] + "+00:00"
    text = re.sub(r" (?=[+-]\d{2}:?\d{2}$)", "", text)
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def _understood(cell: str) -> datetime:
    parsed = _parsed(cell)
    if parsed is None:
        raise UnreadableTime(f"time cannot be read: {_shown(cell)}" if cell.strip() else "time is empty")
    return parsed


def _second(at: datetime, cell: str) -> int:
    since = at - _EPOCH
    if since.microseconds:
        raise UnreadableTime(f"does not open at a whole second: {_shown(cell)}")
    return since.days * 86_400 + since.seconds


def _day(cell: str) -> int:
    parsed = _understood(cell)
    if not _ONLY_A_DATE.fullmatch(_dashed(cell)):
        raise UnreadableTime(f"is no mere date, as the others are: {_shown(cell)}")
    return _second(parsed.replace(tzinfo=UTC), cell)


def _with_offset(tz: tzinfo | None) -> Callable[[str], int]:
    local = _local(tz) if tz is not None else None

    def read(cell: str) -> int:
        parsed = _understood(cell)
        if parsed.tzinfo is not None:
            return _second(parsed, cell)
        if local is None:
            raise UnreadableTime(f"time has no offset, as others have: {_shown(cell)}")
        return local(cell)

    return read


def _local(tz: tzinfo, parse: Callable[[str], datetime] = _understood) -> Callable[[str], int]:
    """Where an hour has one offset, which nearly all have, it is looked up once."""
    known: dict[tuple[int, int, int, int], int | None] = {}

    def read(cell: str) -> int:
        parsed = parse(cell)
        if parsed.tzinfo is not None:
            return _second(parsed, cell)
        hour = (parsed.year, parsed.month, parsed.day, parsed.hour)
        if hour not in known:
            known[hour] = _offset_of(datetime(*hour), tz)  # noqa: DTZ001 - it is the wall's
        shift_s = known[hour]
        if shift_s is None:
            shift_s = _only_offset(parsed, tz, cell)
        return _second(parsed.replace(tzinfo=UTC), cell) - shift_s

    return read


def _offset_of(hour: datetime, tz: tzinfo) -> int | None:
    """An hour's offset in seconds; None for one in which clocks change."""
    ends = (hour, hour + timedelta(minutes=59, seconds=59))
    try:
        offsets = {end.replace(tzinfo=tz, fold=fold).utcoffset() for end in ends for fold in (0, 1)}
    except OverflowError:
        return None
    only = offsets.pop() if len(offsets) == 1 else None
    return None if only is None else round(only.total_seconds())


def _only_offset(at: datetime, tz: tzinfo, cell: str) -> int:
    first, second = (at.replace(tzinfo=tz, fold=fold).utcoffset() for fold in (0, 1))
    if first == second and first is not None:
        return round(first.total_seconds())
    if first is not None and second is not None and first > second:
        raise UnreadableTime(f"is there twice, since clocks went back; write the offset: {_shown(cell)}")
    raise UnreadableTime(f"is not there, since clocks went forward: {_shown(cell)}")


def _by_form(form: str, tz: tzinfo | None) -> TimeReader:
    def parse(cell: str) -> datetime:
        try:
            return datetime.strptime(cell.strip(), form)  # noqa: DTZ007 - whose it is is seen to below
        except ValueError:
            raise UnreadableTime(f"time is not written as {form}: {_shown(cell)}") from None

    if "%z" in form:
        return TimeReader(f"as {form}", lambda cell: _second(parse(cell), cell), wall=tz)
    if not re.search(r"%[HIMSfcXTRp]", form):

        def day(cell: str) -> int:
            return _second(parse(cell).replace(tzinfo=UTC), cell)

        return TimeReader(f"dates as {form}; a day is that of UTC", day, days=True)
    if tz is None:
        raise FileProblem(f"times as {form} have no offset from UTC; say whose they are with --tz UTC or another zone")
    return TimeReader(f"as {form}, taken as {tz} (--tz)", _local(tz, parse), wall=tz)


def _shown(cell: object) -> str:
    return ascii(str(cell)[:40])
