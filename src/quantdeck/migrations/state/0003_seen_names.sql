-- Names that may be used once within a time, such as the nonces of signed requests.

CREATE TABLE seen_names (
    name {text} NOT NULL PRIMARY KEY,
    seen_until {timestamp} NOT NULL
);

CREATE INDEX seen_names_until ON seen_names (seen_until);
