//! The code blocks of READMEs, and the few commands that no test types.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The beginnings of commands, each with the reason why no test types it as printed.
pub(super) const NOT_TYPED: [(&str, &str); 12] = [
    ("cargo install --path server --locked", "server/tests/new_user runs it"),
    ("cargo install --path server --features otlp --locked", "./test builds the feature and tests it"),
    ("OTEL_EXPORTER_OTLP_ENDPOINT=", "otlp.rs does the same to a server with the feature"),
    ("server/packaging/deb ", "takes a release build; packaging.rs packs that of the tests"),
    ("apt install ", "needs the package"),
    ("systemctl enable ", "needs a running systemd"),
    ("docker ", "needs a daemon; server/tests/image builds the same with buildah"),
    ("CARGO_PROFILE_RELEASE_STRIP=none cargo build --release", "takes a release build"),
    ("server/packaging/build ", "takes a release build"),
    ("RUSTC_BOOTSTRAP=1 cargo fuzz run ", "fuzz/smoke runs the same targets without cargo-fuzz"),
    ("cargo run --release --manifest-path webhook-verify/bench/", "takes a release build of other projects"),
    ("PAYMENTS_KEY=sk_live_... ", "server/tests/new_user runs it with a key"),
];

/// Whether no test types this command.
pub(super) fn is_not_typed(command: &str) -> bool {
    NOT_TYPED.iter().any(|(begin, _)| command.starts_with(begin))
}

/// The project's root.
pub(super) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

/// The text of a project file.
pub(super) fn text_in(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The code blocks of a README: language and text.
pub(crate) fn blocks(readme: &str) -> Vec<(String, String)> {
    let text = text_in(readme);
    let fenced = text.split("\n```").skip(1).step_by(2);
    fenced.map(|block| block.split_once('\n').unwrap()).map(|(language, text)| (language.into(), text.into())).collect()
}

/// The commands of a block. A line that ends with a backslash continues in the next one.
pub(crate) fn commands(block: &str) -> Vec<String> {
    let joined = block.replace("\\\n", "\\\u{0}");
    joined.lines().map(|line| line.replace('\u{0}', "\n")).filter(|line| !line.trim().is_empty()).collect()
}

/// Every document of the project, by its path.
pub(super) fn documents() -> Vec<String> {
    let (root, mut found, mut folders) = (root(), Vec::new(), vec![root()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let name = entry.file_name().into_string().unwrap();
            if entry.file_type().unwrap().is_dir() && !name.starts_with('.') && name != "target" {
                folders.push(entry.path());
            } else if name.ends_with(".md") {
                found.push(entry.path().strip_prefix(&root).unwrap().display().to_string());
            }
        }
    }
    found.sort();
    found
}

/// Every README and every page for operators, by its path.
pub(super) fn readmes() -> Vec<String> {
    let is_one = |path: &String| Path::new(path).ends_with("README.md") || path.starts_with("server/docs/");
    documents().into_iter().filter(is_one).collect()
}
