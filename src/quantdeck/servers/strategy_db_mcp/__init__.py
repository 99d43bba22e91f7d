"""strategy-db-mcp: which strategy specs there are, how they did, and new ones."""

from quantdeck.core.server import Server
from quantdeck.servers import tools

SERVER = Server(
    name="strategy-db-mcp",
    purpose="Strategy specs, their implementations, and new ones",
    instructions=(
        "A spec is a strategy's rules; an implementation is a spec with its parameters on a symbol. Sharpe ratios are "
        "annual, accuracies are fractions (0.62 = 62 %). Read a few of get_top_specs before you submit one: "
        "a refusal lists everything that is wrong, so mend all of it and submit again."
    ),
    tools=tools(
        __name__,
        "get_top_specs",
        "get_implementations",
        "submit_new_spec",
    ),
)
