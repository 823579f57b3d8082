-- The rows of a database that do not follow from its payments, deliveries and endpoints. A sound one has none.
WITH entry AS (
    SELECT p.developer, p.environment, p.body::json #>> '{session,payment,currency}' AS currency,
        replace(e ->> 'account', '_', '-') AS account, (e ->> 'minor')::numeric AS minor
    FROM payments.posting o JOIN payments.payment p ON p.id = o.payment, json_array_elements(o.body::json) e
), derived (developer, environment, name, value) AS (
    SELECT developer, environment, 'payments', count(*)::numeric FROM payments.payment GROUP BY 1, 2
    UNION ALL
    SELECT developer, environment, 'payments/' || status, count(*) FROM payments.payment GROUP BY 1, 2, 3
    UNION ALL
    SELECT developer, environment, 'deliveries', count(*) FROM payments.delivery GROUP BY 1, 2
    UNION ALL
    SELECT developer, environment, 'deliveries/' || endpoint, count(*) FROM payments.delivery GROUP BY 1, 2, 3
    UNION ALL
    SELECT developer, environment, 'balance/' || currency || '/' || account, sum(minor) FROM entry GROUP BY 1, 2, 3
    UNION ALL
    SELECT developer, environment, 'volume/' || currency, sum(-minor) FROM entry
    WHERE account = 'gateway-clearing' AND minor < 0 GROUP BY 1, 2, 3
    UNION ALL
    SELECT developer, environment, 'paid/' || currency, count(*) FROM entry
    WHERE account = 'gateway-clearing' AND minor < 0 GROUP BY 1, 2, 3
), stored AS (
    SELECT developer, environment, name, sum(value) AS value FROM payments.total GROUP BY 1, 2, 3
), state AS (
    SELECT id, body::json #>> '{session,payment,rawStatus}' AS raw, json_array_length(body::json -> 'events') AS events,
        coalesce(json_array_length(body::json #> '{session,payment,refunds}'), 0) AS refunds,
        (SELECT count(*)::int FROM payments.posting o WHERE o.payment = p.id) AS postings
    FROM payments.payment p
)
SELECT 'the day ' || day || ' in ' || currency || ' is ' || coalesce(s.sums::text, 'missing') || ', not ' || coalesce(d.sums::text, 'there')
FROM (SELECT developer, environment, currency, day, row(sum(created), sum(paid), sum(volume)) AS sums
    FROM payments.day_total GROUP BY 1, 2, 3, 4) s
FULL JOIN (SELECT p.developer, p.environment, p.body::json #>> '{session,payment,currency}' AS currency,
        left(p.body::json #>> '{session,payment,created_at}', 10) AS day,
        row(count(*)::numeric, count(e.minor)::numeric, coalesce(sum(-e.minor), 0)) AS sums
    FROM payments.payment p LEFT JOIN (SELECT o.payment, (v ->> 'minor')::numeric AS minor
        FROM payments.posting o, json_array_elements(o.body::json) v
        WHERE v ->> 'account' = 'gateway_clearing' AND (v ->> 'minor')::numeric < 0) e ON e.payment = p.id
    GROUP BY 1, 2, 3, 4) d USING (developer, environment, currency, day)
WHERE s.sums IS DISTINCT FROM d.sums
UNION ALL
SELECT 'sum ' || name || ' is ' || coalesce(s.value, 0) || ', not ' || coalesce(d.value, 0)
FROM derived d FULL JOIN stored s USING (developer, environment, name)
WHERE coalesce(s.value, 0) <> coalesce(d.value, 0)
UNION ALL
SELECT id || ' is ' || raw || ' with ' || postings || ' postings and ' || events || ' events' FROM state
WHERE (postings, events) IS DISTINCT FROM
    (CASE WHEN raw IN ('paid', 'refunded') THEN (1 + refunds, 2 + refunds) ELSE (0, 1) END)
UNION ALL
SELECT min(id) || ' is one of ' || count(*) || ' deliveries of one event to one endpoint' FROM payments.delivery
WHERE body::json ->> 'event' IS NOT NULL AND body::json ->> 'resend_of' IS NULL GROUP BY endpoint, body::json ->> 'event' HAVING count(*) > 1
UNION ALL
SELECT id || ' is a pending event without a payment' FROM payments.pending_event e
WHERE NOT EXISTS (SELECT FROM payments.payment p WHERE p.id = e.payment)
UNION ALL
SELECT developer || ' has ' || endpoints || ' endpoints by count, not ' || found FROM (
    SELECT developer, environment, endpoints, (SELECT count(*) FROM payments.record r
        WHERE r.kind = 'endpoint' AND r.parent = c.developer || '/' || c.environment) AS found
    FROM payments.endpoint_count c) c
WHERE endpoints <> found
UNION ALL
SELECT coalesce(l.id, e.id) || ' is not both an event of a payment and in the list of events' FROM payments.event l
FULL JOIN (SELECT v ->> 'id' AS id, p.id AS payment, p.developer, p.environment, v ->> 'event' AS kind
    FROM payments.payment p, json_array_elements(p.body::json -> 'events') v) e
    USING (id, payment, developer, environment, kind)
WHERE l.id IS NULL OR e.id IS NULL
UNION ALL
SELECT coalesce(l.payment, p.id) || ' is not found by the reference that it has' FROM (
    SELECT payment, developer, environment, value FROM payments.payment_lookup WHERE kind = 'reference') l
FULL JOIN (SELECT id, id AS payment, developer, environment,
        body::json -> 'session' -> 'payment' ->> 'merchantTransactionId' AS value
    FROM payments.payment WHERE body::json -> 'session' -> 'payment' ->> 'merchantTransactionId' <> id) p
    USING (payment, developer, environment, value)
WHERE l.payment IS NULL OR p.id IS NULL
UNION ALL
SELECT coalesce(l.id, m.id) || ' is not a transaction as its postings say' FROM
    (SELECT id, currency, amount, fee FROM payments.event WHERE amount IS NOT NULL) l
FULL JOIN (
    -- The events and the postings of a payment's changes are in one order, beside the events of changes without postings.
    SELECT e.id, p.body::json #>> '{session,payment,currency}' AS currency,
        (SELECT sum((v ->> 'minor')::bigint) FROM json_array_elements(o.body::json) v
            WHERE v ->> 'account' IN ('merchant', 'platform_fee'))::bigint AS amount,
        (SELECT -sum((v ->> 'minor')::bigint) FROM json_array_elements(o.body::json) v
            WHERE v ->> 'account' = 'platform_fee')::bigint AS fee
    FROM payments.payment p
    CROSS JOIN LATERAL (SELECT v ->> 'id' AS id, row_number() OVER (ORDER BY nth) AS nth
        FROM json_array_elements(p.body::json -> 'events') WITH ORDINALITY j (v, nth)
        WHERE v ->> 'event' IN ('payment.completed', 'payment.partially_refunded', 'payment.refunded')) e
    JOIN LATERAL (SELECT body, row_number() OVER (ORDER BY version) AS nth FROM payments.posting WHERE payment = p.id) o
        USING (nth)) m USING (id, currency, amount, fee)
WHERE l.id IS NULL OR m.id IS NULL
