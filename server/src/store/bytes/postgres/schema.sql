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
