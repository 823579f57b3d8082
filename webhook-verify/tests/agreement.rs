//! Agreement with an independent implementation of this very scheme: `WebhookSignature` of Stripe's Python library.
//!
//! Where the two differ on purpose, the cases leave it out: Stripe takes any time in the future, takes a time with a
//! sign or white space (Python's `int`), and the last of several `t`; hex in upper case matches nothing there.
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

/// A Python with Stripe's library, made once in the target directory.
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

/// What is done to a genuine header.
#[derive(Debug, Clone)]
enum Twist {
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

fn twists() -> impl Strategy<Value = Twist> {
    prop_oneof![
        4 => Just(Twist::None),
        1 => Just(Twist::OtherSecret),
        1 => Just(Twist::OtherBody),
        1 => (0..2000_u64).prop_map(Twist::OtherTime),
        1 => (0..64_usize).prop_map(Twist::Truncated),
        2 => Just(Twist::BogusBeside),
        1 => Just(Twist::OnlyBogus),
        1 => Just(Twist::OtherScheme),
        2 => Just(Twist::Reordered),
        1 => Just(Twist::Unknown),
    ]
}

fn header(twist: &Twist, secret: &str, body: &str, time: u64) -> String {
    let sign = |secret: &str, body: &str| {
        let header = Signer::new(Secret::new(secret).unwrap()).sign_at(body.as_bytes(), time);
        header.as_str().split_once(",v1=").unwrap().1.to_owned()
    };
    let good = sign(secret, body);
    let bogus = "0".repeat(64);
    match twist {
        Twist::None => format!("t={time},v1={good}"),
        Twist::OtherSecret => format!("t={time},v1={}", sign("whsec_other", body)),
        Twist::OtherBody => format!("t={time},v1={}", sign(secret, &format!("{body} "))),
        Twist::OtherTime(earlier) => format!("t={},v1={good}", time - earlier),
        Twist::Truncated(length) => format!("t={time},v1={}", &good[..*length]),
        Twist::BogusBeside => format!("t={time},v1={bogus},v1={good},v1={bogus}"),
        Twist::OnlyBogus => format!("t={time},v1={bogus}"),
        Twist::OtherScheme => format!("t={time},v0={good}"),
        Twist::Reordered => format!("v1={good},t={time}"),
        Twist::Unknown => format!("a=b,t={time},v2={bogus},v1={good}"),
    }
}

#[test]
fn stripes_own_library_agrees_on_two_thousand_cases() {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let ages = prop_oneof![3 => 0..200_u64, 1 => 400..5000_u64];
    let strategy = ("[!-~][ -~]{0,80}[!-~]", "\\PC{0,200}", ages, twists(), any::<bool>());
    let mut lines = String::new();
    for _ in 0..CASES {
        let (secret, body, age, twist, check_age) = strategy.new_tree(&mut runner).unwrap().current();
        let Ok(parsed) = Secret::new(&secret) else { continue };
        let header = header(&twist, &secret, &body, now - age);
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
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    let counts: Vec<usize> = said.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    assert!(counts[0] > 500 && counts[1] > 500 && counts[0] + counts[1] > CASES * 9 / 10, "{said}");
}
