//! Stripe's disputes.
//!
//! | status | meaning |
//! |---|---|
//! | `warning_needs_response`, `warning_under_review` | a bank inquires, and no money moves; it may become a chargeback |
//! | `warning_closed` | the inquiry ended without a chargeback |
//! | `needs_response`, `under_review` | a chargeback; the money is withdrawn |
//! | `won` | the money comes back |
//! | `lost` | the money is gone |
//! | another | open |

use payments_core::{Amount, Currency, DisputeStatus, PaymentId, Timestamp};
use serde::Deserialize;
use serde_json::Value;

use super::list::{Item, brief, payment_named};
use crate::{domain::GatewayDispute, gateway::contract::Listed};

#[derive(Debug, Deserialize)]
pub(super) struct StripeDispute {
    id: String,
    amount: u64,
    currency: String,
    reason: Option<String>,
    status: String,
    #[serde(default)]
    evidence_details: EvidenceDetails,
    /// The rows of Stripe's books: withdrawals are negative, reinstatements positive.
    #[serde(default)]
    balance_transactions: Vec<Row>,
    /// The id, or the whole object if the request asked for it.
    #[serde(default)]
    payment_intent: Value,
    #[serde(default)]
    metadata: Value,
}

#[derive(Debug, Default, Deserialize)]
struct EvidenceDetails {
    /// In Unix seconds. 0 or missing if the merchant cannot respond.
    due_by: Option<i64>,
}

#[derive(Debug, Deserialize)]
struct Row {
    amount: i64,
    /// The currency of the account that Stripe settles to.
    currency: String,
}

impl StripeDispute {
    pub(super) fn read(&self) -> GatewayDispute {
        let currency = |code: &str| code.to_ascii_uppercase().parse::<Currency>().ok();
        let own = currency(&self.currency);
        let rows = &self.balance_transactions;
        let sum = |is_of: fn(&i64) -> bool| {
            let minor = rows.iter().map(|row| row.amount).filter(is_of).map(i64::unsigned_abs);
            Amount::from_minor(minor.fold(0, u64::saturating_add))
        };
        let intent = if self.payment_intent.is_object() { &self.payment_intent["id"] } else { &self.payment_intent };
        let due = self.evidence_details.due_by.filter(|seconds| *seconds > 0);
        GatewayDispute {
            reference: self.id.clone(),
            transaction: intent.as_str().map(str::to_owned),
            amount: Amount::from_minor(self.amount),
            currency: own.filter(|_| rows.iter().all(|row| currency(&row.currency) == own)),
            reason: self.reason.as_deref().map(brief),
            status: match self.status.as_str() {
                "warning_needs_response" | "warning_under_review" => DisputeStatus::Warning,
                "needs_response" => DisputeStatus::NeedsResponse,
                "warning_closed" | "won" => DisputeStatus::Won,
                "lost" => DisputeStatus::Lost,
                _ => DisputeStatus::UnderReview,
            },
            evidence_due_by: due.and_then(|it| Timestamp::from_millis(it.checked_mul(1_000)?).ok()),
            withdrawn: sum(|minor| *minor < 0),
            reinstated: sum(|minor| *minor > 0),
        }
    }
}

impl Item for StripeDispute {
    const LIST: &'static str = "disputes";
    const CALL: &'static str = "list disputes";
    const EXPANDED: &'static str = "data.payment_intent";

    fn id(&self) -> &str {
        &self.id
    }

    fn listed(&self) -> Option<(PaymentId, Listed)> {
        Some((payment_named(&self.metadata, &self.payment_intent)?, Listed::Dispute(self.read())))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(changes: &Value) -> GatewayDispute {
        let mut dispute = json!({
            "id": "du_1", "amount": 2_000, "currency": "usd", "reason": "fraudulent", "status": "needs_response",
            "evidence_details": {"due_by": 1_700_000_000}, "balance_transactions": [],
        });
        dispute.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        serde_json::from_value::<StripeDispute>(dispute).unwrap().read()
    }

    #[test]
    fn each_status_of_a_dispute_has_a_meaning_and_an_unknown_one_is_open() {
        for (status, expected) in [
            ("warning_needs_response", DisputeStatus::Warning),
            ("warning_under_review", DisputeStatus::Warning),
            ("warning_closed", DisputeStatus::Won),
            ("needs_response", DisputeStatus::NeedsResponse),
            ("under_review", DisputeStatus::UnderReview),
            ("won", DisputeStatus::Won),
            ("lost", DisputeStatus::Lost),
            ("appeal_needs_response", DisputeStatus::UnderReview),
            ("", DisputeStatus::UnderReview),
        ] {
            assert_eq!(read(&json!({"status": status})).status, expected, "{status}");
        }
    }

    #[test]
    fn the_rows_of_a_dispute_say_what_was_withdrawn_and_reinstated() {
        let row = |amount: i64, currency: &str| json!({"amount": amount, "currency": currency, "fee": 1_500});
        for (rows, withdrawn, reinstated, currency) in [
            (vec![], 0, 0, Some(Currency::Usd)),
            (vec![row(-2_000, "usd")], 2_000, 0, Some(Currency::Usd)),
            (vec![row(2_000, "usd"), row(-2_000, "usd")], 2_000, 2_000, Some(Currency::Usd)),
            (vec![row(-2_000, "usd"), row(500, "usd"), row(-1, "usd")], 2_001, 500, Some(Currency::Usd)),
            (vec![row(-1_850, "eur")], 1_850, 0, None),
            (vec![row(i64::MIN, "usd"), row(i64::MIN, "usd")], u64::MAX, 0, Some(Currency::Usd)),
        ] {
            let dispute = read(&json!({"balance_transactions": rows}));
            assert_eq!((dispute.withdrawn.as_minor(), dispute.reinstated.as_minor()), (withdrawn, reinstated));
            assert_eq!(dispute.currency, currency);
        }
    }

    #[test]
    fn a_dispute_names_the_transaction_by_its_id_or_as_a_whole() {
        let of = |intent: Value| read(&json!({"payment_intent": intent})).transaction;
        assert_eq!(of(json!("pi_1")).as_deref(), Some("pi_1"));
        assert_eq!(of(json!({"id": "pi_1", "metadata": {}})).as_deref(), Some("pi_1"));
        assert_eq!(of(json!(null)), None);
        let long = read(&json!({"reason": "x".repeat(10_000)}));
        assert_eq!(long.reason, Some("x".repeat(200)));
    }

    #[test]
    fn a_date_for_evidence_may_be_missing() {
        for (details, expected) in [
            (json!({"due_by": 1_700_000_000}), Some(1_700_000_000_000)),
            (json!({"due_by": 0}), None),
            (json!({"due_by": i64::MAX}), None),
            (json!({"due_by": null}), None),
            (json!({}), None),
        ] {
            let due = read(&json!({"evidence_details": details})).evidence_due_by;
            assert_eq!(due.map(Timestamp::as_millis), expected, "{details}");
        }
    }
}
