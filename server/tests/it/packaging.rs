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

use crate::server::{Server, eventually, payment_of, server_binary, text_of, write_settings};

fn packaged(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../packaging").join(name)
}

#[test]
fn the_systemd_unit_has_an_exposure_below_2() {
    let mut analyze = Command::new("systemd-analyze");
    analyze.args(["security", "--offline=true", "--threshold=19"]).arg(packaged("payments-server.service"));
    let output = analyze.output().expect("systemd-analyze is needed; ./test installs it");
    assert!(output.status.success(), "{}", text_of(&output));
}

#[test]
fn a_server_starts_with_the_packaged_settings_and_with_the_suggested_ones() {
    let settings = fs::read_to_string(packaged("payments.toml")).unwrap();
    // A suggestion is a comment with one word and an equals sign, or with a section.
    let suggestion = |line: &str| {
        let text = line.strip_prefix("# ")?;
        let is_setting = text.starts_with('[') || text.split_once(" = ").is_some_and(|(name, _)| !name.contains(' '));
        is_setting.then(|| text.to_owned())
    };
    let all: Vec<String> = settings.lines().map(|line| suggestion(line).unwrap_or_else(|| line.to_owned())).collect();
    assert_eq!(all.iter().filter(|line| line.contains(" = ") && !line.starts_with('#')).count(), 15, "{all:?}");
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

/// A command that sees only this folder. It runs as the container's user if this process may change its user.
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
    let filled = Command::new(packaged("root")).arg(server_binary()).arg(&root).output().unwrap();
    assert!(filled.status.success(), "{}", text_of(&filled));
    // Other users may enter the folders above it.
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

/// Runs a program that must succeed without a warning. Returns its output.
fn quiet(program: &str, arguments: &[&Path]) -> String {
    let output = Command::new(program).args(arguments).output();
    let output = output.unwrap_or_else(|error| panic!("{program} is needed; ./test installs it: {error}"));
    assert!(output.status.success() && output.stderr.is_empty(), "{program} {arguments:?}: {}", text_of(&output));
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test]
async fn the_debian_package_has_a_server_with_its_manual_and_completions() {
    let directory = tempfile::tempdir().unwrap();
    let (made, root) = (directory.path().join("made"), directory.path().join("root"));
    let packed =
        Command::new(packaged("deb")).arg(server_binary()).arg(&made).env("DPKG_DEB_COMPRESSOR_TYPE", "none").output();
    let packed = packed.unwrap();
    assert!(packed.status.success(), "{}", text_of(&packed));
    let architecture = quiet("dpkg", &["--print-architecture".as_ref()]);
    let of_version = format!("{}_{}.deb", env!("CARGO_PKG_VERSION"), architecture.trim());
    let package = made.join(format!("payments-server_{of_version}"));
    quiet("dpkg-deb", &["-x".as_ref(), &package, &root]);
    quiet("dpkg-deb", &["-e".as_ref(), &package, &root.join("DEBIAN")]);
    let symbols = quiet("dpkg-deb", &["-c".as_ref(), &made.join(format!("payments-server-dbgsym_{of_version}"))]);
    assert!(symbols.contains("/usr/lib/debug/.build-id/"), "{symbols}");

    let listed = quiet("dpkg-deb", &["-c".as_ref(), &package]);
    assert!(listed.lines().all(|line| line.contains(" root/root ")), "{listed}");
    for (mode, file) in [
        ("-rwxr-xr-x", "usr/bin/payments-server"),
        ("-rw-------", "etc/payments/payments.toml"),
        ("-rw-r--r--", "usr/lib/systemd/system/payments-server.service"),
        ("-rw-r--r--", "usr/share/doc/payments-server/copyright"),
        ("-rw-r--r--", "usr/share/man/man1/payments-server.1.gz"),
        ("-rw-r--r--", "usr/share/bash-completion/completions/payments-server"),
        ("-rw-r--r--", "usr/share/zsh/vendor-completions/_payments-server"),
        ("-rw-r--r--", "usr/share/fish/vendor_completions.d/payments-server.fish"),
    ] {
        let is_listed = listed.lines().any(|line| line.starts_with(mode) && line.ends_with(&format!(" ./{file}")));
        assert!(is_listed, "{mode} {file}: {listed}");
        assert!(fs::metadata(root.join(file)).unwrap().len() > 100, "{file}");
    }
    let control = |name: &str| fs::read_to_string(root.join("DEBIAN").join(name)).unwrap();
    assert_eq!(control("conffiles"), "/etc/payments/payments.toml\n");
    assert!(control("control").contains("\nDepends: libc6 "), "{}", control("control"));
    for script in ["postinst", "prerm"] {
        quiet("sh", &["-n".as_ref(), &root.join("DEBIAN").join(script)]);
    }

    // Each page is without errors, and the first page names the others.
    let man = root.join("usr/share/man/man1");
    let mut pages: Vec<_> = fs::read_dir(&man).unwrap().map(|entry| entry.unwrap().path()).collect();
    quiet("gunzip", &pages.iter().map(PathBuf::as_path).collect::<Vec<_>>());
    pages.iter_mut().for_each(|page| *page = page.with_extension(""));
    let read = |page: &Path| quiet("groff", &["-man".as_ref(), "-Tascii".as_ref(), "-ww".as_ref(), page]);
    let first = read(&man.join("payments-server.1"));
    let commands = pages.iter().filter_map(|page| page.file_stem()?.to_str()?.strip_prefix("payments-server-"));
    let commands: Vec<_> = commands.filter(|command| !command.contains('-')).collect();
    assert!(["serve", "keys", "backup", "man"].iter().all(|command| commands.contains(command)), "{commands:?}");
    assert!(commands.iter().all(|command| first.contains(&format!("payments-server-{command}(1)"))), "{first}");
    assert!(pages.iter().all(|page| read(page).contains("payments-server")));

    let completions = root.join("usr/share/bash-completion/completions/payments-server");
    let script = format!("source '{}' && complete -p payments-server", completions.display());
    assert!(quiet("bash", &["-c".as_ref(), script.as_ref()]).ends_with(" payments-server\n"));

    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let mut serve = Command::new(root.join("usr/bin/payments-server"));
    serve.args(["serve", "--listen", &address, "--config"]).arg(root.join("etc/payments/payments.toml"));
    serve.arg("--data-dir").arg(directory.path().join("data")).stdout(Stdio::null()).stderr(Stdio::null());
    let mut server = serve.spawn().unwrap();
    let healthy = || async { reqwest::get(format!("http://{address}/healthz")).await.ok()?.error_for_status().ok() };
    let healthy = eventually("the package's server", healthy).await;
    server.kill().unwrap();
    server.wait().unwrap();
    assert_eq!(healthy.status(), StatusCode::OK);
}
