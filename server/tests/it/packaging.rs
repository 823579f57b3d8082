//! The files that packages install beside the binary.

use std::{
    fs,
    net::TcpListener,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use reqwest::{Client, StatusCode};
use serde_json::json;

use crate::server::{BINARY, Server, eventually, payment_of, text_of, write_settings};

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
    assert_eq!(all.iter().filter(|line| line.contains(" = ") && !line.starts_with('#')).count(), 13, "{all:?}");
    // The test has a directory and needs free ports.
    let all = all.join("\n").replace("127.0.0.1:9464", "127.0.0.1:0").replace("database-url", "# database-url");
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("payments.toml");
    for (text, has_own_metrics) in [(settings, false), (all, true)] {
        write_settings(&file, &text);
        let server = Server::start_with(&["--config", file.to_str().unwrap()]);
        assert_eq!(server.log().contains("/metrics is on"), has_own_metrics, "{}", server.log());
    }
}

/// A command that sees nothing but this folder, as the container's user where this process may change it.
fn within(root: &Path) -> Command {
    let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
    let mut command = Command::new(if is_root { "chroot" } else { "unshare" });
    match is_root {
        true => command.arg("--userspec=65532:65532").arg(root),
        false => command.arg("--map-root-user").arg("--root").arg(root),
    };
    command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    command
}

#[tokio::test]
async fn the_containers_files_are_all_that_a_server_needs() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("root");
    let filled = Command::new(packaged("root")).arg(BINARY).arg(&root).output().unwrap();
    assert!(filled.status.success(), "{}", text_of(&filled));
    // Others may enter the folders above it.
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let run = |verb: &str| {
        let mut command = within(&root);
        command.args(["/usr/bin/payments-server", verb]).env("PAYMENTS_LISTEN", &address);
        command.env("PAYMENTS_DATA_DIR", "/var/lib/payments");
        command
    };
    let mut server = run("serve").env("PAYMENTS_SANDBOX", "true").stdout(Stdio::null()).spawn().unwrap();
    let healthy = || async { run("health").output().unwrap().status.success().then_some(()) };
    eventually("the container's health check", healthy).await;
    let payment = Client::new().post(format!("http://{address}/api/v1/payments")).bearer_auth("sk_test_demo");
    let payment = payment.json(&payment_of(&json!(5))).send().await.unwrap();
    server.kill().unwrap();
    server.wait().unwrap();
    assert_eq!(payment.status(), StatusCode::CREATED);
}
