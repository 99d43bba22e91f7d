"""A desk as a file: the shape in which a person brings a portfolio in and out (docs/how-to/bring-a-portfolio.md).

`read` tells every problem at once, each with its path. What may be left out is filled in by `desk_exchange`, which
knows what is there already.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, Self
from uuid import NAMESPACE_URL, UUID, uuid5

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, ValidationError, model_validator

from quantdeck.domain import symbols

__all__ = ["FORMAT", "AccountRow", "DeskFile", "FileProblems", "LimitsRow", "PositionRow", "made_id", "read"]

FORMAT: Literal["quantdeck desk 1"] = "quantdeck desk 1"
MOST_TOLD = 20


class FileProblems(ValueError):
    """What is wrong with a file: a sentence for each problem, after its path."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


def _between(at: datetime) -> datetime:
    at = at.astimezone(UTC)
    if not 1970 <= at.year < 2200:
        raise ValueError("must be between 1970 and 2200")
    return at


def _pair(text: str) -> str:
    try:
        return symbols.pair(text)
    except symbols.UnknownSymbolError as error:
        raise ValueError(str(error)) from None


def _canonical(text: str) -> str:
    try:
        return str(UUID(text))
    except ValueError:
        raise ValueError("is no UUID; leave it out to have one made") from None


Name = Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[^\x00-\x1f]*$")]
Amount = Annotated[float, Field(ge=-1e300, le=1e300)]
Positive = Annotated[float, Field(gt=0, le=1e300)]
Limit = Annotated[float, Field(ge=0, le=1e300)]
Time = Annotated[AwareDatetime, AfterValidator(_between)]
Symbol = Annotated[str, AfterValidator(_pair)]
Id = Annotated[str, AfterValidator(_canonical)]


class _Part(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)


class _Row(_Part):
    account_id: Name | None = None
    created_at: Time | None = None
    updated_at: Time | None = None

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.created_at and self.updated_at and self.updated_at < self.created_at:
            raise ValueError("updated_at is before created_at")
        return self


class AccountRow(_Row):
    """An account. Of available_balance and margin_used the one that is left out is what the other leaves."""

    currency: Annotated[str, Field(pattern="^[A-Z0-9]{2,10}$")] = "USD"
    total_balance: Amount
    available_balance: Amount | None = None
    margin_used: Amount | None = None
    peak_balance: Amount | None = None


class PositionRow(_Row):
    """A position, open where it has no closed_at."""

    position_id: Id | None = None
    symbol: Symbol
    side: Literal["LONG", "SHORT"]
    size: Positive
    entry_price: Positive
    current_price: Positive | None = None
    realized_pnl: Amount | None = None
    opened_at: Time | None = None
    closed_at: Time | None = None

    @model_validator(mode="after")
    def _closed_after_it_was_opened(self) -> Self:
        if self.opened_at and self.closed_at and self.closed_at < self.opened_at:
            raise ValueError("closed_at is before opened_at")
        return self


class LimitsRow(_Row):
    """Limits of an account; what is left out is not checked."""

    strategy_id: Annotated[str, Field(max_length=128, pattern=r"^[^\x00-\x1f]*$")] = ""
    max_position_size: Limit | None = None
    max_position_pct: Limit | None = None
    max_exposure_pct: Limit | None = None
    max_open_positions: Annotated[int, Field(ge=0, le=1_000_000)] | None = None
    max_daily_loss: Limit | None = None
    max_daily_loss_pct: Limit | None = None
    max_drawdown_pct: Limit | None = None
    allow_short: bool | None = None
    max_units: Limit | None = None
    max_exposure: Limit | None = None


class DeskFile(_Part):
    """The whole. `source` is `demo` where it was taken out of a demo world."""

    format: Literal["quantdeck desk 1"] = FORMAT
    source: str = ""
    accounts: list[AccountRow] = []
    positions: list[PositionRow] = []
    risk_limits: list[LimitsRow] = []


def read(text: bytes, *, account: str = "default") -> DeskFile:
    """The file, or FileProblems. `account` is whose rows are that name none."""
    try:
        file = DeskFile.model_validate_json(text.removeprefix(b"\xef\xbb\xbf"))
    except ValidationError as error:
        problems = error.errors(include_url=False, include_input=False)
        told = [_told(problem) for problem in problems[:MOST_TOLD]]
        if len(problems) > MOST_TOLD:
            told.append(f"and {len(problems) - MOST_TOLD} more")
        raise FileProblems(told) from None
    if not (file.accounts or file.positions or file.risk_limits):
        raise FileProblems(["there is nothing in it: no accounts, positions or risk_limits"])
    if repeated := list(_repeated(file, account)):
        raise FileProblems(repeated[:MOST_TOLD])
    return file


def _repeated(file: DeskFile, account: str) -> Iterator[str]:
    """Rows of which the one would overwrite the other."""
    seen: dict[tuple[str, ...], str] = {}
    lots = [(one, one.account_id or account) for one in file.positions]
    limits = [(one.account_id or account, one.strategy_id) for one in file.risk_limits]
    keys: list[tuple[tuple[str, ...], str]] = [
        *((("account", one.account_id or account), f"accounts[{n}].account_id") for n, one in enumerate(file.accounts)),
        *((("position", made_id(one, name)), f"positions[{n}]") for n, (one, name) in enumerate(lots)),
        *((("limits", *one), f"risk_limits[{n}]") for n, one in enumerate(limits)),
    ]
    for key, path in keys:
        if key in seen:
            advice = "; give each its own position_id" if key[0] == "position" else ""
            yield f"{path}: is the same as {seen[key]}{advice}"
        seen.setdefault(key, path)


def made_id(row: PositionRow, account: str) -> str:
    """Its id; where it has none, the same for the same lot, so that it is found again."""
    if row.position_id is not None:
        return row.position_id
    opened = "" if row.opened_at is None else row.opened_at.isoformat()
    return str(uuid5(NAMESPACE_URL, f"quantdeck position {account} {row.symbol} {row.side} {opened}"))


def _told(problem: Any) -> str:
    path = ""
    for step in problem["loc"]:
        path += f"[{step}]" if isinstance(step, int) else f".{step}" if path else str(step)
    if problem["type"] == "extra_forbidden":
        words = "is no member that this has"
    elif problem["type"].startswith(("datetime", "timezone")):
        words = "must be a time with its offset, such as 2026-01-15T09:30:00Z"
    else:
        cause = problem.get("ctx", {}).get("error")
        words = str(cause or problem["msg"]).replace("Input should be", "must be").replace("Input should", "must")
        words = words.replace("Field required", "is missing")
    return f"{path}: {words}" if path else f"it is no such file: {words}"
