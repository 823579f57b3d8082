#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod store;

/// The version of sqlx whose pools and transactions the stores take.
pub use sqlx;
#[cfg(feature = "postgres")]
pub use store::{PgTx, PostgresStore};
#[cfg(feature = "sqlite")]
pub use store::{SqliteStore, SqliteTx};
