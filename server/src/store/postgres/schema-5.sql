-- Version 5: what payments are found by. Rows are only added: a payment keeps its values.
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

-- The values of a payment in its body, as a server of this version writes them. Those with NUL find nothing.
CREATE FUNCTION lookups_of(body text) RETURNS TABLE (kind text, value text) LANGUAGE plpgsql IMMUTABLE
    SET search_path FROM CURRENT AS $$
DECLARE
    payment CONSTANT json := payment_json(body) -> 'session' -> 'payment';
    customer CONSTANT json := payment -> 'customer';
    plain CONSTANT text := translate(customer ->> 'phone', '০১২৩৪৫৬৭৮৯' || E' \t\n\f\r-.()\u00a0', '0123456789');
BEGIN
    RETURN QUERY SELECT * FROM (VALUES
        ('reference', nullif(payment ->> 'merchantTransactionId', payment ->> 'id')),
        ('email', lower(btrim(customer ->> 'email', E' \t\n\f\r') COLLATE "C")),
        ('phone', CASE WHEN plain ~ '^\+?(0088|88)?01[3-9][0-9]{8}$' THEN right(plain, 11) ELSE plain END)
    ) v (kind, value) WHERE v.value <> '' AND strpos(v.value, U&'\FFFF') = 0;
END
$$;

-- Servers of earlier versions write no such rows, and do not set lists_events. This writes theirs. Making the trigger waits for
-- their transactions and holds new ones up, so none is missed below.
CREATE FUNCTION add_payment_lookups() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO payment_lookup (developer, environment, kind, value, payment)
    SELECT NEW.developer, NEW.environment, l.kind, l.value, NEW.id FROM lookups_of(NEW.body) l ORDER BY 3, 4;
    RETURN NULL;
END
$$;
CREATE TRIGGER payments_are_found AFTER INSERT ON payment FOR EACH ROW
    WHEN (current_setting('payments.lists_events', true) IS DISTINCT FROM 'on') EXECUTE FUNCTION add_payment_lookups();

INSERT INTO payment_lookup (developer, environment, kind, value, payment)
SELECT p.developer, p.environment, l.kind, l.value, p.id FROM payment p CROSS JOIN LATERAL lookups_of(p.body) l;
