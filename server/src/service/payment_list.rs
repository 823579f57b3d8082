//! The list of payments: numbered pages, or parts selected by filters and a cursor.

use payments_core::{
    Currency, Customer, ErrorCode, Invalid, Page, PaymentId, PaymentPage, PaymentQuery, Status, Timestamp,
};
use serde::Deserialize;

use super::{Caller, Result, Service, ServiceError, page_bytes::fitting};
use crate::domain::{Lookup, LookupKind, lookups_of};
use crate::gateway::registry;
use crate::store::{PaymentJson, PaymentSource, PaymentsFrom, StoreError};

/// How many payments a request examines at most, even if few match its filter.
const MAX_EXAMINED: usize = 1000;
/// How many payments with one name at a gateway a search examines.
const MAX_NAMED: usize = 100;
/// How many of the examined payments are in memory at a time.
const AT_A_TIME: usize = 100;

/// The fields of a payment that filters compare.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Facts {
    pub(super) id: PaymentId,
    status: Status,
    currency: Currency,
    created_at: Timestamp,
    merchant_transaction_id: String,
    customer: Customer,
}

/// The filters of a query, except its times: every source applies those.
struct Filters<'q> {
    query: &'q PaymentQuery,
    caller: &'q Caller,
    lookups: Vec<Lookup>,
    /// Whether a filter has a value that matches no payment.
    is_empty: bool,
}

impl<'q> Filters<'q> {
    fn of(query: &'q PaymentQuery, caller: &'q Caller) -> Self {
        let values = [
            query.merchant_transaction_id.as_deref().map(Lookup::reference),
            query.customer_email.as_deref().map(Lookup::email),
            query.customer_phone.as_deref().map(Lookup::phone),
        ];
        let is_empty = values.iter().flatten().any(Option::is_none);
        Self { query, caller, lookups: values.into_iter().flatten().flatten().collect(), is_empty }
    }

    /// The list to read, probably the shortest, and whether all its payments match the filters.
    fn source(&self) -> (PaymentSource, bool) {
        let excludes_some = self.query.currency.is_some() || self.caller.only_its_app;
        match (self.lookups.first(), &self.query.status) {
            (Some(lookup), status) => {
                let is_exact = self.lookups.len() == 1 && status.is_none() && !excludes_some;
                (PaymentSource::Lookup(lookup.clone()), is_exact)
            }
            (None, Some(status)) => (PaymentSource::Status(status.clone()), !excludes_some),
            (None, None) => (PaymentSource::All, !excludes_some),
        }
    }

    fn include(&self, payment: &PaymentJson) -> Result<bool, StoreError> {
        let Facts { id, status, currency, created_at, merchant_transaction_id, customer } = facts(payment)?;
        let query = self.query;
        let own: Vec<_> = lookups_of(&id, &merchant_transaction_id, &customer).collect();
        let is_id = |lookup: &Lookup| lookup.kind == LookupKind::Reference && lookup.value == merchant_transaction_id;
        Ok(self.caller.sees(&payment.0)
            && self.lookups.iter().all(|lookup| own.contains(lookup) || is_id(lookup))
            && query.status.as_ref().is_none_or(|wanted| *wanted == status)
            && query.currency.is_none_or(|wanted| wanted == currency)
            && query.created_after.is_none_or(|time| created_at >= time)
            && query.created_before.is_none_or(|time| created_at < time))
    }
}

impl Service {
    /// A page of a developer's payments, newest first. If it ends early because of its length, it says where to go on.
    pub async fn payments(&self, caller: &Caller, query: &PaymentQuery) -> Result<PaymentPage<PaymentJson>> {
        if caller.only_its_app && query.page.page() > 1 {
            let error = "cannot be combined with a key of one app alone; go on with after";
            return Err(Invalid::field("page", ErrorCode::FieldInvalid, error).into());
        }
        // The store keeps no count of an app's payments.
        let mut found = match query.is_page() && !caller.only_its_app {
            true => {
                let found = self.store.payments(&caller.scope, query.status.as_ref(), query.page).await?;
                let Page { items, total, page, limit, .. } = found;
                PaymentPage::numbered(items, total, page, limit)
            }
            false if query.search.is_some() => self.search_payments(caller, query).await?,
            false => self.part_of_payments(caller, query).await?,
        };
        if let Some(fits) = fitting(found.items.iter().map(|payment| payment.0.len())) {
            found.items.truncate(fits);
            found.has_more = Some(true);
            found.next = found.items.last().map(facts).transpose()?.map(|facts| facts.id);
        }
        Ok(found)
    }

