-- Answers to calls with an idempotency key. Claim, effect and answer are one transaction, so a row
-- without an answer is never seen by others.
CREATE TABLE idempotency_keys (
    scope {text} NOT NULL,
    key {text} NOT NULL,
    fingerprint TEXT NOT NULL,
    answer {bytes},
    created_at {timestamp} NOT NULL,
    PRIMARY KEY (scope, key)
);

CREATE INDEX idempotency_keys_created_at ON idempotency_keys (created_at);
