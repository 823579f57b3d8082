//! The example program, run as a user would.

use std::{
    io::Write,
    process::{Command, Output, Stdio},
};

use webhook_verify::Signer;

use crate::{BODY, NOW, SECRET, secret};

fn run(secret: &str, header: &str) -> Output {
    let directory = std::env::current_exe().unwrap().parent().unwrap().with_file_name("examples");
    let mut example = Command::new(directory.join("verify"));
    example.arg(header).env("WEBHOOK_SECRET", secret).stdin(Stdio::piped());
    let mut process = example
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("build it first: cargo build -p webhook-verify --example verify");
    process.stdin.take().unwrap().write_all(BODY).unwrap();
    process.wait_with_output().unwrap()
}

#[test]
fn the_example_verifies_its_input() {
    let header = Signer::new(secret()).sign_at(BODY, NOW);
    let verified = run(SECRET, header.as_str());
    let said = String::from_utf8(verified.stdout).unwrap();
    assert_eq!(said, format!("verified: {} bytes, signed at Unix second {NOW}\n", BODY.len()));
    assert!(verified.status.success());

    let refused = run("whsec_other", header.as_str());
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(said.starts_with("not verified: ") && said.lines().count() == 1, "{said}");
    assert!(!refused.status.success());
}
