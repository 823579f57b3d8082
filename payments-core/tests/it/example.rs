//! The example program, run as a user would.

use std::process::{Command, Output};

fn run(arguments: &[&str]) -> Output {
    let directory = std::env::current_exe().unwrap().parent().unwrap().with_file_name("examples");
    Command::new(directory.join("life_of_a_payment"))
        .args(arguments)
        .output()
        .expect("build it first: cargo build -p payments-core --example life_of_a_payment")
}

#[test]
fn the_example_follows_a_payment_to_its_ledger() {
    let output = run(&[]);
    assert!(output.status.success());
    let expected = "created: 12.5 USD\npaid: fee 0.63, net 11.87\n\
                    \x20 GatewayClearing -1250\n  Merchant +1187\n  PlatformFee +63\n";
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
}

#[test]
fn the_example_names_every_invalid_field_in_one_line() {
    let output = run(&[r#"{"amount": 0, "curency": "USD"}"#]);
    assert!(!output.status.success());
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said.lines().count(), 1, "{said}");
    for field in ["amount", "success_url", "cancel_url", "curency"] {
        assert!(said.contains(field), "{said}");
    }
}
