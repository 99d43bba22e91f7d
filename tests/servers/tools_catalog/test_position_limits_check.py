"""risk.position_limits_check over REST. The arithmetic: tests/domain/test_position_limits.py."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from quantdeck.domain.candles import Bars
from quantdeck.domain.timeframes import MINUTE, TIMEFRAMES
from quantdeck.sources.candles import Candles
from tests.support import desk, postgresql
from tests.support.bars import every, walk
from tests.support.desk import NOON
from tests.support.over_http import Served

TOOL = "risk.position_limits_check"
STRATEGY = "momentum_v2"
PATIENT = {"deadline_s": {TOOL: 20}, "per_minute": {TOOL: 0}}
EXAMPLE: dict[str, Any] = {
    "strategy": STRATEGY,
    "instrument": "EURUSD",
    "qty": 50_000,
    "side": "buy",
    "current_positions": {"EURUSD": 25_000, "GBPUSD": -10_000},
}


def flat(price: float) -> Bars:
    opens = every(60, int(NOON.timestamp()) - 600, 10)
    return Bars.of(opens, *([price] * 10,) * 4, [1.0] * 10)


async def store(server: Served, **prices: float) -> None:
    for symbol, price in prices.items():
        await server.app.runtime.source(Candles).write(f"{symbol[:3]}/{symbol[3:]}", MINUTE, flat(price))


async def ask(server: Served, **said: Any) -> Any:
    arguments = {name: value for name, value in {**EXAMPLE, **said}.items() if value is not ...}
    return (await server.rest(TOOL, arguments=arguments)).json()


async def data(server: Served, **said: Any) -> Any:
    body = await ask(server, **said)
    assert body["error"] is False, body
    return body["data"]


def told(checked: Any) -> dict[str, tuple[float, float, bool]]:
    return {
        one["rule_name"]: (one["current_value"], one["threshold"], one["violated"]) for one in checked["limits_applied"]
    }


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.services)])
async def limited(request, serving):
    """A desk with limits of the strategy, and prices of the two pairs of the spec's own call."""
    where = {} if request.param == "sqlite" else {"database": await postgresql.available().new_database()}
    async with serving(clock=NOON.isoformat(), **PATIENT, **where) as server:
        await server.app.databases.migrate()
        database = server.app.databases.of("desk")
        await desk.add_account(database)
        await desk.add_limits(
            database, strategy_id=STRATEGY, max_position_size=100_000.0, max_exposure=120_000.0, allow_short=True
        )
        await store(server, EURUSD=1.1, GBPUSD=1.25)
        yield server


async def test_the_specs_own_call(limited):
    checked = await data(limited)
    assert checked["allowed"] is True
    assert told(checked) == {
        "max_position_size": (82_500.0, 100_000.0, False),
        "max_exposure": (95_000.0, 120_000.0, False),
    }
    assert {one["limit_type"] for one in checked["limits_applied"]} == {"notional"}
    assert checked["risk_metrics"] == {
        "position_utilization": 0.825,
        "instrument_concentration": pytest.approx(82_500 / 95_000),
        "strategy_exposure": 95_000.0,
    }
    assert checked["max_qty"] == pytest.approx(100_000 / 1.1 - 25_000)
    more = await data(limited, qty=checked["max_qty"])
    assert (more["allowed"], more["max_qty"]) == (True, checked["max_qty"])


async def test_a_million_is_not_what_one_unit_was_allowed(limited):
    assert (await data(limited, qty=1))["allowed"] is True
    checked = await data(limited, qty=1_000_000)
    assert checked["allowed"] is False
    assert all(one["violated"] for one in checked["limits_applied"])
    assert checked["risk_metrics"]["position_utilization"] == 1.0


@pytest.mark.parametrize("side, allowed", [("buy", False), ("long", False), ("sell", True), ("short", True)])
async def test_four_sides_are_two(limited, side, allowed):
    checked = await data(limited, side=side, qty=100_000)
    assert checked["allowed"] is allowed


async def test_positions_may_be_keyed_in_either_spelling_and_not_in_both(limited):
    plain = await data(limited)
    assert await data(limited, current_positions={"GBP/USD": -10_000, "EUR/USD": 25_000}) == plain
    body = await ask(limited, current_positions={"EUR/USD": 1, "EURUSD": 1})
    assert (body["code"], "twice" in body["message"]) == ("MCP-001", True)


async def test_without_limits_of_the_strategy_it_is_mcp_011_and_never_a_default(limited):
    database = limited.app.databases.of("desk")
    await desk.add_limits(database, max_position_size=1e9)
    for strategy in ("another", STRATEGY.upper()):
        body = await ask(limited, strategy=strategy)
        assert (body["code"], body["details"]) == ("MCP-011", {"strategy": strategy, "account": "default"})
    await desk.add_limits(database, strategy_id="empty")
    assert (await ask(limited, strategy="empty"))["code"] == "MCP-011", "a row that says nothing is no limit"


async def test_tracked_positions_count_where_none_are_given(limited):
    database = limited.app.databases.of("desk")
    flat_book = await data(limited, current_positions=...)
    assert flat_book["risk_metrics"]["strategy_exposure"] == pytest.approx(55_000)
    await desk.add_position(database, "one", "EUR/USD", size=20_000.0, current_price=1.1, entry_price=1.0)
    await desk.add_position(database, "two", "GBP/USD", side="SHORT", size=8000.0, current_price=1.25)
    checked = await data(limited, current_positions=...)
    assert checked["risk_metrics"]["strategy_exposure"] == pytest.approx(77_000 + 10_000)
    assert (await data(limited, current_positions={}))["risk_metrics"]["strategy_exposure"] == pytest.approx(55_000)


