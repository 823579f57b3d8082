//! The files that packages install beside the binary.

use std::{fs, path::PathBuf, process::Command};

use crate::server::{Server, text_of};

fn packaged(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("packaging").join(name)
}

#[test]
fn the_systemd_unit_has_an_exposure_below_2() {
    let mut analyze = Command::new("systemd-analyze");
    analyze.args(["security", "--offline=true", "--threshold=19"]).arg(packaged("payments-server.service"));
    let output = analyze.output().expect("systemd-analyze is needed; ./test installs it");
    assert!(output.status.success(), "{}", text_of(&output));
}

#[test]
fn a_server_starts_with_the_packaged_settings_and_with_those_that_they_suggest() {
    let settings = fs::read_to_string(packaged("payments.toml")).unwrap();
    // A suggestion is a comment of one word and an equals sign, or of a section.
    let suggestion = |line: &str| {
        let text = line.strip_prefix("# ")?;
        let is_setting = text.starts_with('[') || text.split_once(" = ").is_some_and(|(name, _)| !name.contains(' '));
        is_setting.then(|| text.to_owned())
    };
    let all: Vec<String> = settings.lines().map(|line| suggestion(line).unwrap_or_else(|| line.to_owned())).collect();
    assert_eq!(all.iter().filter(|line| line.contains(" = ") && !line.starts_with('#')).count(), 12, "{all:?}");
    // The test has a directory and needs free ports.
    let all = all.join("\n").replace("127.0.0.1:9464", "127.0.0.1:0").replace("database-url", "# database-url");
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("payments.toml");
    for (text, has_own_metrics) in [(settings, false), (all, true)] {
        fs::write(&file, text).unwrap();
        let server = Server::start_with(&["--config", file.to_str().unwrap()]);
        assert_eq!(server.log().contains("/metrics is on"), has_own_metrics, "{}", server.log());
    }
}
