use proptest::prelude::*;

use super::*;
use crate::{
    AppId, CreatePayment, Decision, DeveloperId, Environment, EventKind, FeeRate, LedgerAccount, Money, NewPayment,
    PaymentId, RANDOM_BYTES, Slot, create, decide,
};

fn now() -> Timestamp {
    Timestamp::from_millis(1_700_000_000_000).unwrap()
}

fn id(nth: u8) -> RefundId {
    RefundId::new(Slot::FIRST, now(), [nth; RANDOM_BYTES])
}

fn paid(minor: u64, basis_points: u16) -> Payment {
    let new = NewPayment {
        id: PaymentId::new(Slot::FIRST, now(), [1; RANDOM_BYTES]),
        developer_id: DeveloperId::new(Slot::FIRST, now(), [2; RANDOM_BYTES]),
        app_id: None::<AppId>,
        environment: Environment::Live,
        checkout_url: String::new(),
        fee_rate: FeeRate::from_basis_points(basis_points).unwrap(),
        now: now(),
    };
    let params =
        CreatePayment::of(Money::paisa(minor)).success_url("https://a.example/ok").cancel_url("https://a.example/no");
    decide(&create(params, new).payment, Cause::GatewayConfirmed, now()).unwrap().payment
}

fn refund(payment: &Payment, params: &CreateRefund, nth: u8) -> Result<Decision, Refusal> {
    decide(payment, params.cause(payment, NewRefund::made(id(nth)))?, now())
}

fn posted(decision: &Decision, account: LedgerAccount) -> i64 {
    decision.booking.map_or(0, |booking| booking.change_of(account))
}

proptest! {
    #[test]
    fn all_parts_together_return_exactly_the_fee_and_never_exceed_the_rest(
        minor in 1..=1_000_000_u64,
        basis_points in 0..=10_000_u16,
        parts in prop::collection::vec(1..=400_000_u64, 0..8),
    ) {
        let mut payment = paid(minor, basis_points);
        let (fee, net) = (payment.platform_fee_amount, payment.net_amount);
        let (mut fee_back, mut net_back) = (0, 0);
        for (nth, part) in parts.iter().map(|minor| Amount::from_minor(*minor)).chain([payment.amount]).enumerate() {
            let left = payment.amount_left();
            if part > left && nth < parts.len() {
                prop_assert!(refund(&payment, &CreateRefund::part(part), 9).is_err());
                continue;
            }
            let params = if nth < parts.len() { CreateRefund::part(part) } else { CreateRefund::rest() };
            let Ok(decision) = refund(&payment, &params, u8::try_from(nth).unwrap()) else {
                prop_assert_eq!(left, Amount::ZERO);
                continue;
            };
            let is_last = decision.payment.amount_left() == Amount::ZERO;
            let kind = if is_last { EventKind::PaymentRefunded } else { EventKind::PaymentPartiallyRefunded };
            prop_assert_eq!(decision.event.clone(), Some(kind));
            prop_assert_eq!(decision.payment.raw_status == RawStatus::Refunded, is_last);
            let (merchant, platform) =
                (posted(&decision, LedgerAccount::Merchant), posted(&decision, LedgerAccount::PlatformFee));
            prop_assert!(merchant <= 0 && platform <= 0);
            fee_back -= platform;
            net_back -= merchant;
            payment = decision.payment;
        }
        prop_assert_eq!(fee_back, i64::try_from(fee.as_minor()).unwrap());
        prop_assert_eq!(net_back, i64::try_from(net.as_minor()).unwrap());
        prop_assert_eq!(payment.amount_refunded(), payment.amount);
    }
}

#[test]
fn the_fee_is_returned_as_in_the_ledgers_table() {
    let mut payment = paid(1_000, 250);
    for (nth, (minor, fee)) in [(333, 8), (333, 9), (334, 8)].into_iter().enumerate() {
        let part = CreateRefund::part(Amount::from_minor(minor));
        let decision = refund(&payment, &part, u8::try_from(nth).unwrap()).unwrap();
        assert_eq!(posted(&decision, LedgerAccount::PlatformFee), -fee);
        payment = decision.payment;
    }
    assert_eq!(payment.raw_status, RawStatus::Refunded);
}

#[test]
fn a_refund_of_more_than_the_rest_is_refused_with_the_rest() {
    let part = refund(&paid(1_000, 250), &CreateRefund::part(Amount::from_minor(400)), 1).unwrap().payment;
    let refusal = refund(&part, &CreateRefund::part(Amount::from_minor(601)), 2).unwrap_err();
    assert_eq!(refusal, Refusal::MoreThanIsLeft { left: Amount::from_minor(600) });
    assert!(refusal.to_string().starts_with("6 of this payment is left to refund"), "{refusal}");
    let cause = Cause::PartRefunded { refund: NewRefund::made(id(2)), amount: Amount::from_minor(600) };
    assert!(decide(&part, cause, now()).is_err(), "the rest is not a part");
}

#[test]
fn after_99_parts_only_the_rest_can_be_refunded() {
    let mut payment = paid(1_000, 250);
    let part = CreateRefund::part(Amount::from_minor(1));
    for nth in 1..100 {
        payment = refund(&payment, &part, nth).unwrap().payment;
    }
    assert_eq!(refund(&payment, &part, 100).unwrap_err(), Refusal::TooManyRefunds);
    payment = refund(&payment, &CreateRefund::rest(), 100).unwrap().payment;
    assert_eq!((payment.refunds.len(), &payment.raw_status), (MAX_REFUNDS, &RawStatus::Refunded));
    // If the last one fails, no other takes its place.
    let failed = Cause::RefundFailed { id: id(100), reason: None };
    payment = decide(&payment, failed, now()).unwrap().payment;
    assert_eq!(refund(&payment, &CreateRefund::rest(), 101).unwrap_err(), Refusal::NoMoreRefunds);
    assert_eq!(refund(&payment, &part, 101).unwrap_err(), Refusal::NoMoreRefunds);
}

#[test]
fn a_refunded_payment_serializes_its_refunds_the_last_one_and_their_sum() {
    let payment = paid(1_000, 250);
    let first = refund(&payment, &CreateRefund::part(Amount::from_minor(400)), 1).unwrap().payment;
    let second = refund(&first, &CreateRefund::rest().reason("broken"), 2).unwrap().payment;
    let json = serde_json::to_value(&second).unwrap();
    assert_eq!(json["amountRefunded"], 10);
    assert_eq!(json["refund"], json["refunds"][1]);
    assert_eq!((&json["refunds"][0]["amount"], &json["refund"]["amount"]), (&4.into(), &6.into()));
    assert_eq!(serde_json::from_value::<Payment>(json).unwrap(), second);
    let json = serde_json::to_value(&payment).unwrap();
    for name in ["refund", "refunds", "amountRefunded"] {
        assert!(json.get(name).is_none(), "{name}");
    }
}

#[test]
fn a_payment_from_a_server_without_partial_refunds_has_its_one_refund() {
    let whole = refund(&paid(1_000, 250), &CreateRefund::rest(), 1).unwrap().payment;
    let mut json = serde_json::to_value(&whole).unwrap();
    for name in ["refunds", "amountRefunded"] {
        json.as_object_mut().unwrap().remove(name);
    }
    assert_eq!(serde_json::from_value::<Payment>(json).unwrap(), whole);
}
