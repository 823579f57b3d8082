-- Version 1 of the schema. Times are milliseconds since 1970. Bodies are JSON text, stored as it was written.

-- What servers agree on before they read or write anything else. One row.
CREATE TABLE schema_version (
    is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
    version integer NOT NULL
);

-- One row for each connection that commits: its last batch tells whether a commit of unknown outcome happened.
CREATE TABLE connection (
    id bytea PRIMARY KEY,
    batch bigint NOT NULL,
    opened bigint NOT NULL,
    seen_at timestamptz NOT NULL
) WITH (fillfactor = 50);

-- Workspaces, API keys, apps, endpoints and gateway tokens: few, and read by their id or their parent's.
CREATE TABLE record (
    kind text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    parent text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    body text NOT NULL,
    PRIMARY KEY (kind, id)
);
CREATE INDEX record_parent ON record (kind, parent, id);

-- How many endpoints a scope has. Servers that add endpoints at the same time wait for this row.
CREATE TABLE endpoint_count (
    developer text COLLATE "C" NOT NULL,
    environment text COLLATE "C" NOT NULL,
    endpoints bigint NOT NULL,
    PRIMARY KEY (developer, environment)
);

-- A payment's session and its events.
CREATE TABLE payment (
    id text COLLATE "C" PRIMARY KEY,
    developer text COLLATE "C" NOT NULL,
    environment text COLLATE "C" NOT NULL,
    status text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    expires_at bigint,
    check_at bigint,
    needs_settlement boolean NOT NULL,
    needs_review boolean NOT NULL,
    body text NOT NULL
);
CREATE INDEX payment_list ON payment (developer, environment, id);
CREATE INDEX payment_status ON payment (developer, environment, status, id);
CREATE INDEX payment_expiry ON payment (expires_at, id) WHERE expires_at IS NOT NULL;
CREATE INDEX payment_check ON payment (check_at, id) WHERE check_at IS NOT NULL;
CREATE INDEX payment_settlement ON payment (id) WHERE needs_settlement;
CREATE INDEX payment_review ON payment (id) WHERE needs_review;

-- The ledger: the postings of each change of a payment. Rows are only added.
CREATE TABLE posting (
    payment text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    body text NOT NULL,
    PRIMARY KEY (payment, version)
);

-- Sums. Each connection adds to rows of its own, so that none waits for another; a reader adds them up.
CREATE TABLE total (
    developer text COLLATE "C" NOT NULL,
    environment text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    slot smallint NOT NULL,
    value numeric NOT NULL,
    PRIMARY KEY (developer, environment, name, slot)
) WITH (fillfactor = 50);

-- The stored response of an idempotency key, the claim on it, or both.
CREATE TABLE idempotency (
    developer text COLLATE "C" NOT NULL,
    environment text COLLATE "C" NOT NULL,
    digest bytea NOT NULL,
    responded_at bigint,
    response text,
    -- The payment whose event has the response's body, if one has.
    payment text COLLATE "C",
    claimed_until bigint,
    claim text,
    PRIMARY KEY (developer, environment, digest)
);
CREATE INDEX idempotency_response ON idempotency (responded_at) WHERE responded_at IS NOT NULL;
CREATE INDEX idempotency_claim ON idempotency (claimed_until) WHERE claimed_until IS NOT NULL;

-- Events whose deliveries are not all made.
CREATE TABLE pending_event (
    id text COLLATE "C" PRIMARY KEY,
    payment text COLLATE "C" NOT NULL,
    after text COLLATE "C"
);
CREATE INDEX pending_event_payment ON pending_event (payment, id);

-- A delivery without the payload that its event has.
CREATE TABLE delivery (
    id text COLLATE "C" PRIMARY KEY,
    developer text COLLATE "C" NOT NULL,
    environment text COLLATE "C" NOT NULL,
    endpoint text COLLATE "C" NOT NULL,
    payment text COLLATE "C",
    version bigint NOT NULL,
    is_pending boolean NOT NULL,
    body text NOT NULL
);
CREATE INDEX delivery_list ON delivery (developer, environment, id);
CREATE INDEX delivery_endpoint ON delivery (endpoint, id);
CREATE INDEX delivery_outbox ON delivery (endpoint, id) WHERE is_pending;

-- The delivery up to which bodies were redacted. One row.
CREATE TABLE redaction (
    is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
    up_to text COLLATE "C" NOT NULL
);

-- Claims on work.
CREATE TABLE lease (
    queue text COLLATE "C" NOT NULL,
    work text COLLATE "C" NOT NULL,
    epoch bigint NOT NULL,
    server bytea NOT NULL,
    until bigint NOT NULL,
    PRIMARY KEY (queue, work)
) WITH (fillfactor = 50);
