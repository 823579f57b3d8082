//! Checks that a comparison takes the same path at any position of the first difference. valgrind counts the instructions of
//! a whole verification for each of the 64 digits. All counts must be equal.
#![cfg(feature = "std")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{path::Path, process::Command};

/// Builds the example as a release, because the optimizer could introduce branches, but with the symbols that valgrind needs.
fn probe() -> std::path::PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("constant-time");
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--quiet", "--profile", "symbols", "--example", "constant_time_probe", "--manifest-path"]);
    build.arg(manifest).arg("--target-dir").arg(&target);
    assert!(build.status().unwrap().success(), "{build:?}");
    target.join("symbols/examples/constant_time_probe")
}

/// The number of instructions of each verification, in order. valgrind counts inside the probe's function `counted` and
/// writes a file at each return.
fn instructions(probe: &Path) -> Vec<u64> {
    let directory = tempfile::tempdir().unwrap();
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--toggle-collect=constant_time_probe::counted"]);
    valgrind.arg("--dump-after=constant_time_probe::counted");
    valgrind.arg(format!("--callgrind-out-file={}", directory.path().join("counts").display())).arg(probe);
    let output = valgrind.output().unwrap_or_else(|error| panic!("{error}; apt-get install valgrind"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let count = |number: usize| {
        let file = std::fs::read_to_string(directory.path().join(format!("counts.{number}"))).ok()?;
        file.lines().find_map(|line| line.strip_prefix("summary: "))?.trim().parse().ok()
    };
    (1..).map_while(count).collect()
}

#[test]
fn verification_takes_equally_many_instructions_at_any_first_difference() {
    let counts = instructions(&probe());
    let [_, changed @ .., valid] = &counts[..] else { panic!("valgrind wrote no counts") };
    assert_eq!(changed.len(), 64, "{counts:?}");
    assert!(changed[0] > 1000, "{counts:?}");
    assert!(changed.iter().all(|count| *count == changed[0]), "{changed:?}");
    // The code may branch on the result, so these two are close but need not be equal.
    assert!(valid.abs_diff(changed[0]) < 100, "{valid} for the valid one, {} for a changed one", changed[0]);
}
