//! Fees and environments of payments.

use payments_core::{AmountError, Environment, FeeRate, Money};

use crate::payment;

#[test]
fn a_fee_rate_is_at_most_the_whole_payment() {
    for basis_points in [0, 1, 275, 9_999, 10_000] {
        assert_eq!(FeeRate::from_basis_points(basis_points).unwrap().as_basis_points(), basis_points);
    }
    for basis_points in [10_001, 10_002, u16::MAX] {
        assert_eq!(FeeRate::from_basis_points(basis_points), Err(AmountError::TooLarge));
    }
    let whole = FeeRate::from_basis_points(10_000).unwrap();
    assert_eq!(whole.fee_on("999999999999.99".parse().unwrap()).to_string(), "999999999999.99");
}

#[test]
fn a_fee_rate_is_a_percentage_on_the_wire_and_in_logs() {
    let rate = FeeRate::from_basis_points(275).unwrap();
    assert_eq!((rate.to_string(), format!("{rate:?}")), ("2.75".to_owned(), "2.75 %".to_owned()));
    assert_eq!(serde_json::from_str::<FeeRate>("2.75").unwrap(), rate);
    for wrong in ["100.01", "700", "2.755", "-1", "\"5\""] {
        assert!(serde_json::from_str::<FeeRate>(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn the_payments_of_the_test_environment_are_simulated() {
    for (environment, is_simulated) in [(Environment::Live, false), (Environment::Test, true)] {
        assert_eq!(payment(environment, Money::taka(1)).is_simulated, is_simulated);
    }
}