async def test_a_fill_between_two_equal_checks_changes_the_answer_at_once(serving):
    async with serving(**PATIENT) as server:
        await server.app.databases.migrate()
        database = server.app.databases.of("desk")
        await desk.add_account(database)
        await desk.add_limits(database, strategy_id=STRATEGY, max_units=60_000.0)
        await server.app.runtime.source(Candles).write("EUR/USD", MINUTE, flat(1.1))
        first, again = await ask(server, current_positions=...), await ask(server, current_positions=...)
        assert (first["metadata"]["cached"], again["metadata"]["cached"]) == (False, True)
        held = await desk.add_position(database, "fill", "EUR/USD", size=20_000.0, current_price=1.1)
        after = await ask(server, current_positions=...)
        assert (after["metadata"]["cached"], after["data"]["allowed"]) == (False, False)
        # A row that is changed in place under its old time is another as well.
        await database.execute("UPDATE positions SET size = 5000.0 WHERE position_id = :held", held=held)
        assert (await ask(server, current_positions=...))["data"]["allowed"] is True
        await database.execute("UPDATE risk_limits SET max_units = 1.0, updated_at = :at", at=desk.LATER)
        assert (await ask(server, current_positions=...))["data"]["allowed"] is False


async def test_at_a_fixed_clock_positions_that_were_changed_later_are_mcp_003_and_not_shown(limited):
    await desk.add_position(limited.app.databases.of("desk"), "one", "EUR/USD", updated_at=desk.LATER)
    body = await ask(limited, current_positions=...)
    assert (body["code"], "backend unavailable" in body["message"].lower()) == ("MCP-003", True)


async def test_what_cannot_be_valued_is_mcp_001_for_the_instrument_and_a_broken_rule_elsewhere(limited):
    body = await ask(limited, instrument="USDSEK")
    assert (body["code"], body["details"]) == ("MCP-001", {"instrument": "USDSEK"})
    checked = await data(limited, current_positions={"SPY": 10})
    assert (checked["allowed"], "cannot be told" in checked["reason"]) == (False, True)
    (blind,) = (one for one in checked["limits_applied"] if one["violated"])
    assert (blind["rule_name"], "current_value" in blind) == ("max_exposure", False)
    assert "strategy_exposure" not in checked["risk_metrics"]


async def test_a_pair_without_the_accounts_currency_is_valued_by_a_rate(limited):
    await store(limited, EURGBP=0.88)
    checked = await data(limited, instrument="EUR/GBP", qty=1000, current_positions={})
    assert checked["risk_metrics"]["strategy_exposure"] == pytest.approx(1000 * 0.88 * 1.25)


async def test_var_impact_is_there_where_moves_are_known_and_below_zero_for_what_reduces(limited):
    bars = walk(every(3600, int(NOON.timestamp()) - 60 * 3600, 60))
    await limited.app.runtime.source(Candles).write("ETH/USD", TIMEFRAMES["1h"], bars)
    more = await data(limited, instrument="ETH/USD", qty=10, current_positions={"ETH/USD": 20})
    less = await data(limited, instrument="ETH/USD", qty=10, side="sell", current_positions={"ETH/USD": 20})
    assert more["risk_metrics"]["var_impact"] == pytest.approx(-less["risk_metrics"]["var_impact"])
    assert more["risk_metrics"]["var_impact"] > 0


async def test_a_violation_is_logged_with_who_and_what_and_a_pass_is_not(limited, caplog):
    caplog.set_level(logging.WARNING, logger="quantdeck")
    await ask(limited)
    await ask(limited, qty=1e9)
    (said,) = (record.fields for record in caplog.records if record.message == "risk_violation")
    assert said["violation_type"] == "max_position_size"
    assert (said["symbol"], said["severity"], said["timestamp"]) == ("EURUSD", "warning", "2026-01-15T12:00:00Z")
    assert said["metadata"]["rules"] == ["max_position_size", "max_exposure"]
    assert said["correlation_id"].startswith("mcp_")


@pytest.mark.parametrize(
    "said",
    [
        {"qty": 0}, {"qty": -1}, {"qty": "1"}, {"qty": True}, {"side": "BUY"}, {"strategy": "a b"},
        {"strategy": "a" * 51}, {"strategy": ""}, {"instrument": "eurusd"}, {"instrument": "EURUSDX"},
        {"current_positions": {"??": 1}}, {"current_positions": {"EURUSD": "1"}}, {"current_positions": [1]},
        {"more": 1},
    ],
    ids=str,
)  # fmt: skip
async def test_what_is_no_trade_is_mcp_001(limited, said):
    body = await ask(limited, **said)
    assert (body["code"], body["message"][:19]) == ("MCP-001", "Invalid arguments: ")


async def test_a_quantity_of_nothing_is_refused_by_the_rule_of_the_schema(limited):
    body = await ask(limited, qty=-5)
    assert body["details"]["invalid_arguments"][0]["rule"] == "exclusiveMinimum"


async def test_numbers_at_the_end_of_the_scale_are_answered(limited):
    checked = await data(limited, qty=1.7e308, current_positions={"GBPUSD": 1.7e308})
    assert checked["allowed"] is False


async def test_without_a_desk_it_is_mcp_003_that_says_what_to_do(serving):
    async with serving(**PATIENT) as server:
        body = await ask(server)
        assert (body["code"], "quantdeck" in body["message"]) == ("MCP-003", True)
