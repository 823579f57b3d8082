//! Each call fails once: every create, write, sync, rename and removal of a process that opens a database, commits, begins
//! journal files, compresses and removes old ones, and makes a backup. Whatever it was, nothing that was acknowledged is
//! lost, and an opening without the failure finds exactly what some number of commits left.
//!
//! `FAILING_CALLS=N` tests one call of every N. The default is 8, and the process id decides which; 1 tests every call.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::workload::{
    ARGUMENTS, Model, acknowledged, check_and_go_on, check_backup, in_memory, process, this_program,
};

/// How many commits a run makes.
const COMMITS: u64 = 160;

/// The library that fails a call, compiled.
fn shim(directory: &Path) -> PathBuf {
    let library = directory.join("fail_call.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/it/fail_call.c");
    let mut compile = Command::new("cc");
    compile.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(source).arg("-ldl");
    assert!(compile.status().unwrap().success());
    library
}

/// Runs the process in a directory with the call of this number failing; returns the last acknowledged commit, and the
/// calls, one a line.
fn run(directory: &Path, shim: &Path, fail_at: usize) -> (u64, Vec<String>) {
    let (watched, log) = (directory.join("watched"), directory.join("calls"));
    fs::create_dir(&watched).unwrap();
    let mut command = process(this_program(), &watched, COMMITS, fail_at.is_multiple_of(2));
    command.env("LD_PRELOAD", shim).env("FAIL_UNDER", &watched).env("FAIL_AT", fail_at.to_string());
    let output = command.args(ARGUMENTS).env("FAIL_LOG", &log).stderr(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let calls = fs::read_to_string(&log).unwrap_or_default().lines().map(str::to_owned).collect();
    (said.lines().filter_map(acknowledged).max().unwrap_or(0), calls)
}

#[tokio::test]
async fn whichever_call_on_a_file_fails_nothing_acknowledged_is_lost() {
    let held = in_memory();
    let shim = shim(held.path());
    let sound = in_memory();
    let (last, calls) = run(sound.path(), &shim, 0);
    assert!(last > COMMITS / 2);
    for what in ["open", "write", "sync", "rename", "unlink", "journal.json", ".zst", "backup.json", "sled/"] {
        assert!(calls.iter().any(|call| call.contains(what)), "no call has {what}: {calls:#?}");
    }
    let step: usize = std::env::var("FAILING_CALLS").map_or(8, |text| text.parse().unwrap());
    let offset = usize::try_from(std::process::id()).unwrap() % step;
    let mut model = Model::default();
    for fail_at in (1..=calls.len()).filter(|call| call % step == offset) {
        let directory = in_memory();
        let (last, calls) = run(directory.path(), &shim, fail_at);
        let what = calls.get(fail_at - 1).map_or("a call that was not made", String::as_str);
        let watched = directory.path().join("watched");
        let count = check_and_go_on(&watched.join("data"), &mut model, what).await;
        assert!((last..=COMMITS).contains(&count), "{what}: {count} commits are there, {last} were acknowledged");
        let backup = watched.join("backup");
        if backup.join("backup.json").exists() {
            check_backup(&backup, &directory.path().join("restored"), &mut model, what);
        }
    }
}
