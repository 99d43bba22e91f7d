"""backtest-events: what happened in a backtest, asked for piece by piece instead of read whole."""

from quantdeck.core.server import Server
from quantdeck.servers import tools

SERVER = Server(
    name="backtest-events",
    purpose="Questions to the event log of backtests",
    instructions=(
        "Start with list_backtest_runs; a run's id is what the others take as runId. Times are simulated and UTC. "
        "Begin broad (aggregate_metrics, get_validation_errors), then narrow (get_events_by_entity, "
        "query_event_sequence, get_state_snapshot). The placing of an order is a StateChange whose OrderStatus is "
        "Placed; sequencePattern also takes the word OrderPlaced for it. Without a root or a pattern "
        "query_event_sequence gives every chain of two events or more; with a pattern, which begins at a chain's root "
        "(an event that has no parent in the run), the complete ones, or with findIncomplete the incomplete ones only. "
        "truncated: true means that the page was cut to the size limit: ask with a smaller pageSize. Property names are PascalCase, as in $.Price."
    ),
    tools=tools(
        __name__,
        "list_backtest_runs",
        "get_events_by_type",
        "get_events_by_entity",
        "aggregate_metrics",
        "get_state_snapshot",
        "query_event_sequence",
        "get_validation_errors",
    ),
)
