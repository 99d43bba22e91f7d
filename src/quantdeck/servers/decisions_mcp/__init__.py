"""decisions-mcp: what agents decided and why, for learning and auditing."""

from quantdeck.core.server import Server
from quantdeck.servers import tools

SERVER = Server(
    name="decisions-mcp",
    purpose="What agents decided and why",
    instructions=(
        "Symbols are trading pairs such as BTC/USD; BTC-USD, btc_usd and BTCUSD are understood. "
        "A confidence is 0 to 1, an opportunity score 0 to 100. Times are UTC. "
        "A decision is stored for good when save_decision has answered. After a TIMEOUT look with "
        "get_recent_decisions, or save again with the same idempotency key."
    ),
    tools=tools(
        __name__,
        "get_recent_decisions",
        "save_decision",
    ),
)
