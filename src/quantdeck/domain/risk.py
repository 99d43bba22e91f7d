"""Whether a trade keeps within an account's limits, and how large it may be at most.

A trade first closes what is held on the other side of its symbol; what is left of it opens. Only what it opens is held
against the limits: what only closes always passes.

    position    the symbol's whole position after the trade, in units or at the trade's price
    exposure    all positions after the trade, long and short alike, at their last known prices
    balance     what the trade opens must be paid for by the available balance; a short is covered in full
    positions   symbols held, long and short apart; counts against a trade that adds one
    daily loss  what was lost since midnight UTC; when it reaches its limit, nothing more is opened
    drawdown    how far the account is below the most it ever had; likewise

Numbers count as they are written: 1.1 at 3,000 is 3,300 and keeps within it, though in floats it is a little more.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property, lru_cache
from math import inf, isfinite
from typing import Literal

from quantdeck.domain.exact import exact
from quantdeck.domain.holdings import Holding, HoldingSide, worth

__all__ = ["Account", "Assessment", "Check", "Limits", "Side", "Trade", "assess", "left", "opens"]

Side = Literal["BUY", "SELL"]

NOTHING, ONE = Decimal(0), Decimal(1)
DUST = Decimal("1e-12")
"""By this share more than is held is still all of it: a caller's sums differ from ours in their last digit."""


@dataclass(frozen=True, slots=True)
class Limits:
    """None is not checked, 0 allows nothing. `pct` are fractions of the account's total balance."""

    max_position_size: float | None = None
    max_position_pct: float | None = None
    max_exposure_pct: float | None = None
    max_open_positions: int | None = None
    max_daily_loss: float | None = None
    max_daily_loss_pct: float | None = None
    max_drawdown_pct: float | None = None
    allow_short: bool = False
    max_units: float | None = None
    max_exposure: float | None = None


@dataclass(frozen=True, slots=True)
class Account:
    """What an account has, in its own currency. `lost_today` is a loss above 0 and a gain below it.

    What is `available` is not checked where it is None.
    """

    currency: str
    equity: float
    available: float | None
    peak: float
    lost_today: float
    holdings: tuple[Holding, ...] = ()


@dataclass(frozen=True, slots=True)
class Trade:
    """`unit` is what one unit of the symbol costs in the account's currency; None where nobody knows."""

    symbol: str
    side: Side
    size: float
    unit: float | None


@dataclass(frozen=True, slots=True)
class Check:
    """One rule: how much of how much is used, or would be."""

    rule: str
    used: float
    limit: float
    breached: bool
    words: str
    currency: str

    @property
    def said(self) -> str:
        """What is wrong, where it is breached."""
        used, limit = _figure(self.used), _figure(self.limit)
        return self.words.format(used=used, limit=limit, rule=self.rule, currency=self.currency)

    @property
    def share(self) -> float:
        """0 to 1; a breach is 1."""
        if self.breached or self.used >= self.limit:
            return 1.0
        return max(self.used / self.limit, 0.0)


@dataclass(frozen=True)
class Assessment:
    """What is to be said of a trade. `checks` are all that were held against it."""

    checks: tuple[Check, ...]
    opens: bool
    max_size: float

    @cached_property
    def breaches(self) -> tuple[Check, ...]:
        return tuple(check for check in self.checks if check.breached)

    @cached_property
    def tightest(self) -> Check | None:
        return max(self.checks, key=lambda check: check.share, default=None)

    @property
    def risk_score(self) -> float:
        """The share of the tightest limit that is used; 0 for what only closes."""
        return 0.0 if self.tightest is None else self.tightest.share

    def breach(self, rule: str) -> Check | None:
        return next((check for check in self.breaches if check.rule == rule), None)


def opens(trade: Trade, account: Account) -> bool:
    """Whether anything of the trade is left when it has closed what it can."""
    return _opened(exact(trade.size), _closable(trade, account)) > 0


