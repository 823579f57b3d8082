//! The real binary, over real HTTP, on a real disk.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod account;
mod administration;
mod backup;
mod check;
mod checkout;
mod conformance;
mod connections;
mod delivery;
mod disk;
mod durability;
mod export;
mod failing_calls;
mod formats;
mod full_disk;
mod gateway_chaos;
mod gateways;
mod idempotency;
mod lanes;
mod limits;
mod lists;
mod live;
mod lost_files;
mod model;
mod openapi;
mod operations;
mod page;
mod power_loss;
mod readme;
mod receiver;
mod recovery;
mod refusals;
mod server;
mod story;
mod webhooks;
mod wire;
