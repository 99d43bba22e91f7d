-- Who claimed a key: a record that comes late must not become that of another who has the key by then.

ALTER TABLE idempotency_claims ADD COLUMN holder {text};
