-- Idempotency keys of effects that go elsewhere: claimed for a while, then answered or unknown.

CREATE TABLE idempotency_claims (
    scope {text} NOT NULL,
    key {text} NOT NULL,
    fingerprint {text} NOT NULL,
    answer {bytes},
    lease_until {timestamp} NOT NULL,
    created_at {timestamp} NOT NULL,
    PRIMARY KEY (scope, key)
);

CREATE INDEX idempotency_claims_age ON idempotency_claims (created_at);
