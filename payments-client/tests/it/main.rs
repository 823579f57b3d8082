//! The client against the real server, and against servers that are ill.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod every_route;
mod faults;
mod ill_server;
mod lists;
mod live;
mod lost_answers;
mod round_trip;
mod server;
mod wire;
