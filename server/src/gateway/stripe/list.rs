//! Stripe's lists.

use payments_core::{PaymentId, Timestamp};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

use super::Stripe;
use crate::gateway::{
    contract::{ListPart, Listed},
    error::GatewayError,
};

/// How many pages of a payment's items are read.
const PAGES: usize = 10;

/// A page of a list.
#[derive(Debug, Deserialize)]
pub(super) struct Page<T> {
    pub(super) data: Vec<T>,
    pub(super) has_more: bool,
}

/// An object of a list that the server reads again and again.
pub(super) trait Item: DeserializeOwned {
    /// The list's path, such as `refunds`.
    const LIST: &'static str;
    /// The call in logs.
    const CALL: &'static str;
    /// The field whose whole object names the payment.
    const EXPANDED: &'static str;

    fn id(&self) -> &str;
    /// What the server learns from it, and its payment. `None` if it is of no payment of this server.
    fn listed(&self) -> Option<(PaymentId, Listed)>;
}

/// How much of a reason is kept.
const MAX_REASON_CHARS: usize = 200;

/// As much of Stripe's reason as is kept.
pub(super) fn brief(reason: &str) -> String {
    reason.chars().take(MAX_REASON_CHARS).collect()
}

/// The payment that an object's metadata or its payment intent names.
pub(super) fn payment_named(metadata: &Value, payment_intent: &Value) -> Option<PaymentId> {
    let named = |metadata: &Value| metadata["payment_id"].as_str().and_then(|id| id.parse().ok());
    named(metadata).or_else(|| named(&payment_intent["metadata"]))
}

impl Stripe {
    /// A page of a list, after an object.
    pub(super) async fn page<T: DeserializeOwned>(
        &self,
        call: &'static str,
        list: &str,
        query: &[(&str, &str)],
        after: Option<&str>,
    ) -> Result<Page<T>, GatewayError> {
        let query = url::form_urlencoded::Serializer::new(String::new())
            .extend_pairs(query)
            .append_pair("limit", "100")
            .extend_pairs(after.map(|after| ("starting_after", after)))
            .finish();
        let page = self.call(call, self.client.http.get(self.url(&format!("{list}?{query}")))).await?;
        page.map_err(|error| self.client.unanswered(&error.to_string()))
    }

    /// All of a payment intent's items, newest first.
    pub(super) async fn all_of<I: Item>(&self, intent: &str) -> Result<Vec<I>, GatewayError> {
        let mut found: Vec<I> = Vec::new();
        for _ in 0..PAGES {
            let after = found.last().map(|item| item.id().to_owned());
            let query = [("payment_intent", intent)];
            let Page { data, has_more } = self.page(I::CALL, I::LIST, &query, after.as_deref()).await?;
            found.extend(data);
            if !has_more {
                return Ok(found);
            }
        }
        Err(self.client.unanswered(&format!("the payment has more {} than this server reads", I::LIST)))
    }

    /// A part of a list since a time.
    pub(super) async fn part<I: Item>(&self, since: Timestamp, after: Option<&str>) -> Result<ListPart, GatewayError> {
        let since = since.as_unix_seconds().to_string();
        let query = [("created[gte]", since.as_str()), ("expand[]", I::EXPANDED)];
        let Page { data, has_more } = self.page::<I>(I::CALL, I::LIST, &query, after).await?;
        let next = data.last().filter(|_| has_more).map(|last| last.id().to_owned());
        Ok(ListPart { items: data.iter().filter_map(Item::listed).collect(), next })
    }
}
