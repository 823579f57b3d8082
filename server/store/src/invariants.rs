//! Invariants of the records beside a payment's session: events, bookings, stored responses and claims.

use payments_core::{Booking, EventKind, Payment, RawJson, Timestamp};
use serde::Deserialize;

use super::change::EventWrite;
use crate::domain::{KeyClaim, Session, StoredResponse, event_count_faults, expected_bookings, with_disputes_summed};

/// Each expected event exists once, and every event is about this payment. Returns the violations.
pub(super) fn event_faults(payment: &Payment, events: &[EventWrite]) -> Vec<String> {
    let mut faults = Vec::new();
    for EventWrite { data, .. } in events {
        match payment_of(data) {
            Err(error) => faults.push(format!("cannot be read: {error}")),
            Ok(id) if id.as_deref() == Some(payment.id.as_str()) => {}
            Ok(_) => faults.push("has an event about another payment".to_owned()),
        }
    }
    let times = |kind: &EventKind| events.iter().filter(|event| event.kind == *kind).count();
    faults.extend(event_count_faults(payment, times));
    faults
}

fn payment_of(data: &RawJson) -> Result<Option<String>, serde_json::Error> {
    #[derive(Deserialize)]
    struct Head {
        id: Option<String>,
        payment: Option<Box<Head>>,
    }
    let Head { id, payment } = serde_json::from_str(data.as_str())?;
    Ok(id.or_else(|| payment?.id))
}

/// A payment's bookings match its state. Returns the violation.
pub(super) fn booking_fault(session: &Session, bookings: Vec<Booking>) -> Option<String> {
    let is_expected = with_disputes_summed(bookings.into_iter()) == expected_bookings(session);
    (!is_expected).then(|| format!("is {}, and its bookings are not those of that", session.payment.raw_status))
}

/// A claimed key has no valid response, and its lease ends after it begins. Returns the violations.
pub(super) fn claim_faults(claim: &KeyClaim, responded_at: Option<Timestamp>) -> Vec<&'static str> {
    let is_answered = responded_at.is_some_and(|at| StoredResponse::is_fresh_at(at, claim.claimed_at));
    let rules = [
        (claim.until > claim.claimed_at, "has a lease that ends before it begins"),
        (!is_answered, "claims a key that has its response"),
    ];
    rules.into_iter().filter(|(holds, _)| !holds).map(|(_, fault)| fault).collect()
}

/// The record that a stored response is about.
pub(super) enum Effect {
    /// An endpoint. It may have been removed since.
    Endpoint,
    Delivery(String),
    Payment(String),
    Payout(String),
}

/// The record that the body of a stored response is about, by the body's `id`; `None` if it has none.
pub(super) fn effect_of(body: &RawJson) -> Result<Option<Effect>, serde_json::Error> {
    #[derive(Deserialize)]
    struct BodyHead {
        id: Option<String>,
    }
    let BodyHead { id } = serde_json::from_str(body.as_str())?;
    Ok(id.map(|id| match id.split_once('_') {
        Some(("wh", _)) => Effect::Endpoint,
        Some(("del", _)) => Effect::Delivery(id),
        Some(("po", _)) => Effect::Payout(id),
        _ => Effect::Payment(id),
    }))
}

#[cfg(test)]
mod tests {
    use payments_core::{BookingKind, EventId, PaymentId, RANDOM_BYTES, Slot};

    use super::*;
    use crate::domain::{ClaimToken, new_session};

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn event(kind: EventKind, about: &Payment) -> EventWrite {
        let data = RawJson::of(about).unwrap();
        EventWrite { id: EventId::new(Slot::FIRST, NOW, [1; RANDOM_BYTES]), kind, created_at: NOW, data }
    }

    #[test]
    fn a_payment_has_the_events_of_its_state_each_once_and_about_itself() {
        let payment = new_session().payment;
        let other = Payment { id: PaymentId::new(Slot::FIRST, NOW, [2; RANDOM_BYTES]), ..payment.clone() };
        let faults = |events: &[EventWrite]| event_faults(&payment, events).join("; ");
        assert_eq!(faults(&[event(EventKind::PaymentCreated, &payment)]), "");
        assert_eq!(faults(&[event(EventKind::PaymentCreated, &other)]), "has an event about another payment");
        assert_eq!(faults(&[]), "has 0 events payment.created, and its state comes to 1");
        let [created, completed] =
            [EventKind::PaymentCreated, EventKind::PaymentCompleted].map(|it| event(it, &payment));
        assert_eq!(faults(&[created, completed]), "has 1 events payment.completed, and its state comes to 0");
    }

    #[test]
    fn a_payment_has_the_bookings_of_its_state() {
        let session = new_session();
        assert_eq!(booking_fault(&session, Vec::new()), None);
        let fault = booking_fault(&session, vec![Booking { kind: BookingKind::Paid, minor: 5, fee_minor: 0 }]);
        assert_eq!(fault.as_deref(), Some("is created, and its bookings are not those of that"));
    }

    #[test]
    fn a_claimed_key_has_a_lease_and_no_valid_response() {
        let at = |seconds: i64| Timestamp::from_millis(seconds * 1_000).unwrap();
        let faults = |until, responded_at| {
            let claim =
                KeyClaim { token: ClaimToken::new([1; 16]), fingerprint: String::new(), claimed_at: at(0), until };
            claim_faults(&claim, responded_at).join("; ")
        };
        assert_eq!(faults(at(1), None), "");
        assert_eq!(faults(at(0), None), "has a lease that ends before it begins");
        assert_eq!(faults(at(1), Some(at(0))), "claims a key that has its response");
        assert_eq!(faults(at(1), Some(at(-3 * 24 * 60 * 60))), "", "the response no longer counts");
    }

    #[test]
    fn the_id_in_a_response_shows_the_record_it_is_about() {
        let about = |body: &str| match effect_of(&RawJson::new(body).unwrap()).unwrap() {
            Some(Effect::Endpoint) => "an endpoint".to_owned(),
            Some(Effect::Delivery(id)) => format!("delivery {id}"),
            Some(Effect::Payout(id)) => format!("payout {id}"),
            Some(Effect::Payment(id)) => format!("payment {id}"),
            None => "nothing".to_owned(),
        };
        assert_eq!(about(r#"{"id": "wh_1"}"#), "an endpoint");
        assert_eq!(about(r#"{"id": "del_1"}"#), "delivery del_1");
        assert_eq!(about(r#"{"id": "po_1"}"#), "payout po_1");
        assert_eq!(about(r#"{"id": "pay_1"}"#), "payment pay_1");
        assert_eq!(about("{}"), "nothing");
    }
}
