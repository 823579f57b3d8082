//! The real binary, over real HTTP, on a real disk.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod account;
mod administration;
mod checkout;
mod conformance;
mod delivery;
mod durability;
mod formats;
mod gateway_chaos;
mod gateways;
mod idempotency;
mod limits;
mod lists;
mod live;
mod openapi;
mod operations;
mod page;
mod readme;
mod receiver;
mod refusals;
mod server;
mod story;
mod webhooks;
