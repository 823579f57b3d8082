-- Version 4: the list of events. A payment's body has the events themselves.
CREATE TABLE event (
    id text COLLATE "C" PRIMARY KEY,
    developer text COLLATE "C" NOT NULL,
    environment text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    payment text COLLATE "C" NOT NULL,
    -- The transaction that added it, and its number. What a transaction adds is shown when every earlier one has ended. So nothing
    -- is ever added before an event that somebody has seen.
    added_by xid8 NOT NULL DEFAULT pg_current_xact_id(),
    number bigint GENERATED ALWAYS AS IDENTITY
);
CREATE INDEX event_list ON event (developer, environment, added_by, number);
ALTER TABLE event SET (autovacuum_vacuum_insert_scale_factor = 0.02);

-- A payment's body. JSON may have the character NUL, which no text here can: it becomes a character that means nothing.
CREATE FUNCTION payment_json(body text) RETURNS json LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN strpos(body, '\u0000') = 0 THEN body::json
        ELSE regexp_replace(body, '(?<!\\)((\\\\)*)\\u0000', '\1\uffff', 'g')::json END
$$;

-- Servers of earlier versions list no events, and do not set lists_events. This lists what they write. Making the trigger waits
-- for their transactions and holds new ones up, so none is missed below.
CREATE FUNCTION list_events() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO event (id, developer, environment, kind, payment)
    SELECT e->>'id', NEW.developer, NEW.environment, e->>'event', NEW.id
    FROM json_array_elements(payment_json(NEW.body)->'events') e ORDER BY 1 ON CONFLICT DO NOTHING;
    RETURN NULL;
END
$$;
CREATE TRIGGER events_are_listed AFTER INSERT OR UPDATE ON payment FOR EACH ROW
    WHEN (current_setting('payments.lists_events', true) IS DISTINCT FROM 'on') EXECUTE FUNCTION list_events();

INSERT INTO event (id, developer, environment, kind, payment)
SELECT e->>'id', p.developer, p.environment, e->>'event', p.id
FROM payment p CROSS JOIN LATERAL json_array_elements(payment_json(p.body)->'events') e ORDER BY 1;
