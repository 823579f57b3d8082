//! Refunds in virtual time, in both versions.

use std::{sync::Arc, time::Duration};

use gateway_fakes::bkash;
use payments_core::{Amount, Cause, NewRefund, Payment, RANDOM_BYTES, RefundId, Slot};
use tokio::time::advance;

use super::{
    super::Bkash,
    calls::begun,
    world::{Trouble, World},
};
use crate::{
    ambient::Ambient as _,
    domain::{GatewayAttempt, GatewayRefund, GatewayRefundState},
    gateway::{
        contract::{AttemptState, CaptureOutcome, Gateway, KnownRefund, Receipt, RefundOutcome, RefundRequest},
        error::GatewayError,
    },
};

const VERSIONS: [&str; 2] = ["v1.2.0-beta", "v2"];

struct Paid {
    world: Arc<World>,
    adapter: Bkash,
    payment: Payment,
    attempt: GatewayAttempt,
    /// The refunds that the server knows.
    known: Vec<(RefundId, String, Amount)>,
}

impl Paid {
    /// A paid payment of 100 taka.
    async fn new(version: &str) -> Self {
        let world = World::new();
        let adapter = world.adapter_of(version);
        let (payment, attempt) = begun(&world, &adapter, "i-1").await;
        world.fake.approve(&attempt.external_id, bkash::WALLET).unwrap();
        let captured = adapter.capture(&payment, &attempt).await.unwrap();
        let CaptureOutcome::State(AttemptState::Paid(Receipt { transaction, .. })) = captured else {
            panic!("{captured:?}")
        };
        let attempt = GatewayAttempt { transaction: Some(transaction), ..attempt };
        Self { world, adapter, payment, attempt, known: Vec::new() }
    }

    fn id(&self, nth: u8) -> RefundId {
        RefundId::new(Slot::FIRST, self.world.clock.now(), [nth; RANDOM_BYTES])
    }

    /// Refunds so many taka.
    async fn refund(&self, taka: u64, is_repeated: bool) -> Result<RefundOutcome, GatewayError> {
        let id = self.id(u8::try_from(taka).unwrap());
        let known: Vec<_> =
            self.known.iter().map(|(id, reference, amount)| KnownRefund { id, reference, amount: *amount }).collect();
        let request = RefundRequest {
            id: &id,
            reference: id.as_str(),
            amount: (taka < 100).then(|| Amount::from_minor(taka * 100)),
            is_repeated,
            known: &known,
            reason: Some(&"ভাঙা ".repeat(50)),
        };
        self.adapter.refund(&self.payment, &self.attempt, &request).await
    }

    /// Refunds so many taka, and remembers that.
    async fn refunded(&mut self, taka: u64, is_repeated: bool) {
        let outcome = self.refund(taka, is_repeated).await.unwrap();
        let RefundOutcome::Made(GatewayRefund { reference, amount, state, .. }) = outcome else {
            panic!("{outcome:?}")
        };
        assert_eq!((amount, state), (Amount::from_minor(taka * 100), GatewayRefundState::Succeeded));
        self.known.push((self.id(u8::try_from(taka).unwrap()), reference, amount));
    }

