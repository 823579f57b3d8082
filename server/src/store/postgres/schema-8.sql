-- Version 8: what the payments of each day come to. All of a payment belongs to the day of its creation, in UTC.
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

-- What a payment's postings say was paid. A payment is paid once.
CREATE FUNCTION volume_of(postings text) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
    SELECT -(v->>'minor')::bigint FROM json_array_elements(postings::json) v
    WHERE v->>'account' = 'gateway_clearing' AND (v->>'minor')::bigint < 0
$$;

-- Servers of earlier versions count no days, and do not set counts_days. This counts theirs. Making the triggers waits for their
-- transactions and holds new ones up, so none is missed below.
CREATE FUNCTION count_day_of_payment() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    payment CONSTANT json := payment_json(NEW.body) #> '{session,payment}';
BEGIN
    INSERT INTO day_total AS t (developer, environment, currency, day, slot, created, paid, volume)
    VALUES (NEW.developer, NEW.environment, payment->>'currency', left(payment->>'created_at', 10), -1, 1, 0, 0)
    ON CONFLICT (developer, environment, currency, day, slot) DO UPDATE SET created = t.created + 1;
    RETURN NULL;
END
$$;
CREATE FUNCTION count_day_of_posting() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO day_total AS t (developer, environment, currency, day, slot, created, paid, volume)
    SELECT p.developer, p.environment, payment->>'currency', left(payment->>'created_at', 10), -1, 0, 1, volume_of(NEW.body)
    FROM payment p CROSS JOIN LATERAL (SELECT payment_json(p.body) #> '{session,payment}' AS payment) j
    WHERE p.id = NEW.payment AND volume_of(NEW.body) IS NOT NULL
    ON CONFLICT (developer, environment, currency, day, slot)
        DO UPDATE SET paid = t.paid + 1, volume = t.volume + excluded.volume;
    RETURN NULL;
END
$$;
CREATE TRIGGER payments_are_counted_by_day AFTER INSERT ON payment FOR EACH ROW
    WHEN (current_setting('payments.counts_days', true) IS DISTINCT FROM 'on') EXECUTE FUNCTION count_day_of_payment();
CREATE TRIGGER postings_are_counted_by_day AFTER INSERT ON posting FOR EACH ROW
    WHEN (current_setting('payments.counts_days', true) IS DISTINCT FROM 'on') EXECUTE FUNCTION count_day_of_posting();

INSERT INTO day_total (developer, environment, currency, day, slot, created, paid, volume)
SELECT p.developer, p.environment, payment->>'currency', left(payment->>'created_at', 10), -1, count(*), count(o.volume),
    coalesce(sum(o.volume), 0)
FROM payment p
CROSS JOIN LATERAL (SELECT payment_json(p.body) #> '{session,payment}' AS payment) j
LEFT JOIN (SELECT payment AS id, volume_of(body) AS volume FROM posting) o ON o.id = p.id AND o.volume IS NOT NULL
GROUP BY 1, 2, 3, 4;
