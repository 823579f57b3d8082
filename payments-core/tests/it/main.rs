//! Tests of the resources in their wire format.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod example;
mod unknown_fields;
