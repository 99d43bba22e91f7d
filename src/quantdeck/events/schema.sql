-- A log of backtest events: many runs in one file. Words are codes, in the order of domain/event_types.py; times are
-- microseconds since 1970 UTC; ids are the sixteen bytes of a GUID.

CREATE TABLE runs (
    run INTEGER PRIMARY KEY,
    run_id BLOB NOT NULL UNIQUE CHECK (length(run_id) = 16),
    strategy TEXT,
    parameters TEXT CHECK (parameters IS NULL OR json_type(parameters) = 'object'),
    config_hash TEXT NOT NULL,
    started INTEGER,                    -- simulated times, as `ended`
    ended INTEGER,
    created INTEGER NOT NULL,           -- when the run became known
    completed INTEGER,                  -- null while it is written, or where its writer was killed
    failed INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE events (
    id INTEGER PRIMARY KEY,             -- the order of writing
    event_id BLOB NOT NULL CHECK (length(event_id) = 16),
    run INTEGER NOT NULL REFERENCES runs (run) ON DELETE CASCADE,
    at INTEGER NOT NULL,
    type INTEGER NOT NULL,
    severity INTEGER NOT NULL,
    category INTEGER NOT NULL,
    properties TEXT NOT NULL CHECK (json_type(properties) = 'object'),
    parent BLOB,
    errors TEXT CHECK (errors IS NULL OR json_type(errors) = 'array'),
    -- Stored, because SQLite does not take a virtual column for covered by its index.
    value REAL AS ({value}) STORED,
    symbol TEXT COLLATE NOCASE AS (ifnull(CAST(json_extract(properties, '$.SecuritySymbol') AS TEXT), '')),
    order_id TEXT AS (CAST(json_extract(properties, '$.OrderId') AS TEXT)),
    position_id TEXT AS (CAST(json_extract(properties, '$.PositionId') AS TEXT)),
    indicator TEXT AS (CAST(json_extract(properties, '$.IndicatorName') AS TEXT)),
    state_type TEXT AS (CAST(json_extract(properties, '$.StateType') AS TEXT)),
    order_status TEXT AS (CAST(json_extract(properties, '$.OrderStatus') AS TEXT))
) STRICT;

CREATE UNIQUE INDEX events_by_event_id ON events (run, event_id);
CREATE INDEX events_by_type ON events (run, type, at, id, severity, category, value);
CREATE INDEX events_by_symbol ON events (run, symbol, at, id, type) WHERE symbol <> '';
CREATE INDEX events_by_order ON events (run, order_id, at, id, type) WHERE order_id IS NOT NULL;
CREATE INDEX events_by_position ON events (run, position_id, at, id, type) WHERE position_id IS NOT NULL;
CREATE INDEX events_by_indicator ON events (run, indicator, symbol, at, id, type) WHERE indicator IS NOT NULL;
CREATE INDEX events_by_parent ON events (run, parent, at, id, type, event_id) WHERE parent IS NOT NULL;
CREATE INDEX events_with_errors ON events (run, at, id) WHERE errors IS NOT NULL;
CREATE INDEX events_positions ON events (run, symbol, at, id) WHERE type = 3;
CREATE INDEX events_pnl ON events (run, at, id) WHERE state_type = 'PnL';
CREATE INDEX events_placed ON events (run, at, id, type, event_id) WHERE order_status = 'Placed';
CREATE INDEX events_of_orders ON events (run, at, id, type) WHERE type IN (0, 1, 4) AND order_id IS NOT NULL;

-- How many events there are: written with them, so that a total costs nothing.
CREATE TABLE counts (
    run INTEGER NOT NULL REFERENCES runs (run) ON DELETE CASCADE,
    type INTEGER NOT NULL,
    severity INTEGER NOT NULL,
    events INTEGER NOT NULL,
    PRIMARY KEY (run, type, severity)
) STRICT, WITHOUT ROWID;

-- The orders that were open after every event up to an instant, so that a snapshot need not replay the whole run.
CREATE TABLE order_books (
    run INTEGER NOT NULL REFERENCES runs (run) ON DELETE CASCADE,
    at INTEGER NOT NULL,
    orders TEXT NOT NULL,
    PRIMARY KEY (run, at)
) STRICT, WITHOUT ROWID;

-- How far a file has been imported; moved on with the events of each batch.
CREATE TABLE imports (
    source TEXT PRIMARY KEY,
    run INTEGER NOT NULL REFERENCES runs (run) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    lines INTEGER NOT NULL,
    rejected INTEGER NOT NULL,
    done INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
