//! Takes in the records that a migration moves here.

use super::{
    batch::{Batch, IdempotencyRow, PaymentColumns, PaymentRow, PendingRow, ResponseRow, check_follows},
    names,
};
use crate::store::{CommitError, Conflict, MOVED, PaymentRecord, PendingEventRecord, Record, ResponseRecord, Taking};

impl Batch {
    /// Writes a record of another store.
    pub(super) fn take_in(&mut self, record: Record) -> Result<(), CommitError> {
        match record.into() {
            Taking::Write(write) => self.write(write, MOVED).map(drop),
            Taking::Payment(it) => self.take_in_payment(*it),
            Taking::StoredResponse(it) => self.take_in_response(*it),
            Taking::PendingEvent(PendingEventRecord { id, payment, after }) => {
                self.pending.put(id, PendingRow::Added(payment, after));
                Ok(())
            }
            Taking::Event(it) => {
                self.change.events.push(it);
                Ok(())
            }
            Taking::RedactedUpTo(id) => {
                self.change.redacted_up_to = Some(id);
                Ok(())
            }
        }
    }

    fn take_in_payment(&mut self, record: PaymentRecord) -> Result<(), CommitError> {
        let effects = record.effects();
        let PaymentRecord { session, events, postings } = record;
        let id = session.payment.id.clone();
        check_follows(self.payments.get(&id).map(|row| row.session.version), None)?;
        let mut columns = PaymentColumns::default();
        columns.apply(&effects);
        self.add_effects(&id, &effects, true);
        self.change.postings.extend(postings.into_iter().map(|(version, postings)| (id.clone(), version, postings)));
        self.payments.put(id, PaymentRow { session, events, columns });
        Ok(())
    }

    fn take_in_response(&mut self, ResponseRecord { key, response, event }: ResponseRecord) -> Result<(), CommitError> {
        let name = names::idempotency(&key);
        if self.idempotency.get(&name).is_some() {
            return Err(Conflict::Stale.into());
        }
        self.idempotency.put(name, IdempotencyRow { response: Some(ResponseRow { response, event }), claim: None });
        Ok(())
    }
}
