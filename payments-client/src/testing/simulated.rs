//! Ready-made payments and events.

use payments_core::{
    Cause, CreatePayment, Environment, Event, EventId, EventKind, FeeRate, NewPayment, Payment, PaymentId,
    RANDOM_BYTES, RawJson, SimulateOutcome, Slot, Timestamp,
};

use crate::{clock::Clock, inbox::BoxError};

/// A test payment with an outcome, and the events that its webhooks bring, by the API's own rules. No server runs.
///
/// ```
/// use payments_client::{CreatePayment, EventKind, Money, SimulateOutcome, Status, testing::simulated};
///
/// let params = CreatePayment::of(Money::taka(750))
///     .success_url("https://shop.example/paid")
///     .cancel_url("https://shop.example/cart")
///     .merchant_transaction_id("order-1017");
/// let (payment, events) = simulated(params, SimulateOutcome::Completed)?;
/// assert_eq!((payment.status, events.len()), (Status::Completed, 2));
/// assert_eq!(*events[1].kind(), EventKind::PaymentCompleted);
/// # Ok::<(), payments_client::inbox::BoxError>(())
/// ```
///
/// # Errors
/// If the operating system has no random numbers.
pub fn simulated(params: CreatePayment, outcome: SimulateOutcome) -> Result<(Payment, Vec<Event>), BoxError> {
    let now = Timestamp::from_millis(Clock::system().now().as_millisecond())?;
    let new = NewPayment {
        id: PaymentId::new(Slot::FIRST, now, random()?),
        developer_id: "dev_demo".parse()?,
        app_id: None,
        environment: Environment::Test,
        checkout_url: String::new(),
        fee_rate: FeeRate::from_basis_points(250)?,
        now,
    };
    let created = payments_core::create(params, new);
    let ended = payments_core::decide(&created.payment, Cause::Simulated(outcome), now)?;
    let decisions = [&created, &ended].into_iter();
    let events =
        decisions.filter_map(|it| Some(event(it.event.clone()?, &it.payment, now))).collect::<Result<_, _>>()?;
    Ok((ended.payment, events))
}

fn event(event: EventKind, payment: &Payment, created_at: Timestamp) -> Result<Event, BoxError> {
    let (id, data) = (EventId::new(Slot::FIRST, created_at, random()?), RawJson::of(payment)?);
    let envelope = payments_core::Envelope { id: &id, event, created_at, data: &data };
    Ok(Event::from_unverified_for_tests(&serde_json::to_vec(&envelope)?)?)
}

fn random() -> Result<[u8; RANDOM_BYTES], getrandom::Error> {
    let mut random = [0; RANDOM_BYTES];
    getrandom::fill(&mut random)?;
    Ok(random)
}
