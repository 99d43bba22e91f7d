-- What an account holds, and what it may risk. Rows are updated in place: `created_at` says since when one is known,
-- `updated_at` since when it is as it is. Bounds keep NaN and the infinities out on both engines.

CREATE TABLE accounts (
    account_id {text} PRIMARY KEY,
    currency {text} NOT NULL DEFAULT 'USD',
    total_balance {float} NOT NULL CHECK (total_balance BETWEEN -1e308 AND 1e308),
    available_balance {float} NOT NULL CHECK (available_balance BETWEEN -1e308 AND 1e308),
    margin_used {float} NOT NULL DEFAULT 0.0 CHECK (margin_used BETWEEN -1e308 AND 1e308),
    peak_balance {float} CHECK (peak_balance BETWEEN -1e308 AND 1e308),
    created_at {timestamp} NOT NULL,
    updated_at {timestamp} NOT NULL
);

CREATE TABLE positions (
    position_id {uuid} PRIMARY KEY,
    account_id {text} NOT NULL,
    symbol {text} NOT NULL,
    side {text} NOT NULL CHECK (side IN ('LONG', 'SHORT')),
    size {float} NOT NULL CHECK (size > 0 AND size < 1e308),
    entry_price {float} NOT NULL CHECK (entry_price > 0 AND entry_price < 1e308),
    current_price {float} CHECK (current_price > 0 AND current_price < 1e308),
    realized_pnl {float} CHECK (realized_pnl BETWEEN -1e308 AND 1e308),
    opened_at {timestamp} NOT NULL,
    closed_at {timestamp},
    created_at {timestamp} NOT NULL,
    updated_at {timestamp} NOT NULL,
    CHECK (closed_at >= opened_at)
);

CREATE INDEX positions_open ON positions (account_id, closed_at, opened_at DESC, position_id);

-- A limit that is null is not checked; 0 allows nothing. `strategy_id` is empty where it is the account's own.
-- `max_position_size` is a value in the account's currency, a `pct` a fraction of its total balance.
CREATE TABLE risk_limits (
    account_id {text} NOT NULL,
    strategy_id {text} NOT NULL DEFAULT '',
    max_position_size {float} CHECK (max_position_size BETWEEN 0 AND 1e308),
    max_position_pct {float} CHECK (max_position_pct BETWEEN 0 AND 1e308),
    max_exposure_pct {float} CHECK (max_exposure_pct BETWEEN 0 AND 1e308),
    max_open_positions {int} CHECK (max_open_positions >= 0),
    max_daily_loss {float} CHECK (max_daily_loss BETWEEN 0 AND 1e308),
    max_daily_loss_pct {float} CHECK (max_daily_loss_pct BETWEEN 0 AND 1e308),
    max_drawdown_pct {float} CHECK (max_drawdown_pct BETWEEN 0 AND 1e308),
    allow_short {bool},
    created_at {timestamp} NOT NULL,
    updated_at {timestamp} NOT NULL,
    PRIMARY KEY (account_id, strategy_id)
);

-- The last price that anybody named, for a trade that names none.
CREATE INDEX implementation_signals_priced ON implementation_signals (symbol, signal_timestamp DESC, signal_id)
    WHERE price IS NOT NULL;
