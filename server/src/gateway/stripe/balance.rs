//! Stripe's balance transactions: the rows of its books, with what it kept of each.

use payments_core::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use super::{
    Stripe,
    refund::{List, payment_named},
};
use crate::{
    domain::CostRow,
    gateway::{contract::ListPart, error::GatewayError},
};

#[derive(Debug, Deserialize)]
struct BalanceTransaction {
    id: String,
    /// What Stripe kept. Negative if it returned some of it.
    fee: i64,
    /// The currency of the account that Stripe settles to.
    currency: String,
    /// The whole charge, refund or dispute.
    #[serde(default)]
    source: Value,
}

impl Stripe {
    pub(super) async fn cost_part(
        &self,
        since: Timestamp,
        after: Option<&str>,
    ) -> Result<ListPart<CostRow>, GatewayError> {
        let since = since.as_unix_seconds().to_string();
        let query = [("created[gte]", since.as_str()), ("expand[]", "data.source.payment_intent")];
        let List { data, has_more } =
            self.list::<BalanceTransaction>("list balance transactions", "balance_transactions", &query, after).await?;
        let next = data.last().filter(|_| has_more).map(|row| row.id.clone());
        let item = |BalanceTransaction { id, fee, currency, source }| {
            let payment = payment_named(&source["metadata"], &source["payment_intent"]);
            (payment, CostRow { id, minor: fee, currency: currency.to_ascii_uppercase().parse().ok() })
        };
        Ok(ListPart { items: data.into_iter().map(item).collect(), next })
    }
}
