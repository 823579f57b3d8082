//! Stripe's balance transactions: the rows of its books, with what it kept of each.

use payments_core::PaymentId;
use serde::Deserialize;
use serde_json::Value;

use super::list::{Item, payment_named};
use crate::{domain::CostRow, gateway::contract::Listed};

#[derive(Debug, Deserialize)]
pub(super) struct BalanceTransaction {
    id: String,
    /// What Stripe kept. Negative if it returned some of it.
    fee: i64,
    /// The currency of the account that Stripe settles to.
    currency: String,
    /// The whole charge, refund or dispute.
    #[serde(default)]
    source: Value,
}

impl Item for BalanceTransaction {
    const LIST: &'static str = "balance_transactions";
    const CALL: &'static str = "list balance transactions";
    const EXPANDED: &'static str = "data.source.payment_intent";

    fn id(&self) -> &str {
        &self.id
    }

    fn listed(&self) -> Option<(PaymentId, Listed)> {
        let Self { id, fee, currency, source } = self;
        let payment = payment_named(&source["metadata"], &source["payment_intent"])?;
        let currency = currency.to_ascii_uppercase().parse().ok();
        Some((payment, Listed::Cost(CostRow { id: id.clone(), minor: *fee, currency })))
    }
}
