//! Signed Stripe events: which payment or refund each one is about.
//!
//! Stripe repeats an event for days until it is accepted. So every verified event is accepted, even one of an unknown kind or
//! shape, which is about no payment of this server.

use payments_core::PaymentId;
use serde::Deserialize;
use serde_json::Value;

const WATCHED: [&str; 6] = [
    "checkout.session.completed",
    "checkout.session.async_payment_succeeded",
    "checkout.session.async_payment_failed",
    "checkout.session.expired",
    "refund.updated",
    "refund.failed",
];

/// The payment or refund that an event is about.
#[derive(Debug, PartialEq, Eq)]
pub struct EventAbout {
    pub payment: PaymentId,
    /// Stripe's id of the refund, if the event is about a refund.
    pub refund: Option<String>,
}

impl EventAbout {
    /// Reads an event's body. `None` if it is not about a payment of this server.
    pub(super) fn read(body: &[u8]) -> Option<Self> {
        let event: Value = serde_json::from_slice(body).ok()?;
        let kind = event.get("type")?.as_str().filter(|kind| WATCHED.contains(kind))?;
        let object = event.pointer("/data/object")?;
        let payment = object.pointer("/metadata/payment_id")?.as_str()?.parse().ok()?;
        let refund = match kind.starts_with("refund.") {
            true => Some(object.get("id")?.as_str()?.to_owned()),
            false => None,
        };
        Some(Self { payment, refund })
    }
}

/// The id of an event, which identifies duplicates.
pub(super) fn id_of(body: &[u8]) -> Option<&str> {
    #[derive(Deserialize)]
    struct Identified<'e> {
        id: &'e str,
    }
    serde_json::from_slice::<Identified<'_>>(body).ok().map(|event| event.id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_about_a_payment_or_a_refund_of_this_server_or_about_nothing() {
        for (body, expected) in [
            (
                r#"{"type":"checkout.session.completed","data":{"object":{"id":"cs_1","metadata":{"payment_id":"pay_1"}}}}"#,
                Some(None),
            ),
            // The session's id is not needed, because the payment has it.
            (
                r#"{"type":"checkout.session.expired","data":{"object":{"metadata":{"payment_id":"pay_1"}}}}"#,
                Some(None),
            ),
            (
                r#"{"type":"checkout.session.expired","data":{"object":{"id":7,"metadata":{"payment_id":"pay_\u0031"}}}}"#,
                Some(None),
            ),
            (
                r#"{"type":"refund.failed","data":{"object":{"id":"re_1","metadata":{"payment_id":"pay_1"}}}}"#,
                Some(Some("re_1")),
            ),
            (r#"{"type":"refund.failed","data":{"object":{"metadata":{"payment_id":"pay_1"}}}}"#, None),
            (r#"{"type":"refund.failed","data":{"object":{"id":null,"metadata":{"payment_id":"pay_1"}}}}"#, None),
            (r#"{"type":"refund.failed","data":{"object":{"id":"re_1","metadata":null}}}"#, None),
            (r#"{"type":"refund.failed","data":{"object":{"id":"re_1","metadata":{"payment_id":"../x"}}}}"#, None),
            (r#"{"type":"invoice.paid","data":{"object":{"id":"in_1","metadata":{"payment_id":"pay_1"}}}}"#, None),
            (r#"{"type":"v1.billing.meter.no_meter_found","related_object":{"id":"m_1"}}"#, None),
            (r#"{"type":["refund.failed"],"data":[]}"#, None),
            ("[]", None),
            ("", None),
            ("\u{feff}{}", None),
        ] {
            let expected = expected
                .map(|refund| EventAbout { payment: "pay_1".parse().unwrap(), refund: refund.map(str::to_owned) });
            assert_eq!(EventAbout::read(body.as_bytes()), expected, "{body}");
        }
    }
}
