"""strategy-mcp: which strategies there are for a symbol and what they say now."""

from quantdeck.core.server import Server
from quantdeck.servers.strategy_mcp.get_strategy_consensus import get_strategy_consensus
from quantdeck.servers.strategy_mcp.get_strategy_signal import get_strategy_signal
from quantdeck.servers.strategy_mcp.get_top_strategies import get_top_strategies

SERVER = Server(
    name="strategy-mcp",
    purpose="Strategy rankings, signals and consensus",
    instructions=(
        "Symbols are trading pairs such as BTC/USD; BTC-USD, btc_usd and BTCUSD are understood. "
        "Scores, accuracies, returns and confidences are fractions (0.62 = 62 %). Times are UTC. "
        "Start with get_top_strategies; its strategy_id is what get_strategy_signal takes. "
        "A signal older than 24 hours is not current and is answered as NO_SIGNAL."
    ),
    tools=(get_top_strategies, get_strategy_signal, get_strategy_consensus),
)
