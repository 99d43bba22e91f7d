-- Up to where `quantdeck evaluate` has followed an implementation. `seen_until` is the close of the newest bar that it has
-- looked at; `standing` is what it needs to go on from there. `began_at` is since when its forward figures count.

CREATE TABLE strategy_evaluations (
    impl_id {uuid} PRIMARY KEY REFERENCES strategy_implementations (impl_id) ON DELETE CASCADE,
    timeframe {text} NOT NULL,
    began_at {timestamp} NOT NULL,
    seen_until {timestamp} NOT NULL,
    standing {object} NOT NULL,
    updated_at {timestamp} NOT NULL
);

-- Who does something alone for a while. An entry whose time is over is anybody's.
CREATE TABLE leases (
    name {text} PRIMARY KEY,
    holder {text} NOT NULL,
    lease_until {timestamp} NOT NULL
);
