//! Helpers that the tests of several crates share.
//!
//! A test that needs a database starts a [`Cluster`](cluster::Cluster), which ends with the process:
//!
//! ```no_run
//! let url = test_support::cluster::Cluster::shared().new_database();
//! ```
#![forbid(unsafe_code)]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod binary;
pub mod cluster;
pub mod disk;
pub mod relay;
pub mod small_disk;
pub mod trace;

pub use binary::server_binary;
