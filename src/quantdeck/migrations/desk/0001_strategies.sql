-- Strategy specs, their implementations and what those signalled.
-- Names are the target schema's; a read-only view of them over other tables is enough for our reads.

CREATE TABLE strategy_specs (
    spec_id {uuid} PRIMARY KEY,
    name {text} NOT NULL UNIQUE,
    version {int} NOT NULL DEFAULT 1,
    description {text},
    complexity {text},
    indicators {json} NOT NULL,
    entry_conditions {json} NOT NULL,
    exit_conditions {json} NOT NULL,
    parameters {json} NOT NULL,
    source {text} NOT NULL CHECK (source IN ('CANONICAL', 'MIGRATED', 'LLM_GENERATED', 'USER_CREATED')),
    reasoning {text},
    is_active {bool} NOT NULL DEFAULT TRUE,
    retired_at {timestamp},
    created_at {timestamp} NOT NULL,
    updated_at {timestamp} NOT NULL
);

CREATE TABLE strategy_implementations (
    impl_id {uuid} PRIMARY KEY,
    spec_id {uuid} NOT NULL REFERENCES strategy_specs (spec_id) ON DELETE CASCADE,
    symbol {text} NOT NULL,
    parameters {object} NOT NULL,
    status {text} NOT NULL CHECK (status IN ('CANDIDATE', 'VALIDATED', 'DEPLOYED', 'RETIRED')),
    discovered_by {text} NOT NULL DEFAULT 'MANUAL',
    backtest_sharpe {float},
    backtest_accuracy {float},
    backtest_return {float},
    backtest_max_drawdown {float},
    backtest_trades {int},
    forward_sharpe {float},
    forward_accuracy {float},
    forward_return {float},
    forward_max_drawdown {float},
    forward_trades {int},
    created_at {timestamp} NOT NULL,
    updated_at {timestamp} NOT NULL
);

CREATE INDEX strategy_implementations_by_symbol ON strategy_implementations (symbol, status);
CREATE INDEX strategy_implementations_by_spec ON strategy_implementations (spec_id, status);

CREATE TABLE implementation_signals (
    signal_id {uuid} PRIMARY KEY,
    impl_id {uuid} NOT NULL REFERENCES strategy_implementations (impl_id) ON DELETE CASCADE,
    symbol {text} NOT NULL,
    action {text} NOT NULL CHECK (action IN ('BUY', 'SELL', 'HOLD', 'CLOSE_LONG', 'CLOSE_SHORT')),
    strength {float},
    price {float},
    signal_type {text} NOT NULL DEFAULT 'live' CHECK (signal_type IN ('backtest', 'forward_test', 'live')),
    signal_timestamp {timestamp} NOT NULL,
    created_at {timestamp} NOT NULL
);

CREATE INDEX implementation_signals_latest
    ON implementation_signals (impl_id, symbol, signal_timestamp DESC, signal_id);
