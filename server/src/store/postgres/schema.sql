-- The schema. Times are milliseconds since 1970. Bodies are JSON text, stored as it was written.

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
    -- When the next attempt is due. Until then the delivery is in no outbox: is_pending is false.
    retry_at bigint,
    body text NOT NULL
);
CREATE INDEX delivery_list ON delivery (developer, environment, id);
CREATE INDEX delivery_endpoint ON delivery (endpoint, id);
CREATE INDEX delivery_outbox ON delivery (endpoint, id) WHERE is_pending;
CREATE INDEX delivery_retry ON delivery (retry_at, id) WHERE retry_at IS NOT NULL AND NOT is_pending;
-- The deliveries of a payment's events, for its timeline.
CREATE INDEX delivery_payment ON delivery (payment, id) WHERE payment IS NOT NULL;

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

-- How many payments of each status a part of a list has, so that a page far down is found without counting up to it.
-- A block has a scope's payments after the block before it, up to an id. A number is given once.
CREATE TABLE payment_block (
    developer text COLLATE "C" NOT NULL,
    environment text COLLATE "C" NOT NULL,
    number bigint NOT NULL,
    up_to text COLLATE "C" NOT NULL,
    -- Whether its sums count its payments. Before, they only count what changes.
    is_counted boolean NOT NULL DEFAULT false,
    PRIMARY KEY (developer, environment, number)
);
CREATE UNIQUE INDEX payment_block_up_to ON payment_block (developer, environment, up_to);
CREATE INDEX payment_block_uncounted ON payment_block (developer, environment, number) WHERE NOT is_counted;

-- Sums. Connections add to different rows, so that few wait for each other; a reader adds them up. Slot -1 is the first count.
CREATE TABLE payment_block_sum (
    developer text COLLATE "C" NOT NULL,
    environment text COLLATE "C" NOT NULL,
    number bigint NOT NULL,
    status text COLLATE "C" NOT NULL,
    slot smallint NOT NULL,
    payments bigint NOT NULL,
    PRIMARY KEY (developer, environment, number, status, slot)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);

-- Adds what a statement changed to the sums of the blocks that its payments are in.
CREATE FUNCTION add_to_payment_blocks() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    own_slot CONSTANT smallint := pg_backend_pid() % 8;
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO payment_block_sum AS s (developer, environment, number, status, slot, payments)
        SELECT p.developer, p.environment, b.number, p.status, own_slot, count(*)
        FROM added p CROSS JOIN LATERAL (SELECT number FROM payment_block b WHERE b.developer = p.developer
            AND b.environment = p.environment AND b.up_to >= p.id ORDER BY b.up_to LIMIT 1) b
        GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4
        ON CONFLICT (developer, environment, number, status, slot) DO UPDATE SET payments = s.payments + excluded.payments;
    ELSE
        INSERT INTO payment_block_sum AS s (developer, environment, number, status, slot, payments)
        SELECT p.developer, p.environment, b.number, p.status, own_slot, sum(p.payments)
        FROM (SELECT developer, environment, id, status, -1 AS payments FROM removed
            UNION ALL SELECT developer, environment, id, status, 1 FROM added) p
        CROSS JOIN LATERAL (SELECT number FROM payment_block b WHERE b.developer = p.developer
            AND b.environment = p.environment AND b.up_to >= p.id ORDER BY b.up_to LIMIT 1) b
        GROUP BY 1, 2, 3, 4 HAVING sum(p.payments) <> 0 ORDER BY 1, 2, 3, 4
        ON CONFLICT (developer, environment, number, status, slot) DO UPDATE SET payments = s.payments + excluded.payments;
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER payments_are_added AFTER INSERT ON payment REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION add_to_payment_blocks();
CREATE TRIGGER payments_are_changed AFTER UPDATE ON payment REFERENCING OLD TABLE AS removed NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION add_to_payment_blocks();

