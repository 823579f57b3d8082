//! Compares the verifier with an independent implementation: `WebhookSignature` of Stripe's Python library.
//!
//! The cases avoid the known differences. Stripe accepts any future timestamp, a timestamp with a sign or white space
//! (Python's `int`) and the last of several `t`, but rejects upper-case hex.
#![cfg(feature = "std")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use proptest::{
    prelude::*,
    strategy::ValueTree,
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};
use serde_json::json;
use webhook_verify::{Secret, Signer, Tolerance, Verifier};

const STRIPE: &str = "stripe==16.1.0";
const CASES: usize = 2000;
const TOLERANCE: u64 = 300;

/// Creates a Python environment with Stripe's library in the target directory, once.
fn python() -> PathBuf {
    let venv = Path::new(env!("CARGO_TARGET_TMPDIR")).join("stripe");
    let python = venv.join("bin/python");
    let run = |command: &mut Command| {
        let status = command.status().unwrap_or_else(|error| panic!("{command:?}: {error}; install python3"));
        assert!(status.success(), "{command:?} failed; install python3 and python3-venv");
    };
    if !python.exists() {
        run(Command::new("python3").args(["-m", "venv"]).arg(&venv));
    }
    run(Command::new(&python).args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", STRIPE]));
    python
}

/// A change to a valid header.
#[derive(Debug, Clone)]
enum Change {
    None,
    OtherSecret,
    OtherBody,
    OtherTime(u64),
    Truncated(usize),
    BogusBeside,
    OnlyBogus,
    OtherScheme,
    Reordered,
    Unknown,
}

fn changes() -> impl Strategy<Value = Change> {
    prop_oneof![
        4 => Just(Change::None),
        1 => Just(Change::OtherSecret),
        1 => Just(Change::OtherBody),
        1 => (0..2000_u64).prop_map(Change::OtherTime),
        1 => (0..64_usize).prop_map(Change::Truncated),
        2 => Just(Change::BogusBeside),
        1 => Just(Change::OnlyBogus),
        1 => Just(Change::OtherScheme),
        2 => Just(Change::Reordered),
        1 => Just(Change::Unknown),
    ]
}

fn header(change: &Change, secret: &str, body: &str, time: u64) -> String {
    let sign = |secret: &str, body: &str| {
        let header = Signer::new(Secret::new(secret).unwrap()).sign_at(body.as_bytes(), time);
        header.as_str().split_once(",v1=").unwrap().1.to_owned()
    };
    let good = sign(secret, body);
    let bogus = "0".repeat(64);
    match change {
        Change::None => format!("t={time},v1={good}"),
        Change::OtherSecret => format!("t={time},v1={}", sign("whsec_other", body)),
        Change::OtherBody => format!("t={time},v1={}", sign(secret, &format!("{body} "))),
        Change::OtherTime(earlier) => format!("t={},v1={good}", time - earlier),
        Change::Truncated(length) => format!("t={time},v1={}", &good[..*length]),
        Change::BogusBeside => format!("t={time},v1={bogus},v1={good},v1={bogus}"),
        Change::OnlyBogus => format!("t={time},v1={bogus}"),
        Change::OtherScheme => format!("t={time},v0={good}"),
        Change::Reordered => format!("v1={good},t={time}"),
        Change::Unknown => format!("a=b,t={time},v2={bogus},v1={good}"),
    }
}

#[test]
fn verifier_agrees_with_stripes_library_on_2000_cases() {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let ages = prop_oneof![3 => 0..200_u64, 1 => 400..5000_u64];
    let strategy = ("[!-~][ -~]{0,80}[!-~]", "\\PC{0,200}", ages, changes(), any::<bool>());
    let mut lines = String::new();
    for _ in 0..CASES {
        let (secret, body, age, change, check_age) = strategy.new_tree(&mut runner).unwrap().current();
        let Ok(parsed) = Secret::new(&secret) else { continue };
        let header = header(&change, &secret, &body, now - age);
        let tolerance = if check_age { TOLERANCE } else { 0 };
        let verifier = Verifier::new(parsed).tolerance(Tolerance::seconds(tolerance));
        let valid = verifier.verify(&header, body.as_bytes()).is_ok();
        let hex: String = body.bytes().map(|byte| format!("{byte:02x}")).collect();
        let case = json!({"secret": secret, "header": header, "body": hex, "tolerance": tolerance, "valid": valid});
        lines.push_str(&format!("{case}\n"));
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/agreement/stripe_agrees.py");
    let mut stripe = Command::new(python()).arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    stripe.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    let output = stripe.wait_with_output().unwrap();
    let report = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{report}");
    let counts: Vec<usize> = report.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    assert!(counts[0] > 500 && counts[1] > 500 && counts[0] + counts[1] > CASES * 9 / 10, "{report}");
}
