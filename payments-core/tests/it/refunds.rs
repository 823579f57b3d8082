//! The parameters of a refund, and refunds on the wire.

use payments_core::{
    Amount, Cause, CreateRefund, Environment, LedgerAccount, Money, NewRefund, Payment, RANDOM_BYTES, RawStatus,
    RefundId, Refunds, Refusal, Slot, decide,
};
use proptest::prelude::*;

use crate::{after, now, payment};

fn id(nth: u8) -> RefundId {
    RefundId::new(Slot::FIRST, now(), [nth; RANDOM_BYTES])
}

fn paid() -> Payment {
    after(&payment(Environment::Live, Money::paisa(1_000)), Cause::GatewayConfirmed)
}

#[test]
fn a_body_names_the_amount_and_the_reason_or_refunds_the_rest() {
    let read = |body: &str| CreateRefund::from_json(body.as_bytes());
    let part = CreateRefund::part("4.5".parse().unwrap()).reason("broken");
    assert_eq!((part.amount, part.reason.as_deref()), (Some(Amount::from_minor(450)), Some("broken")));
    assert_eq!(read(r#"{"amount":4.5,"reason":"broken"}"#).unwrap(), part);
    assert_eq!(read(&serde_json::to_string(&part).unwrap()).unwrap(), part);
    for rest in ["", "{}", r#"{"reason":null}"#] {
        assert_eq!(read(rest).unwrap(), CreateRefund::rest(), "{rest}");
    }
    for wrong in [r#"{"amount":0}"#, r#"{"amount":null}"#, r#"{"amuont":4.5}"#, r#"{"sum":5}"#, r#"{"reason":5}"#, "[]"]
    {
        assert!(read(wrong).is_err(), "{wrong}");
    }
    let reason = |chars: usize| read(&format!(r#"{{"reason":"{}"}}"#, "ü".repeat(chars)));
    assert!(reason(500).is_ok() && reason(501).is_err());
}

#[test]
fn after_99_parts_the_exact_amount_that_is_left_can_be_refunded() {
    let mut payment = paid();
    for nth in 1..100 {
        let cause = CreateRefund::part(Amount::from_minor(1)).cause(&payment, NewRefund::made(id(nth))).unwrap();
        payment = after(&payment, cause);
    }
    let asked = |minor: u64| CreateRefund::part(Amount::from_minor(minor)).cause(&payment, NewRefund::made(id(100)));
    assert_eq!(asked(900), Err(Refusal::TooManyRefunds));
    assert_eq!(asked(902), Err(Refusal::MoreThanIsLeft { left: Amount::from_minor(901) }));
    let refunded = after(&payment, asked(901).unwrap());
    assert_eq!((refunded.raw_status, refunded.refunds.len()), (RawStatus::Refunded, 100));
}

/// The status decides before the amount does.
#[test]
fn a_payment_that_is_not_paid_is_refused_for_its_status_whatever_the_amount() {
    let open = payment(Environment::Live, Money::paisa(1_000));
    let cause = CreateRefund::part(Amount::from_minor(5_000)).cause(&open, NewRefund::made(id(1))).unwrap();
    let refusal = payments_core::decide(&open, cause, now()).unwrap_err();
    assert_eq!(refusal, Refusal::State { from: RawStatus::Created, to: RawStatus::Refunded });
}

#[test]
fn refunds_are_read_from_a_list_one_refund_or_null() {
    let refunded = after(&paid(), CreateRefund::rest().cause(&paid(), NewRefund::made(id(1))).unwrap());
    let one = serde_json::to_string(&refunded.refunds[0]).unwrap();
    for text in [one.clone(), format!("[{one}]")] {
        assert_eq!(serde_json::from_str::<Refunds>(&text).unwrap(), refunded.refunds);
    }
    assert_eq!(serde_json::from_str::<Refunds>("null").unwrap(), Refunds::default());
    let error = serde_json::from_str::<Refunds>("7").unwrap_err().to_string();
    assert!(error.contains("expected a list of refunds, or a refund"), "{error}");
}

proptest! {
    /// Each step refunds a part or, if it is 0, lets the refund of that number fail.
    #[test]
    fn refunds_that_fail_return_what_they_took_and_the_rest_returns_exactly_the_fee(
        steps in prop::collection::vec((0..300_u64, 0..8_usize), 1..20),
    ) {
        let (mut payment, mut balance) = (paid(), 0);
        for (nth, (part, failing)) in steps.into_iter().chain([(1_000, 0)]).enumerate() {
            let new = NewRefund::accepted(id(u8::try_from(nth).unwrap()));
            let cause = match (part, payment.refunds.get(failing)) {
                (0, Some(refund)) => Cause::RefundFailed { id: refund.id.clone(), reason: None },
                (1_000, _) => Cause::Refunded(new),
                _ => match CreateRefund::part(Amount::from_minor(part)).cause(&payment, new) {
                    Ok(cause) => cause,
                    Err(_) => continue,
                },
            };
            let Ok(decision) = decide(&payment, cause, now()) else { continue };
            balance += decision.booking.unwrap().change_of(LedgerAccount::Merchant);
            payment = decision.payment;
            let standing: u64 = payment.refunds.iter().filter(|it| it.stands()).map(|it| it.amount.as_minor()).sum();
            prop_assert_eq!(payment.amount_left().as_minor(), 1_000 - standing);
            prop_assert_eq!(payment.raw_status == RawStatus::Refunded, standing == 1_000);
        }
        let net = i64::try_from(payment.net_amount.as_minor()).unwrap();
        prop_assert_eq!(balance, -net, "all of it was refunded in the end");
    }
}
