"""tools-catalog: the tools of the catalog's spec, by numbered codes, over MCP and REST."""

from quantdeck.core.server import Server
from quantdeck.servers import tools
from quantdeck.servers.tools_catalog.following import follow_fills
from quantdeck.servers.tools_catalog.prompts import PROMPTS

SERVER = Server(
    name="tools-catalog",
    purpose="Features, risk limits, simulated orders and shared state, for agents that work on one thing together",
    instructions=(
        "features_ohlcv_window has bars and figures at the last of them; risk_position_limits_check holds a trade "
        "against its strategy's limits; execution_sim_quote says what an order would come to, and places none. "
        "Instruments are written EURUSD, BTC/USD or SPY. Agents that share a corr_id share its state: "
        "storage_shared_state_set keeps any JSON for ttl_seconds, storage_shared_state_get reads it. A key that is not "
        "there is exists: false, no error. Failures have a code: try MCP-003, MCP-004 and MCP-999 again after 1, 2 and "
        "4 seconds, MCP-006 after details.retry_after_s; others not. Times are UTC."
    ),
    tools=tools(
        __name__,
        "ohlcv_window",
        "position_limits_check",
        "sim_quote",
        "shared_state_get",
        "shared_state_set",
    ),
    prompts=PROMPTS,
    background=(follow_fills,),
)
