//! The record of a payment: its scope, the payment byte for byte as the API serves it, and everything else as JSON. A get
//! finds its answer without parsing any JSON.
//!
//! The ASCII record separator stands between the parts, because JSON cannot contain it. A line break could not: a merchant's
//! metadata keeps its own.

use payments_core::{EventId, Payment, PaymentId, RawJson, Timestamp};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::{codec::Records, keys};
use crate::{
    domain::{EndedAttempt, GatewayAttempt, ManualReview, ManualSettlement, Move, PendingRefund, Scope, Session},
    store::{StoreError, StoredEvent},
};

const SEPARATOR: u8 = 0x1e;

/// The parts of a payment's record.
pub(super) struct Parts<'r> {
    key: &'r [u8],
    scope: &'r str,
    /// The payment as the API serves it.
    pub(super) payment: &'r str,
    rest: &'r str,
}

/// The third part.
#[derive(Serialize, Deserialize)]
pub(super) struct Rest {
    /// The payment's position in its developer's list of payments.
    #[serde(rename = "place")]
    pub(super) position: u64,
    pub(super) version: u64,
    expires_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    attempt: Option<GatewayAttempt>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    ended_attempts: Vec<EndedAttempt>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    check_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pending_refund: Option<PendingRefund>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    settlements: Vec<ManualSettlement>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    review: Option<ManualReview>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    moves: Vec<Move>,
    pub(super) events: Vec<StoredEvent>,
}

impl<'r> Parts<'r> {
    pub(super) fn of(key: &'r [u8], record: &'r [u8]) -> Result<Self, StoreError> {
        Self::of_text(key, str::from_utf8(record).map_err(|error| StoreError::corrupt(key, error))?)
    }

    fn of_text(key: &'r [u8], text: &'r str) -> Result<Self, StoreError> {
        let separator = char::from(SEPARATOR);
        let parts = text.split_once(separator);
        // The last part is usually much shorter than the payment.
        let parts = parts.and_then(|(scope, others)| Some((scope, others.rsplit_once(separator)?)));
        let (scope, (payment, rest)) = parts.ok_or_else(|| StoreError::corrupt(key, "it does not have three parts"))?;
        Ok(Self { key, scope, payment, rest })
    }

    /// The payment of a record as the API serves it, if it belongs to a scope. Keeps the record's memory.
    pub(super) fn payment_of(key: &[u8], record: Vec<u8>, scope: &Scope) -> Result<Option<String>, StoreError> {
        let mut text = String::from_utf8(record).map_err(|error| StoreError::corrupt(key, error))?;
        let parts = Parts::of_text(key, &text)?;
        if !parts.is_of(scope) {
            return Ok(None);
        }
        let begin = parts.scope.len() + 1;
        let end = begin + parts.payment.len();
        text.truncate(end);
        text.drain(..begin);
        Ok(Some(text))
    }

    pub(super) fn is_of(&self, scope: &Scope) -> bool {
        self.scope.split_once('/') == Some((scope.developer_id.as_str(), scope.environment.as_str()))
    }

    pub(super) fn json(&self) -> Result<RawJson, StoreError> {
        RawJson::new(self.payment).map_err(|error| StoreError::corrupt(self.key, error))
    }

    pub(super) fn rest(&self) -> Result<Rest, StoreError> {
        self.parse(self.rest)
    }

    fn parse<T: DeserializeOwned>(&self, part: &str) -> Result<T, StoreError> {
        serde_json::from_str(part).map_err(|error| StoreError::corrupt(self.key, error))
    }
}

/// A payment's session, its position in its developer's list of payments, and its events.
pub(super) struct Stored {
    pub(super) position: u64,
    pub(super) session: Session,
    pub(super) events: Vec<StoredEvent>,
}

