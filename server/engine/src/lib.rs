//! Durable, ordered bytes in one directory, for one process.
//!
//! A commit is answered once it is in a journal that is synced. Beside the journal there is a tree (sled), which finds keys
//! quickly and need not be durable: after a crash the journal updates or rebuilds it. Commits that wait at the same time
//! share one sync.
//!
//! ```
//! use journaled_tree::{CommitError, Layout, Options, TreeError};
//!
//! /// Accounts and what they hold. The first version of this layout.
//! struct Accounts;
//!
//! impl Layout for Accounts {
//!     fn format(&self) -> u32 {
//!         1
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # tokio::runtime::Runtime::new()?.block_on(async {
//! # let directory = tempfile::tempdir()?;
//! let (database, closing) = Options::new(directory.path(), Accounts).open()?;
//!
//! // A change decides by what is there, and writes all or nothing.
//! let add = |account: &'static str, amount: u64| {
//!     database.commit(move |view| -> Result<u64, TreeError> {
//!         let before = view.get(account.as_bytes())?.map_or(0, |held| u64::from_be_bytes(held[..].try_into().unwrap()));
//!         view.put(account, (before + amount).to_be_bytes());
//!         Ok(before + amount)
//!     })
//! };
//! let (one, other) = tokio::join!(add("account/1", 30), add("account/1", 12));
//! assert_eq!(one?.max(other?), 42);
//!
//! match add("account/2", 1).await {
//!     Ok(held) => assert_eq!(held, 1),                             // no crash undoes it
//!     Err(CommitError::NotWritten) => { /* the disk is full: try again later */ }
//!     Err(error) => return Err(error.into()),
//! }
//! assert_eq!(database.range(b"account/".to_vec()..b"account0".to_vec()).count(), 2);
//!
//! // Everything is on the disk when this returns.
//! drop(database);
//! closing.wait();
//! # Ok(()) })
//! # }
//! ```
//!
//! # How it works
//!
//! **An entry** is one batch: the writes of all changes that were committed together. Numbers are little-endian. The
//! checksum is CRC-32 of what follows it. Entries are numbered from 1 without a gap, across files.
//!
//! ```text
//! | length: 4 | checksum: 4 | number: 8 | key length: 4 | key | 1 | value length: 4 | value |   a put
//!                                       | key length: 4 | key | 0 |                             a removal ...
//! ```
//!
//! **A journal file** has the number of its first entry as its name. There are zeros after its last entry, so that a sync
//! need not write a new file length too. The file's head has the length that is on the disk. It is written together with the
//! first entry in new zeros, so it costs no sync of its own. A file never gets shorter. If the last file is shorter than its
//! head says, something else cut it off: the engine refuses it, unless the zeros after its last entry show that no entry is
//! missing. `journal.json` lists the files. A file gets its name when its head is on the disk, and is used when it is listed.
//! Closed files are compressed.
//!
//! ```text
//! journal.json                            {"files":[1,205,391]}
//! journal/00000000000000000001.journal.zst       closed: entries 1 to 204
//! journal/00000000000000000205.journal           closed, not yet compressed
//! journal/00000000000000000391.journal           | PAYJRNL1 | length: 8 | entry 391 | entry 392 | 0 0 0 0 ... |
//!                                                                                     synced ^               length ^
//! ```
//!
//! **The overlay** has the durable writes that are not yet in the tree: the latest write to each key. Readers look there
//! first. The applier takes the writes that gathered within a second, or earlier if they are many, and applies each key once.
//! It drops them from the overlay when all are in the tree, so a reader always finds a value in at least one of the two.
//!
//! ```text
//! change -+                                  +-> answer the callers
//! change -+-> decide -> append, sync -> show +
//! change -+             (journal)            +-> overlay: gathered -> taken -> applier -> tree: up to 392
//!                                                   ^                                     ^
//!                                         get, range: here first, then here --------------+
//! ```
//!
//! **The tree is synced** when a journal file is long enough and the next one has begun. Until then it is only flushed.
//! Commits go on during the sync.
//!
//! ```text
//! journal:  -> file 513 begun, listed ------------------------> listed: the tree has 530 -> files that nobody needs removed
//! tree:                              -> 530 applied -> synced -^
//! a start:  applies again what comes after 530
//! ```
//!
//! All calls on files go through one trait, which the operating system implements. With the feature `simulation`, a disk in
//! memory implements it too. For tests, it crashes, fails and fills up as its seed decides.
//!
//! # What it promises
//!
//! - When [`Database::commit`] returns `Ok`, the whole change is durable: `fdatasync` of the journal has returned. When it
//!   returns [`CommitError::Refused`] or [`CommitError::NotWritten`], nothing of it was written.
//! - Changes have one order. Each sees everything before it, and its own writes. No two run at the same time.
//! - [`Database::get`] finds the last durable value. After a value was read, no older one is read. Scans have no snapshot:
//!   they may see part of a batch that is committed meanwhile; [`Layout::apply_order`] says in which order.
//! - After a power cut, the first of the unanswered batches may be whole, and no batch is there in part. The power cut may
//!   damage the tree; then the next opening rebuilds it from the journal and keeps the damaged one as `sled.damaged`.
//! - A damaged entry before the last is never skipped: [`OpenError::Journal`] names the file. A last file that was cut off or
//!   emptied is refused too, if the missing part may have had an entry.
//! - The journal keeps everything until [`Database::keep_journal_after`] says what backups contain. From then on, a damaged
//!   tree may need [`restore()`] from a backup and the journal; together they lose nothing.
//! - A full disk refuses commits; they work again when there is room. A failed sync stops the engine ([`Options::on_stop`]):
//!   only a new opening knows what the disk contains.
//! - While the clock is behind, after it stepped back, the times of entries stand still, so [`Until::Time`] never contradicts
//!   [`Until::Entry`].
//!
//! It does not promise: use by several processes; a snapshot of several keys for readers (decide in a commit instead); that
//! the directory may be copied while it is open (use [`Database::back_up`]); speed with values of more than 100 KiB.
//!
//! A database's directory contains `journal`, `journal.json`, `sled` (the tree), `lock` (locked while the database is open)
//! and `open` (there while the database is open, and after an unclean shutdown).
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