    /// The payments that a text names: by id or gateway's transaction; else those of the first filter that finds any.
    async fn search_payments(&self, caller: &Caller, query: &PaymentQuery) -> Result<PaymentPage<PaymentJson>> {
        let mut page = PaymentPage::part(Vec::new(), query.page.limit(), false, query.after.clone());
        if query.after.is_none() {
            let filters = Filters::of(query, caller);
            for id in self.payments_named(query.search.as_deref().unwrap_or_default().trim()).await? {
                if let Some(json) = self.store.payment_json(&caller.scope, &id).await?
                    && filters.include(&json)?
                {
                    page.items.push(json);
                }
            }
        }
        for narrowed in query.searches() {
            if !page.items.is_empty() || page.has_more == Some(true) {
                break;
            }
            page = self.part_of_payments(caller, &narrowed).await?;
        }
        Ok(page)
    }

    /// The payments of any scope that have this id or this name at a gateway, newest first.
    async fn payments_named(&self, name: &str) -> Result<Vec<PaymentId>> {
        if let Ok(id) = name.parse::<PaymentId>() {
            return Ok(vec![id]);
        }
        let mut found = Vec::new();
        for gateway in registry() {
            found.extend(self.store.payments_of_transaction(gateway.name, name).await?);
        }
        found.sort_by_key(|id| std::cmp::Reverse(id.created_at()));
        found.truncate(MAX_NAMED);
        Ok(found)
    }

    async fn part_of_payments(&self, caller: &Caller, query: &PaymentQuery) -> Result<PaymentPage<PaymentJson>> {
        if let Some(after) = &query.after {
            self.store.payment_json(&caller.scope, after).await?.ok_or_else(no_such_payment)?;
        }
        let filters = Filters::of(query, caller);
        let limit = query.page.limit();
        let mut page = PaymentPage::part(Vec::new(), limit, false, query.after.clone());
        if filters.is_empty {
            return Ok(page);
        }
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let (source, is_exact) = filters.source();
        // A source also lists some payments just outside the times.
        let has_times = query.created_after.is_some() || query.created_before.is_some();
        let at_a_time = if is_exact && !has_times { limit + 1 } else { AT_A_TIME };
        let mut examined = 0;
        'list: loop {
            let from = PaymentsFrom {
                after: page.next.clone(),
                created_after: query.created_after,
                created_before: query.created_before,
            };
            let found = self.store.payments_from(&caller.scope, &source, &from, at_a_time).await?;
            let is_last = found.len() < at_a_time;
            for (id, json) in found {
                if page.items.len() == limit || examined == MAX_EXAMINED {
                    page.has_more = Some(true);
                    break 'list;
                }
                examined += 1;
                page.next = Some(id);
                if filters.include(&json)? {
                    page.items.push(json);
                }
            }
            if is_last {
                self.add_by_id(caller, &filters, &mut page, limit).await?;
                break;
            }
        }
        Ok(page)
    }

    /// Adds the payment whose id is the reference. No index has it. Payments that were given this reference are newer.
    async fn add_by_id(
        &self,
        caller: &Caller,
        filters: &Filters<'_>,
        page: &mut PaymentPage<PaymentJson>,
        limit: usize,
    ) -> Result<()> {
        let reference = filters.query.merchant_transaction_id.as_ref();
        let Some(id) = reference.and_then(|text| text.parse::<PaymentId>().ok()) else { return Ok(()) };
        // The list is already past this payment.
        if page.next.as_ref().is_some_and(|last| *last == id || last.created_at() < id.created_at()) {
            return Ok(());
        }
        let Some(json) = self.payment_with_reference(caller, &id).await? else { return Ok(()) };
        if !filters.include(&json)? {
            return Ok(());
        }
        if page.items.len() == limit {
            page.has_more = Some(true);
        } else {
            page.items.push(json);
            page.next = Some(id);
        }
        Ok(())
    }

    /// The payment whose reference is its id.
    async fn payment_with_reference(&self, caller: &Caller, id: &PaymentId) -> Result<Option<PaymentJson>, StoreError> {
        let found = self.store.payment_json(&caller.scope, id).await?;
        Ok(found.filter(|json| {
            let facts = serde_json::from_str::<Facts>(&json.0);
            facts.is_ok_and(|facts| facts.merchant_transaction_id == id.as_str())
        }))
    }

    /// The lookup of a new payment's unique reference. Refuses a reference that is the id of a payment without a reference.
    pub(super) async fn unique_reference(&self, caller: &Caller, reference: &str) -> Result<Option<Lookup>> {
        if let Ok(id) = reference.parse()
            && self.payment_with_reference(caller, &id).await?.is_some()
        {
            return Err(ServiceError::ReferenceUsed);
        }
        Ok(Lookup::reference(reference))
    }
}

pub(super) fn facts(payment: &PaymentJson) -> Result<Facts, StoreError> {
    serde_json::from_str(&payment.0).map_err(|error| StoreError::corrupt(b"payment", error))
}

fn no_such_payment() -> ServiceError {
    let error = "is the id of no payment of yours; without it the list begins anew";
    Invalid::field("after", ErrorCode::FieldInvalid, error).into()
}
