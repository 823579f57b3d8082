//! What is held on a customer: exports it, and erases it by the operator's command or when it is old.

use std::collections::{HashMap, HashSet};

use payments_core::{Environment, PaymentId, RawJson, Slot, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Directory, Result, Service, ServiceError, operator_text::invalid, records::Records};
use crate::{
    domain::{ErasePolicy, Lookup, Scope, Session},
    store::{Change, PaymentSource, PaymentWrite, PaymentsFrom, Write},
};

/// How many payments are erased or exported together.
const AT_ONCE: usize = 32;
/// How many payments a command's request handles at most; the command repeats it.
const MAX_A_REQUEST: usize = 256;
/// How many deliveries of a payment an export shows.
const MAX_DELIVERIES: usize = 200;
/// How often an erasure of payments that change meanwhile is tried.
const MAX_TRIES: usize = 8;
/// How many payments the worker reads at once.
const READ_AT_ONCE: usize = 256;

/// A customer of a workspace, named by a phone number or an e-mail address.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
pub struct CustomerName {
    pub workspace: String,
    #[serde(default)]
    pub phone: Option<String>,
    #[serde(default)]
    pub email: Option<String>,
}

/// A command about a customer.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "action", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum CustomerRequest {
    /// Exports a part of what is held, after a payment.
    Export {
        #[serde(flatten)]
        of: CustomerName,
        #[serde(default)]
        after: Option<PaymentId>,
    },
    /// Erases name, e-mail address and phone number of at most 256 payments.
    Erase {
        #[serde(flatten)]
        of: CustomerName,
        #[serde(flatten)]
        policy: ErasePolicy,
    },
}

/// The answer to a [`CustomerRequest`].
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged, rename_all_fields = "camelCase")]
pub enum CustomerReply {
    /// The JSON of each payment with everything about it, and the payment after which the next part begins.
    Held { held: Vec<String>, next: Option<PaymentId> },
    /// What was erased, and where copies remain.
    Erased { erased: Erased, remains: String },
}

/// How many of each were erased.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Erased {
    pub payments: usize,
    pub search_entries: usize,
    pub events: usize,
    pub deliveries: usize,
    pub stored_responses: usize,
    /// Payments that still need their customer's data, at most 100, and why.
    pub kept: Vec<(PaymentId, String)>,
    /// Whether more payments follow.
    pub has_more: bool,
}

const MAX_KEPT: usize = 100;

impl Erased {
    /// Adds the counts of another part.
    pub fn add(&mut self, other: Self) {
        self.payments += other.payments;
        self.search_entries += other.search_entries;
        self.events += other.events;
        self.deliveries += other.deliveries;
        self.stored_responses += other.stored_responses;
        self.has_more = other.has_more;
        // Each part names the kept payments anew.
        self.kept = other.kept;
    }
}

impl Service {
    /// Erases the customers' data of payments whose last change was before a time. It reads all payments made before then.
    pub(super) async fn erase_old_customers(&self, before: Timestamp) {
        // A damaged record of one slot does not keep the data of the others.
        let mut failed = None;
        for slot in Slot::all() {
            failed = self.erase_old_customers_of(slot, before).await.err().or(failed);
        }
        if let Some(error) = failed {
            tracing::error!(%error, "could not erase all old customers' data; trying again in an hour");
        }
    }

    async fn erase_old_customers_of(&self, slot: Slot, before: Timestamp) -> Result<()> {
        let mut after = None;
        loop {
            let (ids, next) = self.store.erasable(slot, before, after.as_deref(), READ_AT_ONCE).await?;
            for ids in ids.chunks(AT_ONCE) {
                // Their stored responses are dropped after a day.
                self.records().erase_payments(ids, ErasePolicy::default(), None).await?;
            }
            after = next;
            if after.is_none() {
                return Ok(());
            }
        }
    }
}

impl Directory {
    pub(super) async fn customers(&self, request: CustomerRequest) -> Result<CustomerReply> {
        match request {
            CustomerRequest::Export { of, after } => self.export_customer(&of, after).await,
            CustomerRequest::Erase { of, policy } => {
                let erased = self.erase_customer(&of, policy).await?;
                Ok(CustomerReply::Erased { erased, remains: self.remains().to_owned() })
            }
        }
    }