-- The list of events. A payment's body has the events themselves.
CREATE TABLE event (
    id text COLLATE "C" PRIMARY KEY,
    developer text COLLATE "C" NOT NULL,
    environment text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    payment text COLLATE "C" NOT NULL,
    -- The transaction that added it, and its number. What a transaction adds is shown when every earlier one has ended. So nothing
    -- is ever added before an event that somebody has seen.
    added_by xid8 NOT NULL DEFAULT pg_current_xact_id(),
    number bigint GENERATED ALWAYS AS IDENTITY,
    -- What it adds to the merchant's balance, in minor units: what was paid or given back, and the fee on it.
    currency text COLLATE "C",
    amount bigint,
    fee bigint
) WITH (autovacuum_vacuum_insert_scale_factor = 0.02);
CREATE INDEX event_list ON event (developer, environment, added_by, number);
-- The list of transactions, which are the events of changes with postings.
CREATE INDEX event_transaction ON event (developer, environment, added_by, number) INCLUDE (currency, amount, fee)
    WHERE amount IS NOT NULL;

-- What payments are found by. Rows are only added: a payment keeps its values.
CREATE TABLE payment_lookup (
    developer text COLLATE "C" NOT NULL,
    environment text COLLATE "C" NOT NULL,
    -- reference, email or phone
    kind text COLLATE "C" NOT NULL,
    -- In its normal form.
    value text COLLATE "C" NOT NULL,
    payment text COLLATE "C" NOT NULL,
    -- Whether the payment was only created because no other had the value.
    is_unique boolean NOT NULL DEFAULT false,
    PRIMARY KEY (developer, environment, kind, value, payment)
);
-- Of servers that create such payments at the same time, one does.
CREATE UNIQUE INDEX payment_lookup_unique ON payment_lookup (developer, environment, kind, value) WHERE is_unique;
ALTER TABLE payment_lookup SET (autovacuum_vacuum_insert_scale_factor = 0.02);

-- What the transactions of a scope up to one come to. Only later ones are added to their order, so it never changes.
CREATE TABLE balance_checkpoint (
    developer text COLLATE "C" NOT NULL,
    environment text COLLATE "C" NOT NULL,
    added_by xid8 NOT NULL,
    number bigint NOT NULL,
    bdt numeric NOT NULL,
    usd numeric NOT NULL,
    PRIMARY KEY (developer, environment, added_by, number)
);

-- What the payments of each day come to. All of a payment belongs to the day of its creation, in UTC.
CREATE TABLE day_total (
    developer text COLLATE "C" NOT NULL,
    environment text COLLATE "C" NOT NULL,
    currency text COLLATE "C" NOT NULL,
    -- Such as 2026-03-01.
    day text COLLATE "C" NOT NULL,
    -- Each connection adds to rows of its own, so that none waits for another; a reader adds them up.
    slot smallint NOT NULL,
    created bigint NOT NULL,
    -- How many of these were ever paid, and what was paid, in minor units.
    paid bigint NOT NULL,
    volume numeric NOT NULL,
    PRIMARY KEY (developer, environment, currency, day, slot)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

-- The requests of a minute, which all servers count together. Without a log: after a crash, counting begins anew.
CREATE UNLOGGED TABLE request_window (
    -- An API key or an address.
    subject text COLLATE "C" PRIMARY KEY,
    begun_at bigint NOT NULL,
    requests bigint NOT NULL,
    -- How many of the requests that were counted last wait for the answer.
    waiting bigint NOT NULL
) WITH (fillfactor = 50);

-- Rows that are changed again and again, or leave after a day: their room is used again before the table has grown much.
ALTER TABLE total SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
ALTER TABLE lease SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
ALTER TABLE connection SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
ALTER TABLE request_window SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
ALTER TABLE pending_event SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000);
ALTER TABLE idempotency SET (autovacuum_vacuum_scale_factor = 0.05);
-- A page far down a list is counted in the index alone where the table's pages are known to be visible to all.
ALTER TABLE payment SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.02);
ALTER TABLE delivery SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.02);

-- Claims on work need not outlive a crash: who loses one finishes nothing, and the work is claimed again.
ALTER TABLE lease SET UNLOGGED;
