//! Takes in the records that a migration moves here.

use super::{
    codec::Records,
    keys::{self, List},
    pending::PendingRecord,
    responses::EventRef,
    stored::Stored,
    view::View,
};
use crate::store::{CommitError, Conflict, MOVED, PaymentRecord, PendingEventRecord, Record, ResponseRecord, Write};

impl View<'_, '_> {
    /// Writes a record of another store. Only what changes write in several steps has a way of its own.
    pub(super) fn take_in(&mut self, record: Record) -> Result<(), CommitError> {
        let write = match record {
            Record::Workspace(it) => Write::Workspace(*it),
            Record::ApiKey(hash, it) => Write::ApiKey(hash, *it),
            Record::App(it) => Write::App(it),
            Record::GatewayToken(name, it) => Write::GatewayToken(name.into(), it),
            Record::Endpoint(endpoint) => Write::EndpointAdded { endpoint, at_most: usize::MAX },
            Record::KeyClaim(it) => Write::KeyClaimed(it),
            Record::Delivery(it) => Write::Delivery(it),
            Record::Payment(it) => return self.take_in_payment(*it),
            Record::StoredResponse(it) => return self.take_in_response(*it),
            Record::PendingEvent(PendingEventRecord { id, payment, after }) => {
                return Ok(self.put(keys::pending_event(&id), &PendingRecord { payment, after })?);
            }
            Record::RedactedUpTo(id) => return Ok(self.put(keys::REDACTED_UP_TO.to_vec(), &id)?),
        };
        self.write(write, MOVED).map(drop)
    }

    fn take_in_payment(&mut self, record: PaymentRecord) -> Result<(), CommitError> {
        let effects = record.effects();
        let PaymentRecord { session, events, postings } = record;
        let id = &session.payment.id;
        let at = keys::session(id);
        self.check_follows(&at, None)?;
        for (version, postings) in &postings {
            self.put(keys::postings(id, *version), postings)?;
        }
        let position = self.append(&List::payments(&effects.scope), id.as_str())?;
        self.apply_effects(id, position, &effects)?;
        Ok(self.put(at, &Stored { position, session, events })?)
    }

    fn take_in_response(&mut self, ResponseRecord { key, response, event }: ResponseRecord) -> Result<(), CommitError> {
        let used = keys::idempotency(&key);
        if !self.bytes(&used)?.is_empty() {
            return Err(Conflict::Stale.into());
        }
        let event = event.map(|(payment, event)| EventRef { payment, event });
        Ok(self.store_response(used, response, event)?)
    }
}
