//! Erasure of a customer's data from a payment. Amounts, ids, times and states stay.

use payments_core::{Customer, Delivery, Payment, PaymentId, RawJson, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{GatewayAttempt, Lookup, Session};

/// What an erasure takes beside name, e-mail address and phone number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ErasePolicy {
    pub metadata: bool,
    /// The order's lines, the description, and the reasons of refunds.
    pub lines: bool,
}

/// What stands for an erased value within a text.
const ERASED: &str = "[erased]";
/// Shorter names are parts of other words.
const SHORTEST_NAME: usize = 4;

impl Session {
    fn has_customer(&self) -> bool {
        let Customer { name, email, phone, .. } = &self.payment.customer;
        name.is_some() || email.is_some() || phone.is_some()
    }

    /// Why the payment still needs its customer's data.
    pub fn needs_customer(&self) -> Option<&'static str> {
        [
            (self.payment.raw_status.is_open(), "it is open"),
            (self.pending_refund.is_some(), "a refund is in progress"),
            (self.needs_manual_settlement(), "a refund waits for manual settlement"),
            (self.open_disputes().next().is_some(), "a dispute is open"),
            (self.needs_manual_review(), "it needs manual review"),
        ]
        .into_iter()
        .find_map(|(is_so, why)| is_so.then_some(why))
    }

    /// Since when the customer's data may be erased; `None` if there is none, or if the payment needs it.
    pub fn erasable_since(&self) -> Option<Timestamp> {
        (self.has_customer() && self.needs_customer().is_none()).then_some(self.payment.updated_at)
    }

    /// The next version, without the customer's data. What the server wrote about the payment no longer quotes it.
    pub fn erased(&self, policy: ErasePolicy) -> Self {
        let mut next = self.next();
        let values = values_of(&self.payment.customer);
        next.payment.erase_customer(policy.metadata, policy.lines);
        let scrub = |text: &mut String| values.iter().for_each(|value| *text = text.replace(value, ERASED));
        let scrub_attempt = |attempt: &mut GatewayAttempt| {
            attempt.failure.iter_mut().chain(&mut attempt.paid_url).for_each(scrub);
            scrub(&mut attempt.customer_url);
        };
        next.attempt.iter_mut().chain(next.ended_attempts.iter_mut().map(|it| &mut it.attempt)).for_each(scrub_attempt);
        next.moves.iter_mut().for_each(|it| scrub(&mut it.words));
        next.settlements.iter_mut().for_each(|it| scrub(&mut it.reference));
        if let Some(review) = &mut next.review {
            scrub(&mut review.what);
            review.resolved.iter_mut().for_each(|it| scrub(&mut it.note));
        }
        next
    }
}

/// The customer's values and their normal forms, the longest first.
fn values_of(customer: &Customer) -> Vec<String> {
    let Customer { name, email, phone, .. } = customer;
    let normal = [email.as_deref().and_then(Lookup::email), phone.as_deref().and_then(Lookup::phone)];
    let name = name.iter().filter(|name| name.chars().count() >= SHORTEST_NAME);
    let mut values: Vec<String> = name.chain(email).chain(phone).cloned().collect();
    values.extend(normal.into_iter().flatten().map(|lookup| lookup.value));
    values.retain(|value| !value.is_empty());
    values.sort_by_key(|value| std::cmp::Reverse(value.len()));
    values
}

/// The payment in an event's data or in a stored response, and where it is.
enum About {
    Itself(Payment),
    /// As the data of a demo session's event.
    Wrapped(Wrapped),
    /// In the event that a delivery sends.
    Sent(Delivery, Sent, Box<About>),
}

#[derive(Serialize, Deserialize)]
struct Wrapped {
    event: RawJson,
    payment: Payment,
}

#[derive(Serialize, Deserialize)]
struct Sent {
    id: RawJson,
    event: RawJson,
    created_at: RawJson,
    data: RawJson,
}

impl About {
    fn read(json: &RawJson) -> Option<Self> {
        json.parse().map(Self::Itself).or_else(|_| json.parse().map(Self::Wrapped)).ok().or_else(|| {
            let delivery: Delivery = json.parse().ok()?;
            let sent: Sent = delivery.payload.parse().ok()?;
            let about = Self::read(&sent.data)?;
            Some(Self::Sent(delivery, sent, Box::new(about)))
        })
    }

    fn payment(&self) -> &Payment {
        match self {
            Self::Itself(payment) | Self::Wrapped(Wrapped { payment, .. }) => payment,
            Self::Sent(_, _, about) => about.payment(),
        }
    }

    fn erased(self, policy: ErasePolicy) -> Result<RawJson, serde_json::Error> {
        match self {
            Self::Itself(mut payment) => {
                payment.erase_customer(policy.metadata, policy.lines);
                RawJson::of(&payment)
            }
            Self::Wrapped(mut wrapped) => {
                wrapped.payment.erase_customer(policy.metadata, policy.lines);
                RawJson::of(&wrapped)
            }
            Self::Sent(mut delivery, mut sent, about) => {
                sent.data = about.erased(policy)?;
                delivery.payload = RawJson::of(&sent)?;
                delivery.response_body = None;
                RawJson::of(&delivery)
            }
        }
    }
}

