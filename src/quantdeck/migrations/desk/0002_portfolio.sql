-- What an account holds, and what it may risk. Rows are updated in place; `updated_at` says when.

CREATE TABLE accounts (
    account_id {text} PRIMARY KEY,
    currency {text} NOT NULL DEFAULT 'USD',
    total_balance {float} NOT NULL,
    available_balance {float} NOT NULL,
    margin_used {float} NOT NULL DEFAULT 0,
    peak_balance {float},
    created_at {timestamp} NOT NULL,
    updated_at {timestamp} NOT NULL
);

CREATE TABLE positions (
    position_id {uuid} PRIMARY KEY,
    account_id {text} NOT NULL,
    symbol {text} NOT NULL,
    side {text} NOT NULL CHECK (side IN ('LONG', 'SHORT')),
    size {float} NOT NULL CHECK (size > 0),
    entry_price {float} NOT NULL CHECK (entry_price > 0),
    current_price {float},
    realized_pnl {float},
    opened_at {timestamp} NOT NULL,
    closed_at {timestamp},
    updated_at {timestamp} NOT NULL
);

CREATE INDEX positions_open ON positions (account_id, closed_at, opened_at DESC, position_id);

-- A limit that is null is not checked; 0 allows nothing. `strategy_id` is empty where it is the account's own.
CREATE TABLE risk_limits (
    account_id {text} NOT NULL,
    strategy_id {text} NOT NULL DEFAULT '',
    max_position_size {float},
    max_position_pct {float},
    max_exposure_pct {float},
    max_open_positions {int},
    max_daily_loss {float},
    max_daily_loss_pct {float},
    max_drawdown_pct {float},
    max_sector_exposure_pct {float},
    max_correlated_exposure_pct {float},
    allow_short {bool},
    updated_at {timestamp} NOT NULL,
    PRIMARY KEY (account_id, strategy_id)
);
