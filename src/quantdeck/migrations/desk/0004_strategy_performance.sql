-- How implementations did, stretch by stretch: a week, a day, or a single trade. A row is written once, when its stretch
-- is over, and never changed; it is known from `created_at` on. `total_return` is what its trades earned, as fractions
-- added up.

CREATE TABLE strategy_performance (
    performance_id {uuid} PRIMARY KEY,
    impl_id {uuid} NOT NULL REFERENCES strategy_implementations (impl_id) ON DELETE CASCADE,
    symbol {text} NOT NULL,
    environment {text} NOT NULL CHECK (environment IN ('BACKTEST', 'PAPER', 'LIVE')),
    timeframe {text},
    period_start {timestamp} NOT NULL,
    period_end {timestamp} NOT NULL,
    total_trades {int} NOT NULL CHECK (total_trades >= 0),
    winning_trades {int} NOT NULL CHECK (winning_trades >= 0),
    total_return {float} CHECK (total_return BETWEEN -1e290 AND 1e290),
    sharpe_ratio {float} CHECK (sharpe_ratio BETWEEN -1e290 AND 1e290),
    created_at {timestamp} NOT NULL,
    CHECK (period_end >= period_start),
    CHECK (winning_trades <= total_trades),
    UNIQUE (impl_id, symbol, environment, period_start, period_end)
);

CREATE INDEX strategy_performance_newest ON strategy_performance (impl_id, period_end);
