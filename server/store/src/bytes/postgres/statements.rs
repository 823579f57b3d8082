//! The statements of a commit. Each names one cell. They are prepared when a connection is made, so that each is sent at once
//! and in order.
//!
//! Each finds its rows by key. The primary key begins with the key and not with the cell: without statistics, or for a
//! generic plan, the planner would choose to walk all rows of a cell.

use tokio_postgres::{Client, Error, Statement};

macro_rules! statements {
    ($( $(#[$meta:meta])* $name:ident = $sql:expr; )*) => {
        /// The statements, prepared on one connection.
        pub(super) struct Statements {
            $( $(#[$meta])* pub(super) $name: Statement, )*
        }

        impl Statements {
            pub(super) async fn prepare(client: &Client) -> Result<Self, Error> {
                let ($( $name, )*) = tokio::try_join!($( client.prepare($sql), )*)?;
                Ok(Self { $( $name, )* })
            }
        }
    };
}

/// Begins a read of many keys.
macro_rules! each_key {
    () => {
        "SELECT k.nth, f.key, f.body FROM unnest($2::bytea[]) WITH ORDINALITY k (key, nth) CROSS JOIN LATERAL "
    };
}

/// The newest version of a hot entry. The number of a batch begins with a zero byte, so no other key lies between the
/// versions.
macro_rules! newest_version {
    () => {
        "(SELECT key, body FROM entry WHERE cell = $1 AND key > k.key AND key <= k.key || '\\x00ffffffffffffff'::bytea \
         AND length(key) = length(k.key) + 8 ORDER BY key DESC LIMIT 1) f"
    };
}

pub(super) const NEWEST: &str = "SELECT batch, tag FROM batch WHERE cell = $1 ORDER BY batch DESC LIMIT 1";
pub(super) const RECORDS: &str =
    concat!(each_key!(), "(SELECT key, body FROM record WHERE cell = $1 AND key = k.key OFFSET 0) f");
pub(super) const ENTRIES: &str =
    concat!(each_key!(), "(SELECT key, body FROM entry WHERE cell = $1 AND key = k.key OFFSET 0) f");
pub(super) const HOT: &str = concat!(each_key!(), newest_version!());

statements! {
    lock = "SELECT first_slot, last_slot FROM cell WHERE cell = $1 FOR UPDATE";
    /// This is a statement of its own after the lock, because the snapshot of the statement that locks is older than its
    /// wait.
    newest = NEWEST;
    is_there = "SELECT FROM batch WHERE cell = $1 AND batch = $2 AND tag = $3";

    records = RECORDS;
    entries = ENTRIES;
    hot = HOT;
    /// The same, unless the newest batch is this one. The condition is evaluated once.
    hot_unless = concat!(each_key!(), newest_version!(), " WHERE (SELECT b.batch = $3 AND b.tag = $4 FROM batch b \
        WHERE b.cell = $1 ORDER BY b.batch DESC LIMIT 1) IS NOT TRUE");

    /// Fails if this batch does not follow the newest one: then its number is null.
    insert_batch = "INSERT INTO batch (cell, batch, server, tag) SELECT c.cell, (SELECT b.batch + 1 FROM \
        (SELECT batch, tag FROM batch WHERE cell = $1 ORDER BY batch DESC LIMIT 1) b WHERE b.batch = $2 AND b.tag = $3), \
        $4, $5 FROM cell c WHERE c.cell = $1";
    insert_fence = "INSERT INTO batch (cell, batch, server, tag) SELECT c.cell, coalesce((SELECT b.batch FROM batch b \
        WHERE b.cell = $1 ORDER BY b.batch DESC LIMIT 1), 0) + 1, $2, $3 FROM cell c WHERE c.cell = $1 RETURNING batch";
    insert_records = "INSERT INTO record (cell, key, body) SELECT c.cell, t.key, t.body \
        FROM cell c, unnest($2::bytea[], $3::text[]) t (key, body) WHERE c.cell = $1";
    insert_entries = "INSERT INTO entry (cell, key, body) SELECT c.cell, t.key, t.body \
        FROM cell c, unnest($2::bytea[], $3::bytea[]) t (key, body) WHERE c.cell = $1";
    /// For rows that may exist. An update by a join would get a generic plan for the table's size of that moment: on an empty
    /// table, one that walks the cell.
    put_records = "INSERT INTO record (cell, key, body) SELECT c.cell, t.key, t.body \
        FROM cell c, unnest($2::bytea[], $3::text[]) t (key, body) WHERE c.cell = $1 \
        ON CONFLICT (key, cell) DO UPDATE SET body = excluded.body";
    put_entries = "INSERT INTO entry (cell, key, body) SELECT c.cell, t.key, t.body \
        FROM cell c, unnest($2::bytea[], $3::bytea[]) t (key, body) WHERE c.cell = $1 \
        ON CONFLICT (key, cell) DO UPDATE SET body = excluded.body";
    delete_records = "DELETE FROM record WHERE cell = $1 AND key = ANY($2::bytea[])";
    delete_entries = "DELETE FROM entry WHERE cell = $1 AND key = ANY($2::bytea[])";
    /// Begins where the last deletion ended, since a scan from the start may have to walk over deleted rows.
    delete_batches = "DELETE FROM batch WHERE cell = $1 AND batch >= $2 AND batch < $3";
}
