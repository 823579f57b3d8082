CREATE TABLE idempotency (developer text, environment text, digest bytea, fingerprint text, created_at timestamptz, body text,
    PRIMARY KEY (developer, environment, digest));
CREATE TABLE payment (id text PRIMARY KEY, developer text, environment text, status text, amount_minor bigint, currency text,
    created_at timestamptz, body text);
CREATE INDEX payment_by_time ON payment (developer, environment, created_at);
CREATE TABLE event (id text PRIMARY KEY, created_at timestamptz, body text);