    /// Where copies of erased data remain, and until when.
    fn remains(&self) -> &'static str {
        match self.store.backups() {
            Some(_) => {
                "The journal and the backups still hold the erased data. With --backup-dir, the server removes both once it keeps \
                 only backups made after now: after --backup-keep backups, and a file of the journal once it is full, at 32 MiB. \
                 Without --backup-dir it keeps the whole journal for good: restore a backup made after now to a new \
                 directory, serve that, and delete the old one. Backups that you made or copied yourself stay until you delete them."
            }
            None => {
                "PostgreSQL still holds the erased data: in dead rows until VACUUM has run and the pages are used again, in the WAL \
                 until it is recycled or your archive of it ends, on standbys until they have replayed it, and in your backups until \
                 you delete them."
            }
        }
    }

    async fn scopes_and_lookup(&self, of: &CustomerName) -> Result<([Scope; 2], Lookup)> {
        let lookup = match (&of.phone, &of.email) {
            (Some(phone), None) => Lookup::phone(phone),
            (None, Some(email)) => Lookup::email(email),
            _ => return Err(invalid("name the customer by a phone number or by an e-mail address")),
        };
        let lookup = lookup.ok_or_else(|| invalid("this is no phone number and no e-mail address"))?;
        let workspace = self.named_workspace(&of.workspace).await?;
        Ok((Environment::ALL.map(|environment| workspace.scope(environment)), lookup))
    }

    async fn export_customer(&self, of: &CustomerName, after: Option<PaymentId>) -> Result<CustomerReply> {
        let (scopes, lookup) = self.scopes_and_lookup(of).await?;
        let of_last = match &after {
            Some(after) => Some(self.records().session(after.as_str()).await?.scope()),
            None => None,
        };
        let begin = of_last.and_then(|scope| scopes.iter().position(|it| *it == scope)).unwrap_or_default();
        let mut from = PaymentsFrom { after, ..PaymentsFrom::default() };
        for scope in &scopes[begin..] {
            let source = PaymentSource::Lookup(lookup.clone());
            let found = self.store.payments_from(scope, &source, &from, AT_ONCE).await?;
            let ids: Vec<_> = found.into_iter().map(|(id, _)| id).collect();
            if let Some(next) = ids.last().cloned() {
                return Ok(CustomerReply::Held { held: self.held_on(scope, &ids).await?, next: Some(next) });
            }
            from = PaymentsFrom::default();
        }
        Ok(CustomerReply::Held { held: Vec::new(), next: None })
    }

    /// The JSON of everything about each payment.
    async fn held_on(&self, scope: &Scope, ids: &[PaymentId]) -> Result<Vec<String>> {
        #[derive(Serialize)]
        struct Held<'s> {
            payment: RawJson,
            found_by: Vec<&'static str>,
            record: serde_json::Value,
            events: Vec<serde_json::Value>,
            deliveries: Vec<payments_core::Delivery>,
            stored_responses: &'s [RawJson],
        }
        let mut responses = HashMap::<PaymentId, Vec<RawJson>>::new();
        for (_, payment, body) in self.store.responses_about(scope, &ids.iter().cloned().collect()).await? {
            responses.entry(payment).or_default().push(body);
        }
        let mut held = Vec::new();
        for (id, events) in self.store.events_of(scope, ids).await? {
            let Some(session) = self.store.session(&id).await? else { continue };
            let deliveries = self.store.deliveries_of(scope, &id, MAX_DELIVERIES).await?;
            let Session { attempt, ended_attempts, settlements, review, moves, .. } = &session;
            let record = json!({"attempt": attempt, "ended_attempts": ended_attempts, "settlements": settlements, "review": review,
                "moves": moves});
            let events = events.iter().map(|it| {
                json!({"id": it.id, "event": it.kind, "created_at": it.created_at,
                "data": serde_json::from_str::<serde_json::Value>(it.data.as_str()).unwrap_or_default()})
            });
            let all = Held {
                payment: RawJson::of(&session.payment)?,
                found_by: crate::domain::lookups(&session.payment).iter().map(|it| it.kind.as_str()).collect(),
                record,
                events: events.collect(),
                deliveries: deliveries.into_iter().map(|it| it.delivery).collect(),
                stored_responses: responses.get(&id).map_or(&[], Vec::as_slice),
            };
            held.push(serde_json::to_string(&all)?);
        }
        Ok(held)
    }

    /// A kill in between leaves payments that the next run finds: a payment is found until its own commit erases it.
    async fn erase_customer(&self, of: &CustomerName, policy: ErasePolicy) -> Result<Erased> {
        let (scopes, lookup) = self.scopes_and_lookup(of).await?;
        let mut erased = Erased::default();
        for scope in scopes {
            let (source, mut from) = (PaymentSource::Lookup(lookup.clone()), PaymentsFrom::default());
            loop {
                let found = self.store.payments_from(&scope, &source, &from, AT_ONCE).await?;
                let ids: Vec<PaymentId> = found.into_iter().map(|(id, _)| id).collect();
                let Some(last) = ids.last() else { break };
                from.after = Some(last.clone());
                let kept = std::mem::take(&mut erased.kept);
                erased.add(self.records().erase_payments(&ids, policy, Some(&scope)).await?);
                erased.kept.splice(0..0, kept);
                erased.kept.truncate(MAX_KEPT);
                if erased.payments >= MAX_A_REQUEST {
                    return Ok(Erased { has_more: true, ..erased });
                }
            }
        }
        Ok(erased)
    }
}

