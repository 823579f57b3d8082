//! Captures in virtual time, in both versions.

use std::{sync::Arc, time::Duration};

use gateway_fakes::bkash;
use payments_core::{Amount, Customer, Payment};
use tokio::time::advance;

use super::{
    super::Bkash,
    world::{Trouble, World},
};
use crate::{
    ambient::Ambient as _,
    domain::{GatewayAttempt, new_attempt, new_session},
    gateway::contract::{AttemptRequest, AttemptState, BeginOutcome, CaptureOutcome, Gateway, Receipt},
};

/// An attempt of a payment of 100 taka.
pub(super) async fn begun(world: &World, adapter: &Bkash, invoice: &str) -> (Payment, GatewayAttempt) {
    let payment = new_session().payment;
    let request = AttemptRequest {
        payment: &payment,
        invoice,
        merchant_name: "Rahim",
        return_url: "https://pay.example/back",
        customer: &Customer::default(),
        expires_at: world.clock.now().plus_seconds(600),
    };
    let BeginOutcome::SendTo { external_id, .. } = adapter.begin(&request).await.unwrap() else { panic!() };
    (payment, GatewayAttempt { external_id, ..new_attempt(invoice) })
}

fn failed(outcome: &CaptureOutcome) -> Option<&str> {
    match outcome {
        CaptureOutcome::Rejected { ended: AttemptState::Failed { why, .. }, .. } => why.as_deref(),
        _ => None,
    }
}

#[tokio::test(start_paused = true)]
async fn each_version_takes_approved_money_once() {
    for version in ["v1.2.0-beta", "v2"] {
        let world = World::new();
        let adapter = world.adapter_of(version);
        let (payment, attempt) = begun(&world, &adapter, "i-1").await;
        assert_eq!(adapter.query(&payment, &attempt).await.unwrap(), AttemptState::Open);
        world.fake.approve(&attempt.external_id, bkash::WALLET).unwrap();
        assert_eq!(adapter.query(&payment, &attempt).await.unwrap(), AttemptState::Approved);
        world.meet(&[Trouble::AnswerLost]);
        adapter.capture(&payment, &attempt).await.unwrap_err();
        assert_eq!(adapter.capture(&payment, &attempt).await.unwrap(), CaptureOutcome::Unknown, "{version}");
        let AttemptState::Paid(Receipt { transaction, .. }) = adapter.query(&payment, &attempt).await.unwrap() else {
            panic!()
        };
        assert_eq!((world.fake.transactions(), world.fake.books()[0].taken), (vec![transaction], 1));
        world.fake.falsify_amount(&attempt.external_id, "99.00");
        assert!(matches!(adapter.query(&payment, &attempt).await.unwrap(), AttemptState::Discrepancy { .. }));
    }
}

#[tokio::test(start_paused = true)]
async fn only_v1_may_capture_before_it_asks() {
    for (version, may, money) in [("v1.2.0-beta", true, 1), ("v2", false, 0)] {
        let world = World::new();
        let adapter = world.adapter_of(version);
        assert_eq!(adapter.may_capture_unasked(), may);
        let (payment, attempt) = begun(&world, &adapter, "i-1").await;
        assert_eq!(adapter.capture(&payment, &attempt).await.unwrap(), CaptureOutcome::Unknown);
        let approved = world.fake.approve(&attempt.external_id, bkash::WALLET);
        assert_eq!(approved.is_some(), may, "an early execute of v2 uses the payment up");
        let _ = adapter.capture(&payment, &attempt).await.unwrap();
        assert_eq!(world.fake.books()[0].taken, money);
    }
}

#[tokio::test(start_paused = true)]
async fn a_poor_wallet_fails_at_once_and_a_payment_of_v2_that_was_used_up_fails_when_its_execute_has_ended() {
    let world = World::new();
    let adapter = world.adapter_of("v2");
    let (payment, attempt) = begun(&world, &adapter, "i-1").await;
    world.fake.approve(&attempt.external_id, bkash::POOR_WALLET).unwrap();
    assert_eq!(failed(&adapter.capture(&payment, &attempt).await.unwrap()), Some("Insufficient Balance (2023)"));

    let (payment, paid) = begun(&world, &adapter, "i-2").await;
    world.fake.approve(&paid.external_id, bkash::WALLET).unwrap();
    assert!(matches!(adapter.capture(&payment, &paid).await.unwrap(), CaptureOutcome::State(AttemptState::Paid(_))));
    let (payment, equal) = begun(&world, &adapter, "i-3").await;
    world.fake.approve(&equal.external_id, bkash::WALLET).unwrap();
    assert_eq!(adapter.capture(&payment, &equal).await.unwrap(), CaptureOutcome::Unknown, "2029");
    let equal = GatewayAttempt { capture_sent_at: Some(world.clock.now()), ..equal };
    advance(Duration::from_secs(10)).await;
    assert_eq!(adapter.capture(&payment, &equal).await.unwrap(), CaptureOutcome::Unknown, "2056, too early to tell");
    advance(Duration::from_secs(20)).await;
    assert_eq!(failed(&adapter.capture(&payment, &equal).await.unwrap()), Some("Invalid payment state (2056)"));
    assert_eq!(world.fake.books().iter().map(|entry| entry.taken).sum::<u32>(), 1);

    let old = Arc::clone(&world).adapter();
    let (payment, equal) = begun(&world, &old, "i-4").await;
    let attempt = GatewayAttempt { capture_sent_at: Some(world.clock.now()), ..equal };
    advance(Duration::from_secs(60)).await;
    assert_eq!(old.capture(&payment, &attempt).await.unwrap(), CaptureOutcome::Unknown, "v1 stays open");
    assert_eq!(payment.amount, Amount::from_minor(10_000));
}
