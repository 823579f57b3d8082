//! The binary that tests of other packages start.

use std::{
    env, fs,
    path::{Path, PathBuf},
    sync::LazyLock,
    time::SystemTime,
};

/// The path of `payments-server`, from the same build as the running test.
///
/// # Panics
///
/// If it is missing, or older than one of its source files: cargo builds it only for tests of its own package.
#[must_use]
pub fn server_binary() -> &'static str {
    static BINARY: LazyLock<String> = LazyLock::new(|| {
        let test = env::current_exe().unwrap();
        let binary = test.ancestors().nth(2).unwrap().join("payments-server");
        assert!(binary.exists(), "{} is missing: run `cargo build -p payments-server`", binary.display());
        let newer = sources(&binary).into_iter().find(|source| changed(source) > changed(&binary));
        assert_eq!(newer, None, "{} is older than its source: run `cargo build -p payments-server`", binary.display());
        binary.into_os_string().into_string().unwrap()
    });
    &BINARY
}

/// The source files of a binary, which cargo writes beside it: `BINARY: SOURCE SOURCE …`.
fn sources(binary: &Path) -> Vec<PathBuf> {
    let rule = fs::read_to_string(binary.with_extension("d")).unwrap().replace("\\ ", "\0");
    let (_, sources) = rule.split_once(": ").unwrap();
    sources.split_whitespace().map(|source| source.replace('\0', " ").into()).collect()
}

fn changed(file: &Path) -> Option<SystemTime> {
    fs::metadata(file).and_then(|file| file.modified()).ok()
}
