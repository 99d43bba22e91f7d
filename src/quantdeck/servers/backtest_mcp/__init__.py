"""backtest-mcp: what a strategy would have come to, and what it has come to."""

from quantdeck.core.server import Server
from quantdeck.servers import tools

SERVER = Server(
    name="backtest-mcp",
    purpose="Backtests, and the record of strategies",
    instructions=(
        "Returns, drawdowns, rates and accuracies are fractions (0.023 = 2.3 %); a drawdown is positive, Sharpe ratios "
        "are annual. null is what cannot be computed, such as the win rate without a trade. A strategy_id is that of "
        "get_top_strategies or get_implementations. A backtest decides at the close of a bar and trades at the next "
        "open, with fees, long only; it tells what would have been, which is no promise. A few trades prove nothing. "
        "Compare backtests of one timeframe only."
    ),
    tools=tools(
        __name__,
        "run_backtest",
        "get_historical_performance",
    ),
)
