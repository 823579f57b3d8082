//! Invariants of every payment, wherever it is stored.

use payments_core::{Amount, Environment, EventKind, MAX_REFUNDS, Payment, Posting, RawStatus, ledger};

use super::{MAX_ATTEMPTS, Session};

/// The invariants that a session violates, checked without any other record.
pub fn faults(session: &Session) -> Vec<&'static str> {
    let payment = &session.payment;
    let is_test = payment.environment == Environment::Test;
    let is_refunded = payment.raw_status == RawStatus::Refunded;
    let was_paid = is_refunded || payment.raw_status == RawStatus::Paid;
    let rules = [
        (!matches!(payment.raw_status, RawStatus::Other(_)), "is in an unknown state"),
        (payment.status == payment.raw_status.public(), "its public status does not match its internal status"),
        (
            payment.amount.checked_sub(payment.platform_fee_amount) == Some(payment.net_amount),
            "amount is not fee + net",
        ),
        (payment.platform_fee_amount == payment.fee_percentage.fee_on(payment.amount), "fee does not match rate"),
        (payment.paid_at.is_some() == was_paid, "paid_at does not match its state"),
        (was_paid || payment.refunds.is_empty(), "has a refund and was not paid"),
        (
            (was_paid && payment.amount_refunded() == payment.amount) == is_refunded,
            "the sum of its refunds does not match its state",
        ),
        (payment.amount_refunded() <= payment.amount, "its refunds sum to more than its amount"),
        (payment.refunds.len() <= MAX_REFUNDS, "has more refunds than a payment may have"),
        (
            payment.refunds.iter().all(|it| it.amount > Amount::ZERO && it.currency == payment.currency),
            "has a refund of nothing, or in another currency",
        ),
        (
            session.pending_refund.as_ref().is_none_or(|it| {
                payment.raw_status == RawStatus::Paid && it.amount.unwrap_or_default() <= payment.amount_left()
            }),
            "has a pending refund of more than is left",
        ),
        (payment.is_simulated == is_test, "isSimulated does not match its environment"),
        (!is_test || !is_refunded, "is a refunded test payment"),
        (!is_test || session.attempt.is_none(), "is a test payment with a gateway attempt"),
        (payment.raw_status != RawStatus::Processing || session.attempt.is_some(), "is processing without an attempt"),
        (!is_test || session.ended_attempts.is_empty(), "is a test payment with an ended gateway attempt"),
        (session.ended_attempts.len() < MAX_ATTEMPTS, "has more gateway attempts than a payment may have"),
        (
            payment.raw_status != RawStatus::Pending || session.attempt.is_none() || session.needs_manual_review(),
            "has a gateway attempt that can be paid after it failed",
        ),
        (
            session.ended_attempts.iter().all(|it| session.attempt.as_ref() != Some(&it.attempt)),
            "has a gateway attempt that ended and can be paid",
        ),
        (
            session.check_at.is_some() || session.needs_manual_review() || session.next_late_check().is_none(),
            "does not ask again about an ended gateway attempt",
        ),
        (session.version > 0 || payment.raw_status == RawStatus::Created, "changed its state at version 0"),
        (payment.updated_at >= payment.created_at, "updated_at is before created_at"),
    ];
    rules.into_iter().filter(|(holds, _)| !holds).map(|(_, fault)| fault).collect()
}

/// For each kind of event, how many events the payment's state requires.
pub fn expected_events(payment: &Payment) -> [(EventKind, usize); 4] {
    let whole = usize::from(payment.raw_status == RawStatus::Refunded);
    [
        (EventKind::PaymentCreated, 1),
        (EventKind::PaymentCompleted, usize::from(payment.paid_at.is_some())),
        (EventKind::PaymentPartiallyRefunded, payment.refunds.len().saturating_sub(whole)),
        (EventKind::PaymentRefunded, whole),
    ]
}

/// The ledger postings that a payment's state requires, one list per change: oldest first, in minor units.
pub fn expected_postings(payment: &Payment) -> Vec<Vec<Posting>> {
    let completion = payment.paid_at.map(|_| ledger::of_completion(payment));
    let refunds = (0..payment.refunds.len()).map(|nth| ledger::of_refund(payment, nth));
    completion.into_iter().chain(refunds).collect()
}

#[cfg(test)]
mod tests {
    use payments_core::{Cause, PaymentMethod, RANDOM_BYTES, RefundId, Slot};

    use super::*;
    use crate::domain::{
        Session,
        attempts::tests::pending_refund,
        samples::{at, attempt, session},
    };

    fn after(session: &Session, cause: Cause) -> Session {
        let decided = payments_core::decide(&session.payment, cause, at(9)).unwrap();
        Session { payment: decided.payment, ..session.next() }
    }

    fn refund_of(minor: u64) -> Cause {
        let amount = Amount::from_minor(minor);
        Cause::PartRefunded { id: RefundId::new(Slot::FIRST, at(9), [2; RANDOM_BYTES]), amount, reason: None }
    }

