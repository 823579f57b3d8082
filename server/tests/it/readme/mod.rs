//! Every block of every README is run or compiled as printed.

pub(crate) mod blocks;
mod links;
pub(crate) mod reader;

use std::{fs, os::unix::fs::PermissionsExt, path::Path, process::Command};

use serde_json::Value;

use self::{
    blocks::{NOT_TYPED, blocks, commands, is_not_typed, readmes, root, text_in},
    reader::Reader,
};
use crate::server::text_of;

/// What runs or compiles the blocks of a README.
enum By {
    /// A test in this module types them.
    Typing,
    /// The crate's documentation tests compile them.
    Documentation,
    /// A test program runs them.
    Program(&'static str),
    /// Nothing runs them here, for this reason.
    NotHere(&'static str),
    /// Nothing runs them: all its blocks are commands that no test types.
    Nobody,
}

/// The pages that a reader follows one after the other, beginning in an empty directory.
const IN_ORDER: [&str; 2] = ["README.md", "server/docs/operating.md"];

const READMES: [(&str, By); 16] = [
    ("README.md", By::Typing),
    ("examples/README.md", By::Typing),
    ("fuzz/README.md", By::Nobody),
    ("payments-client/README.md", By::Documentation),
    ("payments-client/inbox-sqlx/README.md", By::Documentation),
    ("payments-core/README.md", By::Documentation),
    ("server/README.md", By::Typing),
    ("server/docs/compliance.md", By::Nobody),
    ("server/docs/faults.md", By::Nobody),
    ("server/docs/mutants.md", By::Nobody),
    ("server/docs/operating.md", By::Typing),
    ("server/docs/postgresql.md", By::Program("server/tests/it/postgresql_page.rs")),
    ("server/docs/scale.md", By::NotHere("its statements need a distributed database")),
    ("server/fakes/README.md", By::Program("server/tests/new_user")),
    ("webhook-verify/README.md", By::Documentation),
    ("webhook-verify/tests/data/README.md", By::Nobody),
];

/// The names of an object's fields at every depth.
fn names(value: &Value) -> Vec<String> {
    let Some(object) = value.as_object() else { return Vec::new() };
    object.iter().flat_map(|(name, value)| std::iter::once(name.clone()).chain(names(value))).collect()
}

/// Compares an answer with the printed one, except ids and times.
fn assert_is_as_printed(answer: &str, printed: &str) {
    let (got, printed): (Value, Value) =
        (serde_json::from_str(answer).unwrap(), serde_json::from_str(printed).unwrap());
    assert_eq!(names(&got), names(&printed));
    for name in ["amount", "currency", "status", "rawStatus", "netAmount", "platform_fee", "success", "success_url"] {
        assert_eq!(got[name], printed[name], "{name}");
    }
    assert!(got["error"].is_null() || got == printed, "{got}");
}

/// Checks a systemd drop-in for the packaged unit.
fn verify_unit(drop_in: &str) {
    let directory = tempfile::tempdir().unwrap();
    let unit = text_in("server/packaging/payments-server.service");
    let path = directory.path().join("payments-server.service");
    fs::write(&path, unit.replace("/usr/bin/payments-server", "/bin/true")).unwrap();
    fs::create_dir(directory.path().join("payments-server.service.d")).unwrap();
    fs::write(directory.path().join("payments-server.service.d/override.conf"), drop_in).unwrap();
    let output = Command::new("systemd-analyze").args(["verify", "--recursive-errors=one"]).arg(&path).output();
    let output = output.expect("systemd-analyze is needed; ./test installs it");
    assert!(output.status.success() && !text_of(&output).contains("override.conf"), "{}", text_of(&output));
}

/// Checks Prometheus settings, in the folder of the alerts.
fn verify_prometheus(settings: &str) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("prometheus.yml");
    fs::write(&file, settings).unwrap();
    fs::copy(root().join("server/monitoring/alerts.yml"), directory.path().join("alerts.yml")).unwrap();
    let output = Command::new("promtool").args(["check", "config"]).arg(&file).output();
    let output = output.expect("promtool is needed; ./test fetches it");
    assert!(output.status.success(), "{}", text_of(&output));
}

/// Types the blocks of a README in order. Returns the number of commands and the number of compared answers.
fn follow(readme: &str, reader: &mut Reader) -> (usize, usize) {
    let (mut last, mut compared, mut typed) = (String::new(), 0, 0);
    for (language, block) in blocks(readme) {
        match language.as_str() {
            "sh" => {
                for command in commands(&block) {
                    last = reader.type_in(&command);
                    typed += 1;
                }
            }
            "json" => {
                assert_is_as_printed(&last, &block);
                compared += 1;
            }
            "toml" => {
                let file = reader.directory.path().join("payments.toml");
                fs::write(&file, block).unwrap();
                fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
            }
            "ini" => verify_unit(&block),
            "yaml" => verify_prometheus(&block),
            other => panic!("a block of {other:?}, which no reader can follow"),
        }
    }
    (typed, compared)
}

#[test]
fn the_commands_of_the_readme_and_the_operators_page_work_in_an_empty_directory() {
    let mut reader = Reader::new();
    let (mut typed, mut compared) = (0, 0);
    for page in IN_ORDER {
        let followed = follow(page, &mut reader);
        (typed, compared) = (typed + followed.0, compared + followed.1);
    }
    assert_eq!(compared, 3);
    assert!(typed > 30, "{typed} commands");
    for made in ["payments-data", "backups/today", "restored", "restored-as-of-now", "moved-back"] {
        assert!(reader.directory.path().join(made).exists(), "{made}");
    }
}

#[test]
fn the_commands_in_the_readmes_of_the_server_and_the_examples_work() {
    for (readme, _) in READMES.iter().filter(|(name, by)| matches!(by, By::Typing) && !IN_ORDER.contains(name)) {
        let mut reader = Reader::new();
        reader.type_in("payments-server serve");
        follow(readme, &mut reader);
    }
}

#[test]
fn a_test_runs_or_compiles_every_block_of_every_readme() {
    assert_eq!(readmes(), READMES.map(|(name, _)| name));
    let mut left_out = Vec::new();
    for (readme, by) in READMES {
        let of_shell = |(language, text): (String, String)| (language == "sh").then(|| commands(&text));
        let typed: Vec<String> = blocks(readme).into_iter().filter_map(of_shell).flatten().collect();
        left_out.extend(typed.iter().filter(|command| is_not_typed(command)).cloned());
        match by {
            By::Typing => {}
            By::Program(path) => assert!(text_in(path).contains(&format!("blocks(\"{readme}\")")), "{path}"),
            By::Documentation => {
                let library = Path::new(readme).with_file_name("src/lib.rs");
                assert!(text_in(library.to_str().unwrap()).contains("include_str!(\"../README.md\")"), "{readme}");
                let is_compiled = |language: &str| matches!(language, "rust" | "no_run" | "sh" | "text");
                assert!(blocks(readme).iter().all(|(language, _)| is_compiled(language)), "{readme}");
                assert!(typed.iter().all(|command| is_not_typed(command)), "{readme}: {typed:?}");
            }
            By::NotHere(reason) => {
                assert!(typed.iter().all(|command| is_not_typed(command)), "{readme}, since {reason}: {typed:?}");
            }
            By::Nobody => {
                assert!(blocks(readme).iter().all(|(language, _)| language == "sh"), "{readme}");
                assert!(typed.iter().all(|command| is_not_typed(command)), "{readme}: {typed:?}");
            }
        }
    }
    for (begin, reason) in NOT_TYPED {
        assert!(left_out.iter().any(|command| command.starts_with(begin)), "no README prints `{begin}`: {reason}");
    }
}
