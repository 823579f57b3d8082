//! Statuses and environments.

use payments_core::{Environment, RawStatus, Status};

#[test]
fn the_customer_can_still_pay_a_payment_that_is_created_pending_or_processing() {
    for status in RawStatus::KNOWN {
        let is_open = ["created", "pending", "processing"].contains(&status.as_str());
        assert_eq!(status.is_open(), is_open, "{status}");
    }
    assert!(!RawStatus::from("disputed").is_open());
}

#[test]
fn a_payment_is_settled_in_each_known_status_but_pending() {
    for status in Status::KNOWN {
        assert_eq!(status.is_settled(), *status != Status::Pending, "{status}");
    }
    assert!(!Status::from("disputed").is_settled());
}

#[test]
fn an_unknown_internal_status_is_served_as_it_is() {
    assert_eq!(RawStatus::from("disputed").public(), Status::from("disputed"));
}

#[test]
fn the_prefix_of_a_key_tells_its_environment() {
    for (key, environment) in [
        ("sk_live_x", Some(Environment::Live)),
        ("sk_test_x", Some(Environment::Test)),
        ("sk_live_", None),
        ("sk_test_", None),
        ("sk_livex", None),
        ("pk_live_x", None),
        (" sk_live_x", None),
        ("", None),
    ] {
        assert_eq!(Environment::of_key(key), environment, "{key:?}");
    }
    assert_eq!((Environment::Live.key_prefix(), Environment::Test.key_prefix()), ("sk_live_", "sk_test_"));
}

#[test]
fn an_environment_is_written_as_on_the_wire() {
    for (environment, word) in [(Environment::Live, "live"), (Environment::Test, "test")] {
        assert_eq!((environment.as_str(), environment.to_string().as_str()), (word, word));
        assert_eq!(serde_json::to_string(&environment).unwrap(), format!("\"{word}\""));
    }
}
