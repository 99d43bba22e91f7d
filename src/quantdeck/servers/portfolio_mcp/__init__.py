"""portfolio-mcp: what an account holds and has, and whether a trade keeps within its limits."""

from quantdeck.core.server import Server
from quantdeck.servers import tools

SERVER = Server(
    name="portfolio-mcp",
    purpose="Positions, balances and risk limits of an account",
    instructions=(
        "Symbols are trading pairs such as BTC/USD; BTC-USD, btc_usd and BTCUSD are understood. Sizes are in units of "
        "the base (0.5 BTC), balances in the account's currency, prices and a position's unrealized_pnl in the pair's "
        "quote. Null means that it is not known. Times are UTC. Nothing is cached, and no tool places an order. "
        "Ask validate_trade before every trade: where it is not valid, reason names every broken rule, and any size up "
        "to max_size passes. Trades that only close what is held are always valid."
    ),
    tools=tools(
        __name__,
        "get_positions",
        "get_balance",
        "validate_trade",
    ),
)
