-- Two limits more, and what orders came to: from it the simulation of orders learns what they cost.

ALTER TABLE risk_limits ADD COLUMN max_units {float} CHECK (max_units BETWEEN 0 AND 1e308);
ALTER TABLE risk_limits ADD COLUMN max_exposure {float} CHECK (max_exposure BETWEEN 0 AND 1e308);

-- `mid_price` is the middle of bid and ask when the order was given, where that is known.
CREATE TABLE fills (
    fill_id {text} PRIMARY KEY,
    account_id {text} NOT NULL,
    symbol {text} NOT NULL,
    side {text} NOT NULL CHECK (side IN ('BUY', 'SELL')),
    size {float} NOT NULL CHECK (size > 0 AND size < 1e308),
    price {float} NOT NULL CHECK (price > 0 AND price < 1e308),
    mid_price {float} CHECK (mid_price > 0 AND mid_price < 1e308),
    filled_at {timestamp} NOT NULL,
    created_at {timestamp} NOT NULL
);

CREATE INDEX fills_of_symbol ON fills (symbol, filled_at DESC, fill_id);
