-- What people and their tools may read: each record as a row of typed columns. Amounts are in units of the currency. No view
-- has a secret, and none has a customer's name or address. Each view runs with its owner's privileges, so a role needs none on
-- the tables.

-- The JSON of a record. No text of PostgreSQL has the character NUL, so that is replaced.
CREATE FUNCTION json_of(body text) RETURNS json LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN position('\u0000' IN body) = 0 THEN body
        ELSE regexp_replace(body, '(?<!\\)((?:\\\\)*)\\u0000', '\1\\ufffd', 'g') END::json
$$;

-- The text of a JSON string.
CREATE FUNCTION text_of(value json) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT value #>> '{}' $$;

-- The payment, and the payout, that a record is about. Earlier versions wrote only payments.
CREATE FUNCTION payment_of(record json) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN record #>> '{subject}' LIKE 'po\_%' THEN NULL
        ELSE coalesce(record #>> '{subject}', record #>> '{payment}') END
$$;
CREATE FUNCTION payout_of(record json) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN record #>> '{subject}' LIKE 'po\_%' THEN record #>> '{subject}' END
$$;

CREATE VIEW payment WITH (security_barrier) AS SELECT
    text_of(p -> 'id') AS id,
    split_part(text_of(scope), '/', 1) AS developer,
    split_part(text_of(scope), '/', 2) AS environment,
    text_of(p -> 'appId') AS app,
    text_of(p -> 'merchantTransactionId') AS reference,
    text_of(p -> 'amount')::numeric(20, 2) AS amount,
    text_of(p -> 'currency') AS currency,
    text_of(p -> 'status') AS status,
    text_of(p -> 'rawStatus') AS raw_status,
    text_of(p -> 'isSimulated')::boolean AS is_simulated,
    text_of(p -> 'platformFeeAmount')::numeric(20, 2) AS fee,
    text_of(p -> 'netAmount')::numeric(20, 2) AS net_amount,
    text_of(p -> 'paymentMethod') AS method,
    text_of(p -> 'description') AS description,
    p -> 'metadata' AS metadata,
    text_of(p -> 'created_at')::timestamptz AS created_at,
    text_of(p -> 'updatedAt')::timestamptz AS updated_at,
    text_of(p -> 'paid_at')::timestamptz AS paid_at,
    text_of(expires_at)::timestamptz AS expires_at
FROM (SELECT j -> 'scope' AS scope, j -> 'payment' AS p, j #> '{session,expires_at}' AS expires_at
    FROM (SELECT json_of(body) AS j FROM record WHERE substring(key FROM 4 FOR 9) = '/payment/') r) r;
COMMENT ON VIEW payment IS 'Payments. A sandbox that was emptied keeps those of before under another developer.';
COMMENT ON COLUMN payment.developer IS 'The merchant: a workspace''s developer id.';
COMMENT ON COLUMN payment.environment IS 'live or test.';
COMMENT ON COLUMN payment.reference IS 'The merchant''s own, or the payment''s id.';
COMMENT ON COLUMN payment.status IS 'As the API shows it: pending, completed, failed, cancelled, expired, refunded …';
COMMENT ON COLUMN payment.raw_status IS 'The state: created, paid, refunded …';
COMMENT ON COLUMN payment.fee IS 'The platform''s fee.';
COMMENT ON COLUMN payment.net_amount IS 'The amount without the fee.';
COMMENT ON COLUMN payment.metadata IS 'The merchant''s, as it was sent, but with U+FFFD for the character NUL.';
COMMENT ON COLUMN payment.expires_at IS 'When the customer''s session ends.';

CREATE VIEW refund WITH (security_barrier) AS SELECT
    text_of(r -> 'id') AS id,
    payment, developer, environment,
    text_of(r -> 'amount')::numeric(20, 2) AS amount,
    text_of(r -> 'currency') AS currency,
    text_of(r -> 'status') AS status,
    text_of(r -> 'reason') AS reason,
    text_of(r -> 'requiresManualSettlement')::boolean AS is_settled_by_hand,
    text_of(r -> 'createdAt')::timestamptz AS created_at,
    text_of(r -> 'settledAt')::timestamptz AS settled_at
FROM (SELECT text_of(j #> '{payment,id}') AS payment, split_part(text_of(j -> 'scope'), '/', 1) AS developer,
        split_part(text_of(j -> 'scope'), '/', 2) AS environment, json_array_elements(j #> '{payment,refunds}') AS r
    FROM (SELECT json_of(body) AS j FROM record WHERE substring(key FROM 4 FOR 9) = '/payment/') p
    WHERE json_typeof(j #> '{payment,refunds}') = 'array') p;
COMMENT ON VIEW refund IS 'Refunds of payments.';
COMMENT ON COLUMN refund.status IS 'pending_settlement, pending, succeeded or failed.';
COMMENT ON COLUMN refund.is_settled_by_hand IS 'Whether the operator sends the money.';

CREATE VIEW dispute WITH (security_barrier) AS SELECT
    text_of(d -> 'id') AS id,
    payment, developer, environment,
    text_of(d -> 'amount')::numeric(20, 2) AS amount,
    text_of(d -> 'currency') AS currency,
    text_of(d -> 'status') AS status,
    text_of(d -> 'reason') AS reason,
    text_of(d -> 'amountWithdrawn')::numeric(20, 2) AS withdrawn,
    text_of(d -> 'amountReinstated')::numeric(20, 2) AS reinstated,
    text_of(d -> 'feeReturned')::numeric(20, 2) AS fee_returned,
    text_of(d -> 'evidenceDueBy')::timestamptz AS evidence_due_by,
    text_of(d -> 'openedAt')::timestamptz AS opened_at,
    text_of(d -> 'closedAt')::timestamptz AS closed_at
FROM (SELECT text_of(j #> '{payment,id}') AS payment, split_part(text_of(j -> 'scope'), '/', 1) AS developer,
        split_part(text_of(j -> 'scope'), '/', 2) AS environment, json_array_elements(j #> '{payment,disputes}') AS d
    FROM (SELECT json_of(body) AS j FROM record WHERE substring(key FROM 4 FOR 9) = '/payment/') p
    WHERE json_typeof(j #> '{payment,disputes}') = 'array') p;
COMMENT ON VIEW dispute IS 'Disputes of payments.';
COMMENT ON COLUMN dispute.status IS 'warning, needs_response, under_review, won or lost.';
COMMENT ON COLUMN dispute.withdrawn IS 'What the gateway has withdrawn so far.';
COMMENT ON COLUMN dispute.reinstated IS 'What it has reinstated of that.';
COMMENT ON COLUMN dispute.fee_returned IS 'The part of the fee that the merchant has back; null if disputes return none.';
COMMENT ON COLUMN dispute.evidence_due_by IS 'When the evidence must be with the gateway.';

CREATE VIEW payout WITH (security_barrier) AS SELECT
    text_of(p -> 'id') AS id,
    text_of(r #> '{scope,developer_id}') AS developer,
    text_of(p -> 'environment') AS environment,
    text_of(p -> 'amount')::numeric(20, 2) AS amount,
    text_of(p -> 'currency') AS currency,
    text_of(p -> 'status') AS status,
    text_of(p #> '{destination,kind}') AS destination,
    text_of(p #> '{destination,last4}') AS last4,
    text_of(p #> '{statement,openingBalance}')::numeric(30, 2) AS opening_balance,
    text_of(p #> '{statement,closingBalance}')::numeric(30, 2) AS closing_balance,
    text_of(p -> 'reference') AS reference,
    text_of(r -> 'batch') AS batch,
    text_of(p -> 'createdAt')::timestamptz AS created_at,
    text_of(p -> 'sentAt')::timestamptz AS sent_at,
    text_of(p -> 'paidAt')::timestamptz AS paid_at,
    text_of(p -> 'endedAt')::timestamptz AS ended_at
FROM (SELECT r, r -> 'payout' AS p
    FROM (SELECT json_of(body) -> 'record' AS r FROM record WHERE substring(key FROM 4 FOR 8) = '/payout/') r) r;
COMMENT ON VIEW payout IS 'Payouts to merchants.';
COMMENT ON COLUMN payout.status IS 'requested, approved, sending, unknown, paid, failed, cancelled or returned.';
COMMENT ON COLUMN payout.destination IS 'bank_account or wallet.';
COMMENT ON COLUMN payout.last4 IS 'The last four characters of its number.';
COMMENT ON COLUMN payout.batch IS 'The batch in which the operator sent it.';

CREATE VIEW event WITH (security_barrier) AS SELECT
    text_of(j -> 'id') AS id,
    text_of(j #> '{scope,developer_id}') AS developer,
    text_of(j #> '{scope,environment}') AS environment,
    text_of(j -> 'event') AS kind,
    payment_of(j) AS payment,
    payout_of(j) AS payout,
    text_of(j -> 'position')::bigint AS position,
    j -> 'pending' IS NOT NULL AS is_pending,
    text_of(j -> 'created_at')::timestamptz AS created_at
FROM (SELECT json_of(body) AS j FROM record WHERE substring(key FROM 4 FOR 7) = '/event/') r;
COMMENT ON VIEW event IS 'Events of payments and payouts.';
COMMENT ON COLUMN event.kind IS 'Such as payment.completed.';
COMMENT ON COLUMN event.position IS 'Its place among the events of the developer and environment, from 0 on, without gaps.';
COMMENT ON COLUMN event.is_pending IS 'Whether not all its deliveries are made.';

CREATE VIEW delivery WITH (security_barrier) AS SELECT
    text_of(d -> 'id') AS id,
    text_of(d -> 'developerId') AS developer,
    text_of(o -> 'environment') AS environment,
    text_of(d -> 'webhookId') AS endpoint,
    text_of(o -> 'event') AS event,
    text_of(d -> 'event') AS kind,
    payment_of(o) AS payment,
    payout_of(o) AS payout,
    text_of(d -> 'status') AS status,
    text_of(d -> 'attempts')::bigint AS attempts,
    text_of(d -> 'responseStatus')::int AS response_status,
    text_of(d #> '{error,code}') AS error,
    text_of(o -> 'resend_of') AS resend_of,
    text_of(d -> 'createdAt')::timestamptz AS created_at,
    text_of(d -> 'deliveredAt')::timestamptz AS delivered_at
FROM (SELECT o, o -> 'delivery' AS d
    FROM (SELECT json_of(body) -> 'delivery' AS o FROM record WHERE substring(key FROM 4 FOR 10) = '/delivery/') r) r;
COMMENT ON VIEW delivery IS 'Deliveries of events to webhook endpoints, and pings.';
COMMENT ON COLUMN delivery.event IS 'The event that is sent; null for a ping.';
COMMENT ON COLUMN delivery.status IS 'pending, success or failed.';
COMMENT ON COLUMN delivery.error IS 'Why the last attempt had no response.';
COMMENT ON COLUMN delivery.resend_of IS 'The delivery that it sends again.';

CREATE VIEW transaction WITH (security_barrier) AS SELECT
    text_of(j -> 'id') AS id,
    text_of(j #> '{scope,developer_id}') AS developer,
    text_of(j #> '{scope,environment}') AS environment,
    text_of(j #> '{money,booking,kind}') AS kind,
    payment_of(j) AS payment,
    payout_of(j) AS payout,
    text_of(j #> '{money,listed,position}')::bigint AS position,
    text_of(j #> '{money,currency}') AS currency,
    (text_of(j #> '{money,listed,amount}')::numeric / 100)::numeric(20, 2) AS amount,
    (-text_of(j #> '{money,listed,fee}')::numeric / 100)::numeric(20, 2) AS fee,
    ((text_of(j #> '{money,listed,amount}')::numeric + text_of(j #> '{money,listed,fee}')::numeric) / 100)::numeric(20, 2)
        AS net,
    (text_of(j #> '{money,listed,bdt}')::numeric / 100)::numeric(30, 2) AS balance_bdt,
    (text_of(j #> '{money,listed,usd}')::numeric / 100)::numeric(30, 2) AS balance_usd,
    text_of(j -> 'created_at')::timestamptz AS created_at
FROM (SELECT json_of(body) AS j FROM record
    WHERE substring(key FROM 4 FOR 7) = '/event/' OR substring(key FROM 4 FOR 9) = '/booking/') r
WHERE j #> '{money,listed}' IS NOT NULL;
COMMENT ON VIEW transaction IS 'What moved a merchant''s balance: paid payments, refunds, refunds that failed, disputes, payouts.';
COMMENT ON COLUMN transaction.id IS 'Its event, or its own id if it has none.';
COMMENT ON COLUMN transaction.kind IS 'paid, refunded, refund_failed, merchant_cost, dispute_withdrawn, dispute_reinstated, payout_requested, payout_failed, payout_paid_late, payout_returned.';
COMMENT ON COLUMN transaction.position IS 'Its place among those of the developer and environment, from 0 on, without gaps.';
COMMENT ON COLUMN transaction.amount IS 'The gross amount; negative for a refund, a dispute and a payout.';
COMMENT ON COLUMN transaction.fee IS 'What the platform keeps of it.';
COMMENT ON COLUMN transaction.net IS 'What the merchant''s balance changes by.';
COMMENT ON COLUMN transaction.balance_bdt IS 'The merchant''s balance after it.';
COMMENT ON COLUMN transaction.balance_usd IS 'The merchant''s balance after it.';

CREATE VIEW balance WITH (security_barrier) AS SELECT
    developer, environment, currency, sum(net)::numeric(30, 2) AS balance,
    sum(amount) FILTER (WHERE kind = 'paid')::numeric(30, 2) AS volume,
    count(*) FILTER (WHERE kind = 'paid') AS payments
FROM transaction GROUP BY developer, environment, currency;
COMMENT ON VIEW balance IS 'What each merchant''s transactions come to.';
COMMENT ON COLUMN balance.volume IS 'The gross amount of all payments that were ever paid. A refund does not reduce it.';
COMMENT ON COLUMN balance.payments IS 'How many payments were ever paid.';
