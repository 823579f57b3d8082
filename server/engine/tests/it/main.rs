//! The engine against what happens to disks and processes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../../../tests/it/disk.rs"]
mod disk;
mod failing_calls;
mod full_disk;
mod kills;
mod open;
mod power_cuts;
mod readers;
mod simulated;
#[path = "../../../tests/it/small_disk.rs"]
mod small_disk;
#[path = "../../../tests/it/trace.rs"]
mod trace;
mod workload;
