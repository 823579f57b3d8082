//! Settings that cannot work are refused at start. The message names the setting and its place, and says what to do.

use std::{
    fs,
    process::{Command, Output},
};

use serde_json::json;
use tempfile::TempDir;

use crate::server::{Server, payment_of, server_binary, text_of, write_settings};

/// Runs a command in an empty directory.
fn run(variables: &[(&str, &str)], arguments: &[&str]) -> (TempDir, Output) {
    let directory = tempfile::tempdir().unwrap();
    let output = run_in(&directory, variables, arguments);
    (directory, output)
}

fn run_in(directory: &TempDir, variables: &[(&str, &str)], arguments: &[&str]) -> Output {
    // Limit the time: a server that wrongly starts would run forever.
    let mut command = Command::new("timeout");
    command.env_clear().envs(variables.iter().copied()).args(["20", server_binary()]).args(arguments);
    command.current_dir(directory).output().unwrap()
}

#[test]
fn an_error_about_a_wrong_flag_or_command_has_its_form_or_the_nearest_name() {
    for (arguments, status, says) in [
        (&["serv"][..], 2, "a similar subcommand exists: 'serve'"),
        (&["keys", "creat"], 2, "a similar subcommand exists: 'create'"),
        (&["--lisen", "8081"], 2, "a similar argument exists: '--listen'"),
        (&["--listen", "0.0.0.0"], 2, "must be IP:PORT, such as 127.0.0.1:8080 or 0.0.0.0:8080, or a port"),
        (&["--metrics-listen", "here"], 2, "must be IP:PORT"),
        (&["--base-url", "https://pay.example?shop=1"], 2, "must have no query and no fragment"),
        (&["--base-url", "ftp://pay.example"], 2, "must be an absolute URL that begins with https://"),
        (&["listen", "--forward-to", "ftp://127.0.0.1/"], 2, "must be an absolute URL that begins with https://"),
        (
            &["apps", "create", "--workspace", "W", "--name", "Shop", "--webhook-url", "ftp://shop.example/hook"],
            2,
            "for '--webhook-url <U>': must be an absolute URL that begins with https:// or http://",
        ),
        (&["export", "postings", "--since", "yesterday"], 2, "'--since <TIME>'"),
    ] {
        let (directory, output) = run(&[], arguments);
        let said = text_of(&output);
        assert!(output.status.code() == Some(status) && said.contains(says), "{arguments:?}: {said}");
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 0, "{arguments:?} made a file");
    }
}

#[test]
fn a_wrong_variable_is_named() {
    let stripe = [("PAYMENTS_STRIPE_SECRET_KEY", "sk_live_hush"), ("PAYMENTS_STRIPE_WEBHOOK_SECRET", "whsec_hush")];
    for (variables, says) in [
        (&[("PAYMENTS_FEE_BPS", "hush")][..], "PAYMENTS_FEE_BPS: invalid digit"),
        (&[("PAYMENTS_LISTEN", "hush")], "PAYMENTS_LISTEN: must be IP:PORT"),
        (&[("PAYMENTS_BASE_URL", "https://pay.example#hush")], "PAYMENTS_BASE_URL: must have no query"),
        (&[("PAYMENTS_LOG", "verbose")], "PAYMENTS_LOG: verbose is not a log filter; write a level (error, warn, info"),
        (&[("PAYMENTS_LOG", "wanr")], "did you mean warn?"),
        (&stripe[..1], "PAYMENTS_STRIPE_WEBHOOK_SECRET is not set, but other credentials of [stripe] are"),
        (
            &[("PAYMENTS_STRIPE_SECRET_KEY", "pk_live_hush"), stripe[1]],
            "PAYMENTS_STRIPE_SECRET_KEY is a publishable key, which is for browsers; use the secret key",
        ),
        (
            &[stripe[0], ("PAYMENTS_STRIPE_WEBHOOK_SECRET", "sk_live_hush")],
            "PAYMENTS_STRIPE_WEBHOOK_SECRET must begin with whsec_",
        ),
        (
            &[stripe[0], stripe[1], ("PAYMENTS_STRIPE_BASE_URL", "https://stripe.example/?hush")],
            "PAYMENTS_STRIPE_BASE_URL must be an absolute https URL without a query",
        ),
    ] {
        let (directory, output) = run(variables, &[]);
        let said = text_of(&output);
        assert!(!output.status.success() && said.contains(says) && !said.contains("hush"), "{variables:?}: {said}");
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 0, "{variables:?} made a file");
    }
}

