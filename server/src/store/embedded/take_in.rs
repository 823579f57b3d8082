//! Takes in the records that a migration moves here.

use payments_core::RawJson;

use super::{
    codec::Records,
    keys::{self, List},
    pending::PendingRecord,
    responses::EventRef,
    stored::Stored,
    view::View,
};
use crate::store::{
    CommitError, Conflict, MOVED, PaymentRecord, PendingEventRecord, Record, ResponseRecord, StoreError, Taking,
};

impl View<'_, '_> {
    /// Writes a record of another store.
    pub(super) fn take_in(&mut self, record: Record) -> Result<(), CommitError> {
        match record.into() {
            Taking::Write(write) => self.write(write, MOVED).map(drop),
            Taking::Payment(it) => self.take_in_payment(*it),
            Taking::StoredResponse(it) => self.take_in_response(*it),
            Taking::PendingEvent(PendingEventRecord { id, payment, after }) => {
                Ok(self.put(keys::pending_event(&id), &PendingRecord { payment, after })?)
            }
            Taking::Event(it) => Ok(self.add_event(&it.scope, &it.entry, it.money)?),
            Taking::RedactedUpTo(id) => Ok(self.put(keys::REDACTED_UP_TO.to_vec(), &id)?),
        }
    }

    fn take_in_payment(&mut self, record: PaymentRecord) -> Result<(), CommitError> {
        let effects = record.effects();
        let PaymentRecord { session, events, postings } = record;
        let id = &session.payment.id;
        let at = keys::session(id);
        if !self.bytes(&at)?.is_empty() {
            return Err(Conflict::Stale.into());
        }
        for (version, postings) in &postings {
            self.put(keys::postings(id, *version), postings)?;
        }
        let position = self.append(&List::payments(&effects.scope), id.as_str())?;
        self.apply_effects(id, position, &effects)?;
        let json = RawJson::of(&session.payment).map_err(|error| StoreError::corrupt(&at, error))?;
        Ok(self.put_payment(at, Stored { position, session, events }, &json)?)
    }

    fn take_in_response(&mut self, ResponseRecord { key, response, event }: ResponseRecord) -> Result<(), CommitError> {
        let used = keys::idempotency(&key);
        if !self.bytes(&used)?.is_empty() {
            return Err(Conflict::Stale.into());
        }
        let event = event.map(|(payment, event)| EventRef { payment, event });
        let of = keys::name_of_used_key(&used).unwrap_or_default();
        Ok(self.store_response(used, of, response, event)?)
    }
}
