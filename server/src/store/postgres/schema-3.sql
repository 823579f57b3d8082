-- Version 3: how many payments of each status a part of a list has, so that a page far down is found without counting up to it.

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

-- Adds what a statement changed to the sums of the blocks that its payments are in. Whoever writes a payment runs this, a server
-- of an earlier version too.
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