/// The payment that an event's data or a stored response shows, alone or in a delivery.
pub fn payment_shown(json: &RawJson) -> Option<PaymentId> {
    Some(About::read(json)?.payment().id.clone())
}

/// An event's data or a stored response without the customer's data. JSON that shows no payment stays.
pub fn erased_json(json: &RawJson, policy: ErasePolicy) -> Result<RawJson, serde_json::Error> {
    About::read(json).map_or_else(|| Ok(json.clone()), |about| about.erased(policy))
}

#[cfg(test)]
mod tests {
    use payments_core::{Metadata, RawStatus, TimelineKind};

    use super::*;
    use crate::domain::{ManualReview, samples};

    fn session() -> Session {
        let mut session = samples::session();
        session.payment.raw_status = RawStatus::Failed;
        session.payment.customer.name = Some("Rina Akter".into());
        session.payment.customer.email = Some("Rina@Example.org".into());
        session.payment.customer.phone = Some("+880 1712-345678".into());
        session.payment.metadata = Metadata::new(r#"{"to": "Rina Akter", "n": 1.10}"#).unwrap();
        session.payment.description = Some("for Rina Akter".into());
        session.record(samples::at(1), TimelineKind::GatewayError, "no wallet 01712345678 of rina@example.org");
        session.attempt = Some(GatewayAttempt { failure: Some("+880 1712-345678?".into()), ..samples::attempt("a") });
        session
    }

    #[test]
    fn an_erased_session_quotes_its_customer_nowhere_and_keeps_the_rest() {
        let before = session();
        let all = ErasePolicy { metadata: true, lines: true };
        let after = before.erased(all);
        let text = serde_json::to_string(&after).unwrap();
        for value in ["Rina", "rina", "1712", "ample.org"] {
            assert!(!text.contains(value), "{value} in {text}");
        }
        assert_eq!(after.moves[0].words, "no wallet [erased] of [erased]");
        assert_eq!((after.version, &after.payment.id), (before.version + 1, &before.payment.id));
        assert_eq!(after.payment.amount, before.payment.amount);
        let some = before.erased(ErasePolicy::default()).payment;
        assert_eq!(some.metadata.as_str(), r#"{"to": "Rina Akter", "n": 1.10}"#);
        assert_eq!(some.description.as_deref(), Some("for Rina Akter"));
        assert_eq!(before.erased(all).erased(all).payment, after.payment);
    }

    #[test]
    fn data_is_erased_alone_wrapped_and_in_a_delivery() {
        let payment = session().payment;
        let json = RawJson::of(&payment).unwrap();
        let wrapped = RawJson::new(format!(r#"{{"event":"payment.created","payment":{}}}"#, json.as_str())).unwrap();
        let delivery = |data: &RawJson| {
            let sent = format!(r#"{{"id":"evt_1","event":"x","created_at":"y","data":{}}}"#, data.as_str());
            let delivery = serde_json::json!({"id": "del_1", "webhookId": "wh_1", "developerId": "dev_1", "event": "x",
                "payload": {}, "attempts": 0, "status": "pending", "createdAt": samples::at(0)});
            let mut delivery: Delivery = serde_json::from_value(delivery).unwrap();
            delivery.payload = RawJson::new(sent).unwrap();
            RawJson::of(&delivery).unwrap()
        };
        for json in [json.clone(), wrapped.clone(), delivery(&json), delivery(&wrapped)] {
            assert_eq!(payment_shown(&json).as_ref(), Some(&payment.id));
            let erased = erased_json(&json, ErasePolicy::default()).unwrap();
            assert!(!erased.as_str().contains("ample.org") && erased.as_str().contains(r#""n": 1.10"#), "{erased:?}");
            assert_eq!(erased_json(&erased, ErasePolicy::default()).unwrap(), erased);
        }
        let other = RawJson::new(r#"{"id": "wh_1"}"#).unwrap();
        assert_eq!(
            (payment_shown(&other), erased_json(&other, ErasePolicy::default()).unwrap()),
            (None, other.clone())
        );
    }

    #[test]
    fn a_payment_that_needs_its_customer_says_why() {
        let ended = session();
        assert_eq!((ended.needs_customer(), ended.erasable_since()), (None, Some(ended.payment.updated_at)));
        let mut open = ended.clone();
        open.payment.raw_status = RawStatus::Created;
        let review = ManualReview { what: String::new(), found_at: samples::at(1), resolved: None };
        let reviewed = Session { review: Some(review), ..ended.clone() };
        for (session, why) in [(open, "it is open"), (reviewed, "it needs manual review")] {
            assert_eq!((session.needs_customer(), session.erasable_since()), (Some(why), None));
        }
        assert_eq!(ended.erased(ErasePolicy::default()).erasable_since(), None);
    }
}