    /// What went back, in taka, in how many refunds.
    fn books(&self) -> (u64, u32) {
        let entry = self.world.fake.books().remove(0);
        (entry.refunded_minor / 100, entry.refunded)
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_reply_is_found_and_a_lost_request_is_sent_again() {
    for version in VERSIONS {
        let mut paid = Paid::new(version).await;
        paid.refunded(5, false).await;
        paid.world.meet(&[Trouble::AnswerLost]);
        paid.refund(7, false).await.unwrap_err();
        assert_eq!(paid.books(), (12, 2));
        paid.refunded(7, true).await;
        assert_eq!(paid.books(), (12, 2), "{version}: found, not sent again");
        paid.world.meet(&[Trouble::BadGateway]);
        paid.refund(9, false).await.unwrap_err();
        // It asks twice for the refunds so far.
        paid.world.meet(&[Trouble::AnswerLost, Trouble::AnswerLost]);
        paid.refund(9, true).await.unwrap_err();
        assert_eq!(paid.books(), (12, 2), "{version}: without the refunds so far, nothing is sent");
        paid.world.meet(&[Trouble::AnswerLost]);
        paid.refunded(9, true).await;
        assert_eq!(paid.books(), (21, 3));
        assert_ne!(paid.known[0].1, paid.known[1].1);
    }
}

#[tokio::test(start_paused = true)]
async fn the_whole_payment_is_refunded_as_its_amount() {
    for version in VERSIONS {
        let mut paid = Paid::new(version).await;
        paid.refunded(100, false).await;
        assert_eq!(paid.books(), (100, 1), "{version}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_equal_refund_waits_ten_minutes_and_the_merchants_balance_ends_nothing() {
    for version in VERSIONS {
        let mut paid = Paid::new(version).await;
        paid.refunded(5, false).await;
        paid.refund(5, false).await.unwrap_err();
        // The status has an equal refund, but the server knows that one.
        paid.refund(5, true).await.unwrap_err();
        advance(Duration::from_secs(600)).await;
        paid.refunded(5, true).await;
        paid.world.fake.empty_balance(true);
        let error = paid.refund(8, false).await.unwrap_err();
        assert!(error.to_string().contains("2023") && error.to_string().contains("top up"), "{error}");
        paid.world.fake.empty_balance(false);
        paid.refunded(8, true).await;
        assert_eq!(paid.books(), (18, 3), "{version}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_refund_over_the_rest_or_after_the_window_is_refused_for_good() {
    for version in VERSIONS {
        let mut paid = Paid::new(version).await;
        paid.refunded(60, false).await;
        for is_repeated in [false, true] {
            assert!(matches!(paid.refund(41, is_repeated).await.unwrap(), RefundOutcome::Rejected(_)), "{version}");
        }
        advance(Duration::from_secs(61 * 86_400)).await;
        assert!(matches!(paid.refund(2, false).await.unwrap(), RefundOutcome::Rejected(_)), "{version}");
        assert_eq!(paid.books(), (60, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn v1_leaves_a_lost_reply_to_a_person_if_a_later_refund_hides_it() {
    for version in VERSIONS {
        let paid = Paid::new(version).await;
        paid.world.meet(&[Trouble::AnswerLost]);
        paid.refund(7, false).await.unwrap_err();
        // A person refunds in bKash's portal.
        paid.refund(3, false).await.unwrap();
        let outcome = paid.refund(7, true).await.unwrap();
        match version {
            "v2" => assert!(matches!(outcome, RefundOutcome::Made(_)), "{outcome:?}"),
            _ => assert!(matches!(outcome, RefundOutcome::ForAPerson { .. }), "{outcome:?}"),
        }
        assert_eq!(paid.books(), (10, 2));
    }
}

#[tokio::test(start_paused = true)]
async fn an_equal_refund_that_a_person_sends_by_hand_is_not_taken_for_a_lost_one() {
    for version in VERSIONS {
        let mut paid = Paid::new(version).await;
        // A person sends it in bKash's portal, and the server does not know its id.
        paid.refund(7, false).await.unwrap();
        let now = paid.world.clock.now();
        let by_hand = Cause::PartRefunded { refund: NewRefund::by_hand(paid.id(1)), amount: Amount::from_minor(700) };
        for cause in [Cause::GatewayConfirmed, by_hand] {
            paid.payment = payments_core::decide(&paid.payment, cause, now).unwrap().payment;
        }
        paid.world.meet(&[Trouble::BadGateway]);
        paid.refund(7, false).await.unwrap_err();
        assert!(matches!(paid.refund(7, true).await.unwrap(), RefundOutcome::ForAPerson { .. }), "{version}");
        assert_eq!(paid.books(), (7, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn refunds_in_bkashs_portal_are_listed_without_an_id_of_ours() {
    for version in VERSIONS {
        let mut paid = Paid::new(version).await;
        assert_eq!(paid.adapter.refunds(&paid.attempt, &[]).await.unwrap(), []);
        paid.refunded(5, false).await;
        paid.refund(3, false).await.unwrap();
        let (id, reference, amount) = &paid.known[0];
        let known = [KnownRefund { id, reference, amount: *amount }];
        let listed = paid.adapter.refunds(&paid.attempt, &known).await.unwrap();
        let brief: Vec<_> = listed.iter().map(|it| (it.id.is_some(), it.amount.as_minor())).collect();
        match version {
            "v2" => assert_eq!(brief, [(true, 500), (false, 300)]),
            _ => assert_eq!(brief, [(false, 300)], "v1 has only the last one"),
        }
    }
}
