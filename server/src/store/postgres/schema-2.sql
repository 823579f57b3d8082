-- Version 2: the requests of a minute, which all servers count together. Without a log: after a crash, counting begins anew.
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