def assess(trade: Trade, account: Account, limits: Limits) -> Assessment:
    """Hold a trade against every limit.

    `max_size` is the largest float that passes them all: asking for it again passes too. A trade that opens something
    needs its `unit`.
    """
    closing = _closable(trade, account)
    opened = _opened(exact(trade.size), closing)
    if trade.unit is None:
        if opened:
            raise ValueError("what a trade opens cannot be assessed without its price")
        return Assessment((), opens=False, max_size=float(closing))
    unit = exact(trade.unit)
    others = [_value(one, account.currency) for one in account.holdings if one.symbol != trade.symbol]
    standing = tuple(_standing(trade, account, limits, closing, others))
    growing = tuple(_growing(trade, account, limits, unit, others))

    def fits(size: float) -> bool:
        more = _opened(exact(size), closing)
        return not more or all(grows.fits(more) for grows in growing)

    most = float(closing)
    if not any(check.breached for check in standing):
        rooms = [(grows.limit - grows.used(NOTHING)) / grows.unit for grows in growing]
        largest = _largest(fits, float(closing + max(min(rooms), NOTHING)) if rooms else inf)
        most = largest if _opened(exact(largest), closing) else most
    checks = (*standing, *(grows.check(opened) for grows in growing)) if opened else ()
    return Assessment(checks, opens=opened > 0, max_size=most)


def left(trade: Trade, account: Account, limits: Limits) -> tuple[Check, ...]:
    """Every limit as a trade leaves it that only closes. None is breached: such a trade always passes."""
    rest = max(_closable(trade, account) - exact(trade.size), NOTHING)
    price = trade.unit or 0.0
    still = [Holding(trade.symbol, _other(trade), float(rest), price, price)] if rest else []
    account = replace(account, holdings=(*(one for one in account.holdings if one.symbol != trade.symbol), *still))
    others = [_value(one, account.currency) for one in account.holdings if one.symbol != trade.symbol]
    growing = _growing(replace(trade, side=_OPPOSITE[trade.side]), account, limits, exact(price), others)
    checks = [*_losses(account, limits), *(grows.check(NOTHING) for grows in growing)]
    if limits.max_open_positions is not None:
        held = len({(one.symbol, one.side) for one in account.holdings})
        checks.append(Check("max_open_positions", held, limits.max_open_positions, False, "", account.currency))
    return tuple(replace(check, breached=False) for check in checks)


def _figure(amount: float) -> str:
    return f"{amount:,.10g}" if isfinite(amount) else "over 1.797e+308"


# Rules that do not depend on the size of what is opened.


def _standing(
    trade: Trade, account: Account, limits: Limits, closing: Decimal, others: list[Decimal | None]
) -> Iterator[Check]:
    if trade.side == "SELL" and not limits.allow_short:
        held = f"only {float(closing):,.10g} of it" if closing else "none of it"
        said = f"selling more {trade.symbol} than is held would open a short, which is not allowed; {held} is held"
        yield Check("allow_short", 1.0, 0.0, True, said, account.currency)
    if limits.max_open_positions is not None:
        yield _count(trade, account, limits.max_open_positions, closing)
    yield from _losses(account, limits)
    for rule in ("max_exposure", "max_exposure_pct"):
        if (most := getattr(limits, rule)) is not None and None in others:
            said = "what all positions are worth in {currency} cannot be told, and so not held against {rule}"
            yield Check(rule, inf, most, True, said, account.currency)


def _count(trade: Trade, account: Account, most: int, closing: Decimal) -> Check:
    held = {(one.symbol, one.side) for one in account.holdings}
    adds = (trade.symbol, _side(trade)) not in held
    after = len(held) + adds - (closing > 0)
    said = "{used} positions would be open, and {limit} may be ({rule})"
    return Check("max_open_positions", after, most, after > most and after > len(held), said, account.currency)


def _losses(account: Account, limits: Limits) -> Iterator[Check]:
    lost, peak = max(0.0, account.lost_today), max(account.peak, account.equity)
    began_with = max(account.equity + account.lost_today, 0.0)
    today = "today's loss of {used} {currency} has reached the limit of {limit} ({rule})"
    fallen = "the balance is down by {used} of its highest, and has reached the limit of {limit} ({rule})"
    down = (peak - account.equity) / peak if peak > 0 else 0.0
    for rule, used, most, words in (
        ("max_daily_loss", lost, limits.max_daily_loss, today),
        ("max_daily_loss_pct", lost, _share(limits.max_daily_loss_pct, began_with), today),
        ("max_drawdown_pct", down, limits.max_drawdown_pct, fallen),
    ):
        if most is not None:
            yield Check(rule, used, most, used >= most, words, account.currency)


# Rules that do.