#[test]
fn an_error_names_the_wrong_line_of_the_file_its_column_and_the_reason() {
    let directory = tempfile::tempdir().unwrap();
    for (text, says) in [
        ("listen = ['hush'", "payments.toml, line 1, column 17: invalid TOML: unclosed array"),
        ("sandbox = true\nlisten = hush", "payments.toml, line 2, column 10: invalid TOML: "),
        (
            "lisen = 'hush'",
            "payments.toml, line 1, column 1: lisen is not a flag of `payments-server serve`; did you mean listen?",
        ),
        ("[stripe]\nsecret_ky = 'hush'", "line 2, column 1: secret_ky is not a key of [stripe]"),
        ("[stripe]\nsecret_ky = 'hush'", "; did you mean secret_key?"),
        ("base-url = 'https://pay.example?hush'", "payments.toml, line 1, column 12: base-url: must have no query"),
        ("[stripe]\nsecret_key = 'sk_live_hush'", "PAYMENTS_STRIPE_WEBHOOK_SECRET is not set"),
        (
            "[stripe]\nsecret_key = 'pk_live_hush'\nwebhook_secret = 'whsec_hush'",
            "payments.toml, line 2, column 14: secret_key of [stripe] is a publishable key",
        ),
    ] {
        write_settings(&directory.path().join("payments.toml"), text);
        let output = run_in(&directory, &[], &["--config", "payments.toml"]);
        let said = text_of(&output);
        assert!(!output.status.success() && said.contains(says) && !said.contains("hush"), "{text}: {said}");
    }
    let missing = run_in(&directory, &[], &["--config", "payment.toml"]);
    let says = "the configuration file payment.toml cannot be read: No such file or directory (os error 2); name it with --config";
    assert!(text_of(&missing).contains(says), "{}", text_of(&missing));
}

#[test]
fn a_directory_that_cannot_be_used_is_named() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("letter"), "Dear Rahima").unwrap();
    for place in ["letter", "letter/data", "/proc/nothing/here"] {
        let path = directory.path().join(place);
        for arguments in [&["--listen", "0"][..], &["workspaces", "create", "--name", "Shop"]] {
            let said = text_of(&run_in(&directory, &[], &[arguments, &["--data-dir", place]].concat()));
            assert!(said.contains(path.to_str().unwrap()) && said.contains("--data-dir"), "{place}: {said}");
        }
    }
}

#[test]
fn a_port_without_a_host_and_localhost_mean_this_machine() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    for form in [port.clone(), format!("localhost:{port}")] {
        let (_directory, output) = run(&[], &["--listen", &form]);
        let says = format!(
            "cannot listen on 127.0.0.1:{port}: Address already in use (os error 98); choose another with --listen"
        );
        assert!(text_of(&output).contains(&says), "{}", text_of(&output));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_base_url_needs_a_real_host_and_spaces_around_it_are_dropped() {
    for (url, says) in [
        ("https://pay.example/shop", "must have no path, because the server needs a host of its own"),
        ("https://pay.example/ shop", "must have no space in it"),
    ] {
        let (_directory, output) = run(&[("PAYMENTS_BASE_URL", url)], &["--listen", "0"]);
        let said = text_of(&output);
        assert!(!output.status.success() && said.contains("PAYMENTS_BASE_URL") && said.contains(says), "{said}");
    }
    let server = Server::start_with(&["--base-url", "http://localhost:8080/ "]);
    let payment = server.create(&payment_of(&json!(5))).await;
    let expected = format!("http://localhost:8080/checkout/{}", payment["id"].as_str().unwrap());
    assert_eq!(payment["checkoutUrl"], expected);
}

#[test]
fn a_password_in_the_proxys_url_is_refused_only_on_the_command_line() {
    let (password, none) = ("http://me:hush@proxy.internal:3128", "http://proxy.internal:3128");
    for arguments in [
        &["--gateway-proxy", password][..],
        &[&*format!("--gateway-proxy={password}")],
        &["serve", "--gateway-proxy", password],
    ] {
        let said = text_of(&run(&[], arguments).1);
        let says = "--gateway-proxy holds a password, which other users of this machine can read; put the URL in \
                    PAYMENTS_GATEWAY_PROXY, or the URL in the file that --config names";
        assert!(said.contains(says) && !said.contains("hush"), "{said}");
    }
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("payments.toml"), format!("gateway-proxy = '{password}'")).unwrap();
    for (variables, arguments) in [
        (&[("PAYMENTS_GATEWAY_PROXY", password)][..], &[][..]),
        (&[], &["--config", "payments.toml"]),
        (&[], &["--gateway-proxy", none]),
    ] {
        // The start fails at the next wrong setting instead.
        let said =
            text_of(&run_in(&directory, variables, &[arguments, &["--data-dir", "/proc/nothing/here"]].concat()));
        assert!(said.contains("--data-dir") && !said.contains("hush"), "{said}");
    }
}
