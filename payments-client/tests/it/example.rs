//! The example program, run as a user would.

use std::{
    io::{BufRead, BufReader, Lines},
    path::Path,
    process::{ChildStdout, Command, Stdio},
};

use payments_client::SimulateOutcome;
use test_support::server_binary;

use crate::server::Server;

fn example(url: &str) -> Command {
    let mut example = Command::new(Path::new(server_binary()).with_file_name("examples").join("buy"));
    example.env("PAYMENTS_URL", url).env_remove("PAYMENTS_KEY");
    example
}

fn line(lines: &mut Lines<BufReader<ChildStdout>>) -> String {
    lines.next().unwrap().unwrap()
}

#[tokio::test]
async fn the_example_waits_until_its_payment_has_an_outcome() {
    let server = Server::start();
    for (outcome, expected) in [(SimulateOutcome::Completed, "completed"), (SimulateOutcome::Cancelled, "cancelled")] {
        let mut process = example(&server.url)
            .stdout(Stdio::piped())
            .spawn()
            .expect("build it first: cargo build -p payments-client --example buy");
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let first = line(&mut lines);
        assert!(first.starts_with(&format!("pay 750 BDT at {}/checkout/pay_", server.url)), "{first}");
        let id = first.rsplit('/').next().unwrap().parse().unwrap();
        server.client().checkout().simulate(&id, outcome).await.unwrap();
        assert_eq!(line(&mut lines), format!("the payment is {expected}"));
        assert!(process.wait().unwrap().success());
    }
}

#[test]
fn the_example_reports_a_missing_server_in_one_line() {
    let output =
        example("http://127.0.0.1:9").output().expect("build it first: cargo build -p payments-client --example buy");
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said, "cannot buy: cannot connect to the API; check the base URL and the network\n");
    assert!(!output.status.success());
}