impl Stored {
    pub(super) fn of(parts: &Parts<'_>) -> Result<Self, StoreError> {
        let payment: Payment = parts.parse(parts.payment)?;
        let Rest {
            position,
            version,
            expires_at,
            attempt,
            ended_attempts,
            check_at,
            pending_refund,
            settlements,
            review,
            moves,
            events,
        } = parts.rest()?;
        let session = Session {
            version,
            expires_at,
            payment,
            attempt,
            ended_attempts,
            check_at,
            pending_refund,
            settlements,
            review,
            moves,
        };
        Ok(Self { position, session, events })
    }

    pub(super) fn parse(key: &[u8], record: &[u8]) -> Result<Self, StoreError> {
        Self::of(&Parts::of(key, record)?)
    }

    pub(super) fn read(records: &impl Records, payment: &PaymentId) -> Result<Option<Self>, StoreError> {
        let key = keys::session(payment);
        records.get(&key)?.map(|record| Self::parse(&key, &record)).transpose()
    }

    /// The record. `json` is the session's payment.
    pub(super) fn into_record(self, json: &RawJson) -> Result<Vec<u8>, serde_json::Error> {
        let Self { position, session, events } = self;
        let scope = session.scope();
        let Session {
            version,
            expires_at,
            payment: _,
            attempt,
            ended_attempts,
            check_at,
            pending_refund,
            settlements,
            review,
            moves,
        } = session;
        let rest = Rest {
            position,
            version,
            expires_at,
            attempt,
            ended_attempts,
            check_at,
            pending_refund,
            settlements,
            review,
            moves,
            events,
        };
        // Room for the rest of a new payment.
        let mut record = Vec::with_capacity(json.as_str().len() + 512);
        for part in [&*scope.to_string(), json.as_str()] {
            record.extend_from_slice(part.as_bytes());
            record.push(SEPARATOR);
        }
        serde_json::to_writer(&mut record, &rest)?;
        Ok(record)
    }
}

/// Reads an event that the record `key` names, and its data. Of its payment's record it parses the events alone.
pub(super) fn read_event(
    records: &impl Records,
    key: &[u8],
    payment: &PaymentId,
    id: &EventId,
) -> Result<(StoredEvent, RawJson), StoreError> {
    #[derive(Deserialize)]
    struct Events {
        events: Vec<StoredEvent>,
    }
    let at = keys::session(payment);
    let record = records.get(&at)?.ok_or_else(|| no_event(key, payment, id))?;
    let parts = Parts::of(&at, &record)?;
    let Events { events } = parts.parse(parts.rest)?;
    event_of(&parts, events, id)?.ok_or_else(|| no_event(key, payment, id))
}

/// As [`read_event`], with the session of its payment.
pub(super) fn read_event_and_session(
    records: &impl Records,
    key: &[u8],
    payment: &PaymentId,
    id: &EventId,
) -> Result<(Session, StoredEvent, RawJson), StoreError> {
    let at = keys::session(payment);
    let record = records.get(&at)?.ok_or_else(|| no_event(key, payment, id))?;
    let parts = Parts::of(&at, &record)?;
    let Stored { session, events, .. } = Stored::of(&parts)?;
    let (event, data) = event_of(&parts, events, id)?.ok_or_else(|| no_event(key, payment, id))?;
    Ok((session, event, data))
}

/// The event of this id and its data, if the payment has it.
fn event_of(
    parts: &Parts<'_>,
    events: Vec<StoredEvent>,
    id: &EventId,
) -> Result<Option<(StoredEvent, RawJson)>, StoreError> {
    let Some(mut event) = events.into_iter().find(|event| event.id == *id) else { return Ok(None) };
    let data = event.data.take().map_or_else(|| parts.json(), Ok)?;
    Ok(Some((event, data)))
}

fn no_event(key: &[u8], payment: &PaymentId, id: &EventId) -> StoreError {
    StoreError::corrupt(key, format_args!("the event {id} of the payment {payment} is not there"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_cannot_contain_the_separator() {
        let separator = char::from(SEPARATOR);
        for text in [format!("\"{separator}\""), format!("{{{separator}}}"), format!("[1,{separator}2]")] {
            assert!(RawJson::new(text).is_err());
        }
        assert!(!RawJson::of(&separator).unwrap().as_str().contains(separator));
    }
}
