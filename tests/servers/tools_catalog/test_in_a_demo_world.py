"""A demo world answers the spec's own calls, and says that it is one."""

from __future__ import annotations

from typing import Any

import pytest

from quantdeck.demo import make
from quantdeck.settings import Settings
from tests.support.contracts import contract_of

TOOLS = {tool["name"]: tool for tool in contract_of("catalog")["tools"]}
COMPUTING = ("features.ohlcv_window", "risk.position_limits_check", "execution.sim_quote")


@pytest.mark.parametrize("clock", ["wall", "2026-01-15T12:00:00Z"])
async def test_the_specs_examples_are_answered(serving, tmp_path, clock):
    home = tmp_path / "home"
    await make(Settings(home=home, clock="2026-01-15T12:00:00Z"), seed=7, days=2)
    async with serving(clock=clock, deadline_s=dict.fromkeys(COMPUTING, 20)) as server:
        for name in COMPUTING:
            (example,) = TOOLS[name]["examples"]
            body: Any = (await server.rest(name, arguments=example["arguments"])).json()
            assert body["error"] is False, body
            assert body["metadata"]["source"] == "demo"
        tracked = {"strategy": "momentum_v2", "instrument": "EURUSD", "qty": 1000, "side": "buy"}
        body = (await server.rest(COMPUTING[1], arguments=tracked)).json()
        assert "only reduces" in body["data"]["reason"], "the world's planted short is bought back"