impl Records<'_> {
    /// Erases the customer's data of payments and of everything about them. In the scope, if one is given, also in its stored
    /// responses. A payment that changes meanwhile is read again, because the change may have stored another response.
    async fn erase_payments(self, ids: &[PaymentId], policy: ErasePolicy, scope: Option<&Scope>) -> Result<Erased> {
        let (mut erased, mut left) = (Erased::default(), ids.to_vec());
        for _ in 0..MAX_TRIES {
            let mut sessions = Vec::new();
            for id in std::mem::take(&mut left) {
                let Some(session) = self.store.session(&id).await? else { continue };
                match session.needs_customer() {
                    Some(why) => erased.kept.push((id, why.to_owned())),
                    None => sessions.push(session),
                }
            }
            if let Some(scope) = scope {
                let ids: HashSet<_> = sessions.iter().map(|session| session.payment.id.clone()).collect();
                for (key, ..) in self.store.responses_about(scope, &ids).await? {
                    self.store.erase_response(key, policy).await?;
                    erased.stored_responses += 1;
                }
            }
            for session in sessions {
                let id = session.payment.id.clone();
                erased.deliveries += self.store.redact_deliveries_of(&id).await?;
                let events = self.store.events_of(&session.scope(), std::slice::from_ref(&id)).await?;
                let after = session.erased(policy);
                let write = PaymentWrite { erases: Some(policy), ..self.without_event(after)? };
                let entries = crate::domain::lookups(&session.payment).len()
                    - crate::domain::lookups(&write.session.payment).len();
                match self.commit(Change::of(Write::Payment(Box::new(write)))).await.map_err(ServiceError::from) {
                    Ok(()) => {
                        erased.payments += 1;
                        erased.search_entries += entries;
                        erased.events += events.iter().map(|(_, events)| events.len()).sum::<usize>();
                    }
                    Err(ServiceError::Conflict) => left.push(id),
                    Err(error) => return Err(error),
                }
            }
            if left.is_empty() {
                return Ok(erased);
            }
        }
        Err(ServiceError::Conflict)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{domain::new_session, service::in_memory::service};

    #[tokio::test]
    async fn the_worker_erases_ended_payments_that_are_old_enough_and_no_others() {
        let service = service();
        let mut sessions = Vec::new();
        for nth in 0..3_u8 {
            let mut session = new_session();
            session.payment.id =
                PaymentId::new(payments_core::Slot::FIRST, Timestamp::UNIX_EPOCH, [nth; payments_core::RANDOM_BYTES]);
            session.payment.customer.phone = Some("01712345678".into());
            let (status, updated_at) = [("failed", 5), ("failed", 50), ("created", 5)][usize::from(nth)];
            session.payment.raw_status = status.into();
            session.payment.status = session.payment.raw_status.public();
            session.payment.updated_at = Timestamp::UNIX_EPOCH.plus_seconds(updated_at);
            let json = RawJson::of(&session.payment).unwrap();
            let write = PaymentWrite::new(session.clone(), json, None, None);
            service.commit(Change::of(Write::Payment(Box::new(write)))).await.unwrap();
            sessions.push(session);
        }
        for (before, erased) in [(5, [false, false, false]), (20, [true, false, false]), (99, [true, true, false])] {
            service.erase_old_customers(Timestamp::UNIX_EPOCH.plus_seconds(before)).await;
            for (session, is_erased) in sessions.iter().zip(erased) {
                let now = service.store.session(&session.payment.id).await.unwrap().unwrap();
                assert_eq!(now.payment.customer.phone.is_none(), is_erased, "{before}: {}", session.payment.id);
            }
        }
    }
}
