//! Comparing takes the same path wherever the first difference is: valgrind counts the instructions of a whole
//! verification, and they are equal to the last one.
#![cfg(feature = "std")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{path::Path, process::Command};

/// The example, built as a release: what matters is what the optimizer makes of it.
fn probe() -> std::path::PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("constant-time");
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--quiet", "--release", "--example", "constant_time_probe", "--manifest-path"]);
    build.arg(manifest).arg("--target-dir").arg(&target);
    assert!(build.status().unwrap().success(), "{build:?}");
    target.join("release/examples/constant_time_probe")
}

/// How many instructions a verification takes whose signature differs at this digit, and whether it was refused.
fn instructions(probe: &Path, place: usize) -> (u64, bool) {
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(probe).arg(format!("{place:02}"));
    let output = valgrind.output().unwrap_or_else(|error| panic!("{error}; apt-get install valgrind"));
    let said = String::from_utf8_lossy(&output.stderr);
    let counted = said.lines().find_map(|line| line.split("Collected :").nth(1)).unwrap_or_else(|| panic!("{said}"));
    (counted.trim().parse().unwrap(), output.status.code() == Some(1))
}

#[test]
fn a_verification_takes_the_same_instructions_wherever_the_first_difference_is() {
    let probe = probe();
    let (genuine, refused) = instructions(&probe, 64);
    assert!(!refused, "the genuine signature was refused");
    let first = instructions(&probe, 0);
    assert!(first.1, "a changed signature was taken");
    assert!(first.0 > 10_000, "{first:?}");
    for place in [1, 2, 7, 8, 15, 16, 31, 32, 47, 48, 62, 63] {
        assert_eq!(instructions(&probe, place), first, "digit {place}");
    }
    // The verdict itself may branch; the comparing may not. So these two are close, and need not be equal.
    assert!(genuine.abs_diff(first.0) < 200, "{genuine} for the genuine one, {} for a changed one", first.0);
}