    /// A payment of 100.00 by wallet, of which 40.00 were sent back.
    fn paid() -> Session {
        let mut sent = after(&session(), Cause::SentToGateway(PaymentMethod::Mfs));
        sent.attempt = Some(attempt("a"));
        after(&after(&sent, Cause::GatewayConfirmed), refund_of(4_000))
    }

    /// The same payment, with the rest sent back too.
    fn refunded() -> Session {
        after(&paid(), Cause::Refunded { id: RefundId::new(Slot::FIRST, at(9), [3; RANDOM_BYTES]), reason: None })
    }

    fn change_refund(session: &mut Session, field: &str, value: serde_json::Value) {
        let mut refunds = serde_json::to_value(&*session.payment.refunds).unwrap();
        refunds[0][field] = value;
        session.payment.refunds = serde_json::from_value(refunds).unwrap();
    }

    #[test]
    fn payments_that_follow_the_rules_have_no_faults() {
        let new = session();
        let sent = Session { attempt: Some(attempt("a")), ..after(&new, Cause::SentToGateway(PaymentMethod::Mfs)) };
        let mut again = after(&sent, Cause::AttemptFailed);
        again.end_attempt(at(9));
        again.keep_asking();
        for (nth, sound) in [new, sent, paid(), refunded(), again].iter().enumerate() {
            assert_eq!(faults(sound), Vec::<&str>::new(), "{nth}");
        }
    }

    #[test]
    fn each_fault_is_found() {
        type Case<'c> = (&'c str, &'c dyn Fn(&mut Session));
        let pending = |minor| pending_refund(Some(Amount::from_minor(minor)));
        let ended: fn(&mut Session, &str) = |it, invoice| {
            let present = it.attempt.replace(attempt(invoice));
            it.end_attempt(at(9));
            it.attempt = present;
        };
        let cases: [Case<'_>; 17] = [
            ("is in an unknown state", &|it| it.payment.raw_status = RawStatus::Other("lost".into())),
            ("its public status does not match", &|it| it.payment.status = payments_core::Status::Failed),
            ("amount is not fee + net", &|it| it.payment.net_amount = Amount::ZERO),
            ("fee does not match rate", &|it| it.payment.platform_fee_amount = Amount::ZERO),
            ("paid_at does not match its state", &|it| it.payment.paid_at = None),
            ("has a refund and was not paid", &|it| it.payment.raw_status = RawStatus::Failed),
            ("the sum of its refunds does not match", &|it| change_refund(it, "amount", 100.into())),
            ("its refunds sum to more than its amount", &|it| change_refund(it, "amount", 101.into())),
            ("has a refund of nothing", &|it| change_refund(it, "amount", 0.into())),
            ("or in another currency", &|it| change_refund(it, "currency", "USD".into())),
            ("has a pending refund of more than is left", &|it| it.pending_refund = Some(pending(6_001))),
            ("isSimulated does not match", &|it| it.payment.is_simulated = true),
            ("has more gateway attempts", &|it| (0..MAX_ATTEMPTS).for_each(|nth| ended(it, &nth.to_string()))),
            ("that ended and can be paid", &|it| ended(it, "a")),
            ("does not ask again", &|it| {
                ended(it, "b");
                it.check_at = None;
            }),
            ("changed its state at version 0", &|it| it.version = 0),
            ("updated_at is before created_at", &|it| it.payment.created_at = at(10)),
        ];
        for (fault, break_it) in cases {
            let mut broken = paid();
            break_it(&mut broken);
            let found = faults(&broken);
            assert!(found.iter().any(|found| found.contains(fault)), "{fault}: {found:?}");
        }
        let the_rest_is_pending = Session { pending_refund: Some(pending(6_000)), ..paid() };
        assert_eq!(faults(&the_rest_is_pending), Vec::<&str>::new());
        let of_nothing = Session { pending_refund: Some(pending(0)), ..session() };
        assert_eq!(faults(&of_nothing), ["has a pending refund of more than is left"]);
        let without_attempt = after(&session(), Cause::SentToGateway(PaymentMethod::Mfs));
        assert_eq!(faults(&without_attempt), ["is processing without an attempt"]);
        let mut simulated = session();
        (simulated.payment.environment, simulated.payment.is_simulated) = (Environment::Test, true);
        assert_eq!(faults(&simulated), Vec::<&str>::new());
        simulated.payment.raw_status = RawStatus::Refunded;
        assert!(faults(&simulated).contains(&"is a refunded test payment"));
    }

    #[test]
    fn each_change_of_a_payment_has_an_event_and_those_that_move_money_have_postings() {
        let counts = |it: &Session| expected_events(&it.payment).map(|(_, count)| count);
        let new = session();
        assert_eq!((counts(&new), expected_postings(&new.payment)), ([1, 0, 0, 0], Vec::new()));
        let part = paid();
        let of_part = vec![ledger::of_completion(&part.payment), ledger::of_refund(&part.payment, 0)];
        assert_eq!((counts(&part), expected_postings(&part.payment)), ([1, 1, 1, 0], of_part));
        let whole = refunded();
        assert_eq!((counts(&whole), expected_postings(&whole.payment).len()), ([1, 1, 1, 1], 3));
    }
}
