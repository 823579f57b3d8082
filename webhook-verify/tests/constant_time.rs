//! Case 50: comparing takes the same path wherever the first difference is. valgrind counts the instructions of a whole
//! verification for each of the 64 digits, and they are equal to the last one.
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

/// How many instructions each of the probe's verifications takes, in their order: valgrind counts within the probe's
/// function `counted`, and writes a file each time that it is left.
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
fn a_verification_takes_the_same_instructions_wherever_the_first_difference_is() {
    let counts = instructions(&probe());
    let [_, changed @ .., genuine] = &counts[..] else { panic!("nothing was counted") };
    assert_eq!(changed.len(), 64, "{counts:?}");
    assert!(changed[0] > 1000, "{counts:?}");
    assert!(changed.iter().all(|count| *count == changed[0]), "{changed:?}");
    // The verdict itself may branch; the comparing may not. So these two are close, and need not be equal.
    assert!(genuine.abs_diff(changed[0]) < 100, "{genuine} for the genuine one, {} for a changed one", changed[0]);
}
