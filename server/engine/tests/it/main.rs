//! The engine against what happens to disks and processes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod failing_calls;
mod full_disk;
mod kills;
mod open;
mod power_cuts;
mod readers;
mod simulated;
mod workload;
