-- Version 2: the requests of a minute, which all servers count together. Without a log: after a crash, counting begins anew.
CREATE UNLOGGED TABLE request_window (
    -- An API key or an address.
    subject text COLLATE "C" PRIMARY KEY,
    begun_at bigint NOT NULL,
    requests bigint NOT NULL,
    -- How many of the requests that were counted last wait for the answer.
    waiting bigint NOT NULL
) WITH (fillfactor = 50);
