//! Tests of the client against the real server and faulty servers.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod every_route;
mod example;
mod faults;
mod lists;
mod live;
mod lost_responses;
mod round_trip;
mod scripted_server;
mod server;
#[cfg(feature = "testing")]
mod testkit;
mod wire;
#[cfg(feature = "testing")]
mod worlds;
