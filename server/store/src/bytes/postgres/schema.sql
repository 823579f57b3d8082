-- What servers agree on before they read or write anything else. One row.
CREATE TABLE schema_version (
    is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
    version integer NOT NULL
);

-- A range of slots. Never updated: the row is the cell's lock, and the only map from slots to cells.
CREATE TABLE cell (
    cell int PRIMARY KEY,
    first_slot int NOT NULL,
    last_slot int NOT NULL
);

-- A row a commit: the cell's order, and whose the commit is. Old rows are deleted from the low end.
CREATE TABLE batch (
    cell int NOT NULL,
    batch bigint NOT NULL,
    server text NOT NULL,
    tag uuid NOT NULL,
    PRIMARY KEY (cell, batch)
);

-- Text under its key.
CREATE TABLE record (
    cell int NOT NULL,
    key bytea NOT NULL,
    body text NOT NULL,
    PRIMARY KEY (key, cell)
);

-- What follows from records. The key of a hot entry ends with the eight bytes of the batch that wrote it.
CREATE TABLE entry (
    cell int NOT NULL,
    key bytea NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (key, cell)
);

-- How many requests somebody made in a minute. A crash may lose them.
CREATE UNLOGGED TABLE request_window (
    cell int NOT NULL,
    -- An API key or an address.
    subject text COLLATE "C" NOT NULL,
    begun_at bigint NOT NULL,
    requests bigint NOT NULL,
    -- How many of the requests that were counted last wait for the answer.
    waiting bigint NOT NULL,
    PRIMARY KEY (subject, cell)
) WITH (fillfactor = 50);

-- Rows that come and go are cleaned by their number, not by their share of the table.
ALTER TABLE batch SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000);
ALTER TABLE entry SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 50000);
ALTER TABLE record SET (autovacuum_vacuum_scale_factor = 0.05);
ALTER TABLE request_window SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