/// Whether a test has planted this fault in the engine ([`simulation::plant`]).
#[cfg(feature = "simulation")]
macro_rules! planted {
    ($fault:ident) => {
        crate::simulation::is_planted(crate::simulation::Planted::$fault)
    };
}
#[cfg(not(feature = "simulation"))]
macro_rules! planted {
    ($fault:ident) => {
        false
    };
}

mod applier;
mod backup;
mod backup_keys;
mod compression;
mod database;
mod disk;
mod entries;
mod error;
mod file_error;
mod group_commit;
mod journal;
mod layout;
mod line;
mod lock;
mod merge;
mod open;
mod overlay;
mod platform;
mod replay;
mod reserve;
mod restore;
mod series;
#[cfg(feature = "simulation")]
pub mod simulation;
mod stop;
mod store;
mod tree;
mod view;
mod whole_file;
mod worker;
mod writes;

pub use backup::Manifest;
pub use backup_keys::backup_keys;
pub use database::{Closing, Database};
pub use entries::{Entries, Entry, KeyRange};
pub use error::{BackupError, CommitError, JournalError, OpenError, TreeError};
pub use file_error::system_error;
pub use journal::check_journal;
pub use layout::Layout;
pub use open::Options;
pub use restore::{LeftOut, Restored, Sources, Until, restore};
pub use series::{Series, TakenUp};
pub use tree::DIRECTORY as TREE_DIRECTORY;
pub use view::View;
pub use writes::{APPLIED, COMMITTED_AT, FORMAT};
