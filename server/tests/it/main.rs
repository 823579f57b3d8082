//! The real binary, over real HTTP, on a real disk.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod administration;
mod delivery;
mod idempotency;
mod lists;
mod page;
mod readme;
mod receiver;
mod refusals;
mod server;
mod story;
