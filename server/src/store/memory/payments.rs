//! Parts of the list of payments.

use payments_core::PaymentId;

use super::{Tables, json_of};
use crate::{
    domain::{Lookup, Scope, Session, lookups},
    store::{PaymentJson, PaymentSource, PaymentsFrom},
};

impl Tables {
    /// A scope's payments that are found by a value, newest first.
    pub(super) fn found_by(&self, scope: &Scope, lookup: &Lookup) -> impl Iterator<Item = &Session> {
        let of_scope = self.payments.iter().rev().filter(move |(of, _)| of == scope).map(|(_, id)| &self.sessions[id]);
        of_scope.filter(move |session| lookups(&session.payment).contains(lookup))
    }

    pub(super) fn payments_from(
        &self,
        scope: &Scope,
        source: &PaymentSource,
        from: &PaymentsFrom,
        at_most: usize,
    ) -> Vec<(PaymentId, PaymentJson)> {
        let ids = self.payments.iter().rev().filter(|(of, _)| of == scope).map(|(_, id)| id);
        let all: Vec<_> = ids.map(|id| &self.sessions[id]).collect();
        let first = match &from.after {
            None => 0,
            Some(after) => all.iter().position(|it| it.payment.id == *after).map_or(all.len(), |found| found + 1),
        };
        let is_in = |session: &&&Session| match source {
            PaymentSource::All => true,
            PaymentSource::Status(status) => self.statuses[&session.payment.id] == *status,
            PaymentSource::Lookup(lookup) => lookups(&session.payment).contains(lookup),
        };
        let is_of_time = |session: &&&Session| {
            let created_at = session.payment.created_at;
            from.created_after.is_none_or(|time| created_at >= time)
                && from.created_before.is_none_or(|time| created_at < time)
        };
        let found = all[first..].iter().filter(is_in).filter(is_of_time).take(at_most);
        found.map(|session| (session.payment.id.clone(), json_of(session))).collect()
    }
}
