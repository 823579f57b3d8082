//! The statements of a batch. They are prepared when a connection is made, so that each is sent at once and in order.

use tokio_postgres::{Client, Error, Statement};

macro_rules! statements {
    ($( $(#[$meta:meta])* $name:ident = $sql:expr; )*) => {
        /// The statements of a batch, prepared on one connection.
        pub(super) struct Statements {
            $( $(#[$meta])* pub(super) $name: Statement, )*
        }

        impl Statements {
            pub(super) async fn prepare(client: &Client) -> Result<Self, Error> {
                let ($( $name, )*) = tokio::try_join!($( client.prepare($sql), )*)?;
                Ok(Self { $( $name, )* })
            }
        }
    };
}

statements! {
    /// Marks the connection's row with the batch's number.
    mark = "UPDATE connection SET batch = $2, seen_at = now() WHERE id = $1";

    lock_leases = "SELECT l.queue, l.work, l.epoch FROM unnest($1::text[], $2::text[]) k (queue, work) \
        JOIN lease l ON l.queue = k.queue AND l.work = k.work ORDER BY 1, 2 FOR SHARE OF l";
    lock_idempotency = "SELECT i.developer, i.environment, i.digest, i.response, i.payment, i.claim, p.body \
        FROM unnest($1::text[], $2::text[], $3::bytea[]) k (developer, environment, digest) \
        JOIN idempotency i USING (developer, environment, digest) LEFT JOIN payment p ON p.id = i.payment \
        ORDER BY 1, 2, 3 FOR UPDATE OF i";
    lock_records = "SELECT r.kind, r.id, r.version FROM unnest($1::text[], $2::text[]) k (kind, id) \
        JOIN record r USING (kind, id) ORDER BY 1, 2 FOR UPDATE OF r";
    lock_endpoint_counts = "SELECT e.developer, e.environment, e.endpoints \
        FROM unnest($1::text[], $2::text[]) k (developer, environment) \
        JOIN endpoint_count e USING (developer, environment) ORDER BY 1, 2 FOR UPDATE OF e";
    endpoint_counts = "SELECT e.developer, e.environment, e.endpoints \
        FROM unnest($1::text[], $2::text[]) k (developer, environment) \
        JOIN endpoint_count e USING (developer, environment)";
    lock_payments = "SELECT id, body, status, expires_at, check_at, needs_settlement, needs_review FROM payment \
        WHERE id = ANY($1) ORDER BY id FOR UPDATE";
    lock_deliveries = "SELECT id, version FROM delivery WHERE id = ANY($1) ORDER BY id FOR UPDATE";
    found = "SELECT k.nth FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) WITH ORDINALITY \
        k (developer, environment, kind, value, nth) WHERE EXISTS (SELECT FROM payment_lookup l \
        WHERE l.developer = k.developer AND l.environment = k.environment AND l.kind = k.kind AND l.value = k.value)";
    redacted_up_to = "SELECT up_to FROM redaction";

    insert_idempotency = "INSERT INTO idempotency (developer, environment, digest, responded_at, response, payment, \
        claimed_until, claim) SELECT * FROM unnest($1::text[], $2::text[], $3::bytea[], $4::bigint[], $5::text[], \
        $6::text[], $7::bigint[], $8::text[])";
    update_idempotency = "UPDATE idempotency i SET responded_at = k.responded_at, response = k.response, \
        payment = k.payment, claimed_until = k.claimed_until, claim = k.claim FROM unnest($1::text[], $2::text[], \
        $3::bytea[], $4::bigint[], $5::text[], $6::text[], $7::bigint[], $8::text[]) k (developer, environment, digest, \
        responded_at, response, payment, claimed_until, claim) \
        WHERE i.developer = k.developer AND i.environment = k.environment AND i.digest = k.digest";
    delete_idempotency = "DELETE FROM idempotency i USING unnest($1::text[], $2::text[], $3::bytea[]) \
        k (developer, environment, digest) \
        WHERE i.developer = k.developer AND i.environment = k.environment AND i.digest = k.digest";

    insert_records = "INSERT INTO record (kind, id, parent, version, body) \
        SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::text[])";
    update_records = "UPDATE record r SET parent = k.parent, version = k.version, body = k.body \
        FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::text[]) k (kind, id, parent, version, body) \
        WHERE r.kind = k.kind AND r.id = k.id";
    delete_records = "DELETE FROM record r USING unnest($1::text[], $2::text[]) k (kind, id) \
        WHERE r.kind = k.kind AND r.id = k.id";

    insert_endpoint_counts = "INSERT INTO endpoint_count (developer, environment, endpoints) \
        SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[])";
    update_endpoint_counts = "UPDATE endpoint_count e SET endpoints = k.endpoints \
        FROM unnest($1::text[], $2::text[], $3::bigint[]) k (developer, environment, endpoints) \
        WHERE e.developer = k.developer AND e.environment = k.environment";

    insert_payments = "INSERT INTO payment (id, developer, environment, status, version, expires_at, check_at, \
        needs_settlement, needs_review, body) SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], \
        $5::bigint[], $6::bigint[], $7::bigint[], $8::boolean[], $9::boolean[], $10::text[])";
    update_payments = "UPDATE payment p SET status = k.status, version = k.version, expires_at = k.expires_at, \
        check_at = k.check_at, needs_settlement = k.needs_settlement, needs_review = k.needs_review, body = k.body \
        FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::boolean[], $7::boolean[], \
        $8::text[]) k (id, status, version, expires_at, check_at, needs_settlement, needs_review, body) \
        WHERE p.id = k.id";
    insert_postings = "INSERT INTO posting (payment, version, body) \
        SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[])";

    insert_events = "INSERT INTO event (id, developer, environment, kind, payment, currency, amount, fee) \
        SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[], \
        $8::bigint[])";

    insert_lookups = "INSERT INTO payment_lookup (developer, environment, kind, value, payment, is_unique) \
        SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::boolean[])";

    insert_pending = "INSERT INTO pending_event (id, payment, after) \
        SELECT * FROM unnest($1::text[], $2::text[], $3::text[])";
    update_pending = "UPDATE pending_event e SET after = k.after FROM unnest($1::text[], $2::text[]) k (id, after) \
        WHERE e.id = k.id";
    delete_pending = "DELETE FROM pending_event WHERE id = ANY($1)";

    insert_deliveries = "INSERT INTO delivery (id, developer, environment, endpoint, payment, version, is_pending, \
        retry_at, body) SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], \
        $7::boolean[], $8::bigint[], $9::text[])";
    update_deliveries = "UPDATE delivery d SET version = k.version, is_pending = k.is_pending, retry_at = k.retry_at, \
        body = k.body FROM unnest($1::text[], $2::bigint[], $3::boolean[], $4::bigint[], $5::text[]) \
        k (id, version, is_pending, retry_at, body) WHERE d.id = k.id";

    insert_redaction = "INSERT INTO redaction (up_to) VALUES ($1)";

    add_totals = "INSERT INTO total (developer, environment, name, slot, value) \
        SELECT k.developer, k.environment, k.name, $4, k.value::numeric \
        FROM unnest($1::text[], $2::text[], $3::text[], $5::text[]) k (developer, environment, name, value) \
        ON CONFLICT (developer, environment, name, slot) DO UPDATE SET value = total.value + excluded.value";
    add_days = "INSERT INTO day_total AS t (developer, environment, currency, day, slot, created, paid, volume) \
        SELECT k.developer, k.environment, k.currency, k.day, $5, k.created, k.paid, k.volume::numeric \
        FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $6::bigint[], $7::bigint[], $8::text[]) \
        k (developer, environment, currency, day, created, paid, volume) \
        ON CONFLICT (developer, environment, currency, day, slot) DO UPDATE SET created = t.created + excluded.created, \
        paid = t.paid + excluded.paid, volume = t.volume + excluded.volume";
}
