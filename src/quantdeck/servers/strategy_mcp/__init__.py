"""strategy-mcp: which strategies there are for a symbol and what they say now."""

from quantdeck.core.server import Server
from quantdeck.servers import tools

SERVER = Server(
    name="strategy-mcp",
    purpose="Strategy rankings, signals and consensus",
    instructions=(
        "Symbols are trading pairs such as BTC/USD; BTC-USD, btc_usd and BTCUSD are understood. "
        "Scores, accuracies, returns and confidences are fractions (0.62 = 62 %). Times are UTC. "
        "Start with get_top_strategies; its strategy_id is what get_strategy_signal takes. "
        "A signal older than 24 hours is not current and is answered as NO_SIGNAL."
    ),
    tools=tools(
        __name__,
        "get_top_strategies",
        "get_strategy_signal",
        "get_strategy_consensus",
    ),
)
