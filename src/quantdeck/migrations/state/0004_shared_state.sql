-- What agents leave for one another. created_at and updated_at are the world's time, written_at and expires_at the
-- machine's. The value stands last, so that whoever wants the other columns need not read past it.

CREATE TABLE shared_state (
    corr_id {text} NOT NULL,
    key {text} NOT NULL,
    size_bytes {int} NOT NULL,
    access_count {int} NOT NULL,
    created_at {timestamp} NOT NULL,
    updated_at {timestamp} NOT NULL,
    written_at {timestamp} NOT NULL,
    ttl_s {int} NOT NULL,
    expires_at {timestamp} NOT NULL,
    value {bytes} NOT NULL,
    PRIMARY KEY (corr_id, key)
);

CREATE INDEX shared_state_sizes ON shared_state (corr_id, expires_at, key, size_bytes);
CREATE INDEX shared_state_expiry ON shared_state (expires_at);

-- Who writes to a scope takes the turn of its bucket, so that no two count the same quota at once.
CREATE TABLE shared_state_turns (
    bucket {int} NOT NULL PRIMARY KEY
);