@dataclass(frozen=True, slots=True)
class _Grows:
    """A use that grows with what is opened."""

    rule: str
    limit: Decimal
    unit: Decimal
    held: Decimal
    beside: Decimal
    words: str
    currency: str

    def used(self, opened: Decimal) -> Decimal:
        return (self.held + opened) * self.unit + self.beside

    def fits(self, opened: Decimal) -> bool:
        # A limit that is used up has no room either for what is too little to show beside what is held.
        return self.used(opened) <= self.limit and self.used(NOTHING) < self.limit

    def check(self, opened: Decimal) -> Check:
        used, limit = float(self.used(opened)), float(self.limit)
        return Check(self.rule, used, limit, not self.fits(opened), self.words, self.currency)


def _growing(
    trade: Trade, account: Account, limits: Limits, unit: Decimal, others: list[Decimal | None]
) -> Iterator[_Grows]:
    equity = max(account.equity, 0.0)
    held = _held(account, trade.symbol, _side(trade))
    position = (
        f"the position in {trade.symbol} would be worth {{used}} {{currency}}, and {{limit}} is allowed ({{rule}})"
    )
    units = f"{{used}} {trade.symbol} would be held, and {{limit}} are allowed ({{rule}})"
    together = "all positions would be worth {used} {currency}, and {limit} is allowed ({rule})"
    cost = "it costs {used} {currency}, and {limit} is available"
    beside = sum((value or NOTHING for value in others), NOTHING)
    available = None if account.available is None else exact(max(account.available, 0.0))
    for rule, most, each, has, more, words in (
        ("max_units", _amount(limits.max_units), ONE, held, NOTHING, units),
        ("max_position_size", _amount(limits.max_position_size), unit, held, NOTHING, position),
        ("max_position_pct", _part(limits.max_position_pct, equity), unit, held, NOTHING, position),
        ("max_exposure", _amount(limits.max_exposure), unit, held, beside, together),
        ("max_exposure_pct", _part(limits.max_exposure_pct, equity), unit, held, beside, together),
        ("balance", available, unit, NOTHING, NOTHING, cost),
    ):
        if most is not None:
            yield _Grows(rule, most, each, has, more, words, account.currency)


_OPPOSITE: dict[Side, Side] = {"BUY": "SELL", "SELL": "BUY"}


def _side(trade: Trade) -> HoldingSide:
    return "LONG" if trade.side == "BUY" else "SHORT"


def _other(trade: Trade) -> HoldingSide:
    return "SHORT" if trade.side == "BUY" else "LONG"


def _held(account: Account, symbol: str, side: HoldingSide) -> Decimal:
    lots = (exact(one.size) for one in account.holdings if one.symbol == symbol and one.side == side)
    return sum(lots, NOTHING)


def _value(holding: Holding, currency: str) -> Decimal | None:
    """What it is worth, at the price it was opened at where there is no other."""
    return _product(holding.size, worth(holding.symbol, holding.price or holding.entry_price, currency))


@lru_cache(maxsize=4096)  # like `gain`
def _product(size: float, unit: float | None) -> Decimal | None:
    return None if unit is None else exact(size) * exact(unit)


def _closable(trade: Trade, account: Account) -> Decimal:
    return _held(account, trade.symbol, _other(trade))


def _opened(size: Decimal, closing: Decimal) -> Decimal:
    return NOTHING if size <= closing * (1 + DUST) else size - closing


def _amount(number: float | None) -> Decimal | None:
    return None if number is None else exact(number)


def _part(share: float | None, whole: float) -> Decimal | None:
    return None if share is None else exact(share) * exact(whole)


def _share(share: float | None, whole: float) -> float | None:
    part = _part(share, whole)
    return None if part is None else float(part)


# Floats above 0 are in the order of their bits, read as an integer: so the largest that fits can be found exactly.

_MOST = 0x7FEF_FFFF_FFFF_FFFF


def _largest(fits: Callable[[float], bool], near: float) -> float:
    """The largest float that fits, where all below it do and 0 does. `near` is a good guess."""
    at = _bits(near) if isfinite(near) else _MOST
    step = 1
    if fits(_float(at)):
        low = at
        while low < _MOST and fits(_float(min(low + step, _MOST))):
            low, step = min(low + step, _MOST), step * 2
        high = min(low + step, _MOST + 1)
    else:
        high = at
        while high > step and not fits(_float(high - step)):
            high, step = high - step, step * 2
        low = max(high - step, 0)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(_float(middle)) else (low, middle)
    return _float(low)


def _bits(value: float) -> int:
    return int(struct.unpack("<q", struct.pack("<d", value))[0])


def _float(bits: int) -> float:
    return float(struct.unpack("<d", struct.pack("<q", bits))[0])
