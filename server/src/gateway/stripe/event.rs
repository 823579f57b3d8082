//! Signed Stripe events: what each one is about.
//!
//! Stripe repeats an event for days until it is accepted. So every verified event is accepted, even one of an unknown kind or
//! shape, which is about no payment of this server.

use serde::Deserialize;
use serde_json::Value;

use crate::gateway::notice::{NoticeSubject, PaymentOf};

/// Reads what an event is about from its body. `None` if it is about nothing that this server has.
pub(super) fn subject_of(body: &[u8]) -> Option<NoticeSubject> {
    let event: Value = serde_json::from_slice(body).ok()?;
    let kind = event.get("type")?.as_str()?;
    let object = event.pointer("/data/object")?;
    let named = || object.pointer("/metadata/payment_id").and_then(Value::as_str).and_then(|id| id.parse().ok());
    let of = || {
        let intent = || object.get("payment_intent").and_then(Value::as_str).map(str::to_owned);
        named().map(PaymentOf::Payment).or_else(|| Some(PaymentOf::Transaction(intent()?)))
    };
    match kind {
        "checkout.session.completed"
        | "checkout.session.async_payment_succeeded"
        | "checkout.session.async_payment_failed"
        | "checkout.session.expired" => Some(NoticeSubject::Attempt(PaymentOf::Payment(named()?))),
        // The request for a refund of this server handles its creation.
        "refund.created" if object.pointer("/metadata/refund_id").is_some() => None,
        "refund.created" | "refund.updated" | "refund.failed" | "charge.refund.updated" | "charge.refunded" => {
            Some(NoticeSubject::Refunds { of: of()?, has_failed: kind == "refund.failed" })
        }
        // One opened, changed, closed, or moved money.
        kind if kind.starts_with("charge.dispute.") => Some(NoticeSubject::Disputes(of()?)),
        _ => None,
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
    use payments_core::PaymentId;

    use super::*;

    #[test]
    fn an_event_is_about_a_session_refunds_or_disputes_of_this_server_or_about_nothing() {
        let pay = || "pay_1".parse::<PaymentId>().unwrap();
        let session = || Some(NoticeSubject::Attempt(PaymentOf::Payment(pay())));
        let refunds = |of, has_failed| Some(NoticeSubject::Refunds { of, has_failed });
        let intent = || PaymentOf::Transaction("pi_1".into());
        for (kind, object, expected) in [
            ("checkout.session.completed", r#"{"id":"cs_1","metadata":{"payment_id":"pay_1"}}"#, session()),
            // The session's id is not needed, because the payment has it.
            ("checkout.session.expired", r#"{"metadata":{"payment_id":"pay_1"}}"#, session()),
            ("checkout.session.expired", r#"{"id":7,"metadata":{"payment_id":"pay_\u0031"}}"#, session()),
            ("checkout.session.expired", r#"{"payment_intent":"pi_1","metadata":{}}"#, None),
            (
                "refund.failed",
                r#"{"id":"re_1","metadata":{"payment_id":"pay_1"}}"#,
                refunds(PaymentOf::Payment(pay()), true),
            ),
            ("refund.failed", r#"{"id":"re_1","payment_intent":"pi_1","metadata":{}}"#, refunds(intent(), true)),
            ("refund.created", r#"{"id":"re_1","payment_intent":"pi_1","metadata":null}"#, refunds(intent(), false)),
            ("refund.created", r#"{"payment_intent":"pi_1","metadata":{"refund_id":"ref_1"}}"#, None),
            ("charge.refunded", r#"{"id":"ch_1","payment_intent":"pi_1","metadata":{}}"#, refunds(intent(), false)),
            ("charge.refunded", r#"{"id":"ch_1","payment_intent":null,"metadata":{}}"#, None),
            ("refund.updated", r#"{"id":"re_1","metadata":{"payment_id":"../x"}}"#, None),
            (
                "charge.dispute.created",
                r#"{"id":"du_1","payment_intent":"pi_1","metadata":{}}"#,
                Some(NoticeSubject::Disputes(intent())),
            ),
            ("charge.dispute.funds_withdrawn", r#"{"id":"du_1","payment_intent":null,"metadata":{}}"#, None),
            ("invoice.paid", r#"{"id":"in_1","metadata":{"payment_id":"pay_1"}}"#, None),
        ] {
            let body = format!(r#"{{"type":"{kind}","data":{{"object":{object}}}}}"#);
            assert_eq!(subject_of(body.as_bytes()), expected, "{body}");
        }
        for body in [
            r#"{"type":"v1.billing.meter.no_meter_found","related_object":{"id":"m_1"}}"#,
            r#"{"type":["refund.failed"],"data":[]}"#,
            "[]",
            "",
            "\u{feff}{}",
        ] {
            assert_eq!(subject_of(body.as_bytes()), None, "{body}");
        }
    }
}
