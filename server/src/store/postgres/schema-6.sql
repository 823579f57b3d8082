-- Version 6: the list of transactions, which are the events of changes with postings.

-- What an event adds to the merchant's balance, in minor units: what was paid or given back, and the fee on it.
ALTER TABLE event ADD COLUMN currency text COLLATE "C", ADD COLUMN amount bigint, ADD COLUMN fee bigint;
CREATE INDEX event_transaction ON event (developer, environment, added_by, number) INCLUDE (currency, amount, fee)
    WHERE amount IS NOT NULL;

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

-- The events and the postings of a payment's changes are in one order, beside the events of changes without postings.
CREATE VIEW event_money AS
SELECT e.id, p.body::json #>> '{session,payment,currency}' AS currency, p.id AS payment, o.version,
    (SELECT sum((v->>'minor')::bigint) FROM json_array_elements(o.body::json) v
        WHERE v->>'account' IN ('merchant', 'platform_fee'))::bigint AS amount,
    (SELECT -sum((v->>'minor')::bigint) FROM json_array_elements(o.body::json) v
        WHERE v->>'account' = 'platform_fee')::bigint AS fee
FROM payment p
CROSS JOIN LATERAL (SELECT v->>'id' AS id, row_number() OVER (ORDER BY nth) AS nth
    FROM json_array_elements(p.body::json->'events') WITH ORDINALITY j (v, nth)
    WHERE v->>'event' IN ('payment.completed', 'payment.partially_refunded', 'payment.refunded')) e
JOIN LATERAL (SELECT version, body, row_number() OVER (ORDER BY version) AS nth FROM posting WHERE payment = p.id) o USING (nth);

-- Servers of earlier versions write postings after the events, and say nothing of money. This adds it. Making the trigger waits
-- for their transactions and holds new ones up, so none is missed below.
CREATE FUNCTION list_transaction() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    UPDATE event e SET currency = m.currency, amount = m.amount, fee = m.fee
    FROM event_money m WHERE m.payment = NEW.payment AND m.version = NEW.version AND e.id = m.id;
    RETURN NULL;
END
$$;
CREATE TRIGGER transactions_are_listed AFTER INSERT ON posting FOR EACH ROW
    WHEN (current_setting('payments.lists_events', true) IS DISTINCT FROM 'on') EXECUTE FUNCTION list_transaction();

UPDATE event e SET currency = m.currency, amount = m.amount, fee = m.fee FROM event_money m WHERE e.id = m.id;

-- The deliveries of a payment's events, for its timeline.
CREATE INDEX delivery_payment ON delivery (payment, id) WHERE payment IS NOT NULL;
