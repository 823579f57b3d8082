//! The commands for developers who program against a server.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Output, Stdio},
    sync::mpsc::{Receiver as Lines, channel},
    time::Duration,
};

use payments_client::EventKind;
use reqwest::StatusCode;
use serde_json::json;

use crate::{
    engine::Engine,
    receiver::{Receiver, Reply},
    server::{Server, eventually, payment_of, server_binary, text_of},
};

pub(crate) const SECRET: &str = "whsec_0123456789abcdef0123456789abcdef";
const WAIT: Duration = Duration::from_secs(20);

/// A command that calls this server with the sandbox key or another one.
fn command(server: &Server, arguments: &[&str]) -> Command {
    let mut command = Command::new(server_binary());
    command.args(arguments).args(["--api", &format!("http://{}", server.address())]).env_remove("PAYMENTS_API_KEY");
    command
}

pub(crate) fn run(server: &Server, key: Option<&str>, arguments: &[&str]) -> Output {
    command(server, arguments).envs(key.map(|key| ("PAYMENTS_API_KEY", key))).output().unwrap()
}

pub(crate) fn run_for_line(server: &Server, arguments: &[&str]) -> String {
    let output = run(server, None, arguments);
    assert!(output.status.success(), "{}", text_of(&output));
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

/// A running `listen`.
pub(crate) struct Listening {
    process: Child,
    lines: Lines<String>,
}

impl Listening {
    pub(crate) fn start(server: &Server, arguments: &[&str]) -> Self {
        Self::start_in(server, &[], arguments)
    }

    fn start_in(server: &Server, variables: &[(&str, &str)], arguments: &[&str]) -> Self {
        let mut command = command(server, &[&["listen"], arguments].concat());
        command.envs(variables.iter().copied());
        command.env("PAYMENTS_WEBHOOK_SECRET", SECRET).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().unwrap();
        let (sender, lines) = channel();
        let output = BufReader::new(process.stdout.take().unwrap());
        std::thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        let listening = Self { process, lines };
        assert!(listening.line().starts_with("listening to the events of http://"));
        listening
    }

    pub(crate) fn line(&self) -> String {
        self.lines.recv_timeout(WAIT).unwrap()
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_on_this_machine_is_called_without_the_environments_proxy() {
    let server = Server::start();
    let receiver = Receiver::ok().await;
    // Nothing listens on this port.
    let dead = ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"];
    let dead: Vec<_> =
        dead.map(|name| (name, "http://127.0.0.1:9")).into_iter().chain([("NO_PROXY", ""), ("no_proxy", "")]).collect();
    let forward = Listening::start_in(&server, &dead, &["--forward-to", &receiver.url()]);
    let mut trigger = command(&server, &["trigger", "payment.created"]);
    let output = trigger.envs(dead.iter().copied()).output().unwrap();
    assert!(output.status.success(), "{}", text_of(&output));
    assert!(forward.line().contains("payment.created"));
    eventually("the forwarded event", async || (!receiver.received().is_empty()).then_some(())).await;
}

async fn events_are_printed_and_forwarded_signed(engine: Engine) {
    let mut server = Server::start_on(engine, &[]);
    server.create(&payment_of(&json!(5))).await;
    let receiver = Receiver::ok().await;
    let only = ["--events", "payment.completed"];
    let forwarding = Listening::start(&server, &[&["--forward-to", &receiver.url()], &only[..]].concat());
    let printing = Listening::start(&server, &[]);
    let payment = run_for_line(
        &server,
        &["trigger", "payment.completed", "--amount", "12.50", "--metadata", r#"{"order":"A-7"}"#],
    );

    assert!(printing.line().contains(" payment.created evt_"), "what happened before is not printed");
    let printed = printing.line();
    assert!(printed.contains(" payment.completed evt_"), "{printed}");
    let forwarded = forwarding.line();
    assert!(forwarded.starts_with(&format!("{printed} -> 200 in ")), "{forwarded}");
    let received = receiver.received().remove(0);
    let event = received.verified_with(SECRET);
    assert_eq!(
        (event.kind(), received.headers["x-service-event"].as_bytes()),
        (&EventKind::PaymentCompleted, &b"payment.completed"[..])
    );
    let about = event.payment().unwrap();
    assert_eq!((about.id.as_str(), about.amount.to_string()), (&*payment, "12.5".to_owned()));
    assert_eq!(about.metadata.as_str(), r#"{"order":"A-7"}"#);

    server.crash_and_restart();
    run_for_line(&server, &["trigger", "payment.created"]);
    assert!(printing.line().contains(" payment.created evt_"), "it goes on when the server is there again");
    assert_eq!(receiver.received().len(), 1, "of the kinds that are asked for");
}

#[tokio::test(flavor = "multi_thread")]
async fn listen_prints_and_forwards_events_of_a_server_on_a_directory() {
    events_are_printed_and_forwarded_signed(Engine::Directory).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn listen_prints_and_forwards_events_of_a_server_on_postgresql() {
    events_are_printed_and_forwarded_signed(Engine::Postgres).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn listen_reports_the_outcome_of_each_request() {
    let server = Server::start();
    let failing = Receiver::start(Reply::Status(StatusCode::BAD_GATEWAY, "restarting".into())).await;
    let forwarding = Listening::start(&server, &["--forward-to", &failing.url()]);
    let to_nobody = Listening::start(&server, &["--forward-to", "http://127.0.0.1:9/hook"]);
    run_for_line(&server, &["trigger", "payment.created"]);
    assert!(forwarding.line().contains(" -> 502 in "));
    let line = to_nobody.line();
    assert!(line.ends_with(" -> cannot connect to http://127.0.0.1:9/hook"), "{line}");
}

#[tokio::test(flavor = "multi_thread")]
async fn listen_accepts_a_local_program_as_host_and_port() {
    let server = Server::start();
    let receiver = Receiver::ok().await;
    let bare = receiver.url().strip_prefix("http://").unwrap().to_owned();
    let forwarding = Listening::start(&server, &["--forward-to", &bare]);
    let mut trigger = Command::new(server_binary());
    let trigger =
        trigger.args(["trigger", "payment.created", "--api", server.address()]).env_remove("PAYMENTS_API_KEY");
    let output = trigger.output().unwrap();
    assert!(output.status.success(), "{}", text_of(&output));
    let line = forwarding.line();
    assert!(line.contains(" -> 200 in "), "{line}");
    let refusal = text_of(&run(&server, None, &["listen", "--forward-to", "shop.example:3000"]));
    assert!(refusal.contains("or be on this machine, such as localhost:3000"), "{refusal}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_no_test_payment_has_is_sent_as_a_test_event() {
    let server = Server::start();
    let refusal = text_of(&run(&server, None, &["trigger", "payment.refunded"]));
    assert!(refusal.contains("this key has no webhook endpoint to send it to"), "{refusal}");
    let receiver = Receiver::ok().await;
    let secret = receiver.subscribe(&server.client()).await;
    let line = run_for_line(&server, &["trigger", "payment.refunded"]);
    assert!(line.starts_with("del_") && line.ends_with(&receiver.url()), "{line}");
    let received = eventually("the test event", || async { receiver.received().pop() }).await;
    assert_eq!(received.verified_with(&secret).kind(), &EventKind::PaymentRefunded);
}

#[test]
fn a_developers_command_explains_each_refusal() {
    let server = Server::start();
    let live = server.new_key("Shop", "live");
    let local = &*format!("http://{}", server.address());
    for (key, arguments, expected) in [
        (
            None,
            &["trigger", "payment.created", "--api", "https://pay.example"][..],
            "works only with a server on this machine",
        ),
        (None, &["listen", "--api", "https://pay.example"], "put your own test key into PAYMENTS_API_KEY"),
        (Some("sk_test_unknown"), &["listen", "--api", local], local),
        (Some(&*live), &["trigger", "payment.created", "--api", local], "a live key moves money"),
        (None, &["trigger", "payment.created", "--api", local, "--metadata", "[1]"], "--metadata must be an object"),
        (None, &["trigger", "payment.lost", "--api", local], "possible values: payment.created, payment.completed"),
        // For clap, payment.completed would be similar.
        (None, &["trigger", "payment.failed", "--api", local], "test.ping]\n\nFor more information"),
        (None, &["trigger", "payment.created", "--api", "http://127.0.0.1:9"], "http://127.0.0.1:9"),
        (None, &["listen", "--api", local, "--forward-to", "nonsense"], "--forward-to"),
    ] {
        let mut command = Command::new(server_binary());
        let command =
            command.args(arguments).env_remove("PAYMENTS_API_KEY").envs(key.map(|key| ("PAYMENTS_API_KEY", key)));
        let output = command.output().unwrap();
        assert!(!output.status.success(), "{arguments:?}");
        let text = text_of(&output);
        assert!(text.contains(expected), "{arguments:?}: {text}");
    }
}
