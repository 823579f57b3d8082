//! Converts a store that an earlier version wrote to the present format.
//!
//! | format | what it added |
//! |---|---|
//! | 1 | |
//! | 2 | counts of blocks of the lists of payments by status |
//! | 3 | the time of each stored response |
//! | 4 | fewer and smaller records: a payment holds its events, a list record many entries, a status is a bitmap |
//! | 5 | pending events |
//! | 6 | deliveries that name their event instead of holding its data |
//!
//! A store is converted in steps. Each step is a change like any other, so conversion continues after a crash. The last step
//! changes the format number.

use journaled_tree::{Entry, Read};
use payments_core::{EventId, EventKind, RawJson, Timestamp};
use serde::Deserialize;

use super::{
    codec::{self, Records},
    keys,
    layout::FORMAT,
    packed,
    responses::StoredResponse,
    stored::{Event, Stored},
    view::View,
};
use crate::store::StoreError;

/// How many old records a step converts.
const AT_A_TIME: usize = 1000;

/// Takes the next step. Returns whether the store now has the present format.
pub(super) fn step(view: View<'_, '_>) -> Result<bool, StoreError> {
    let mut step = Step { view, has_taken: false };
    for convert in [events, lists, counts_of_blocks, session_ends, responses, times_of_responses] {
        convert(&mut step)?;
        if step.has_taken {
            return Ok(false);
        }
    }
    step.view.set(journaled_tree::FORMAT.to_vec(), FORMAT.to_string().into_bytes());
    Ok(true)
}

/// Key prefixes of format 3 that format 4 does not have.
const OLD_EVENTS: &[u8] = b"event/";
const OLD_LISTS: &[u8] = b"list/";
const OLD_BLOCKS: &[u8] = b"block/";
const OLD_ENDS: &[u8] = b"session-end/";
const OLD_KEPT: &[u8] = b"kept/";
const OLD_RESPONSES: &[u8] = b"idempotency/";

/// One step of the conversion.
struct Step<'v, 'd> {
    view: View<'v, 'd>,
    /// Whether it has converted anything.
    has_taken: bool,
}

impl Step<'_, '_> {
    /// Takes and removes the first old records with a prefix.
    fn take(&mut self, prefix: &[u8]) -> Result<Vec<Entry>, StoreError> {
        let taken = self.view.prefix(prefix).take(AT_A_TIME).collect::<Result<Vec<_>, _>>()?;
        for (key, _) in &taken {
            self.view.remove(key.clone());
        }
        self.has_taken |= !taken.is_empty();
        Ok(taken)
    }

    fn add_line(&mut self, key: Vec<u8>, line: &str) -> Result<(), StoreError> {
        let mut lines = self.view.bytes(&key)?;
        packed::push_line(&mut lines, line);
        self.view.set(key, lines);
        Ok(())
    }
}

#[derive(Deserialize)]
struct OldEnvelope {
    id: EventId,
    event: EventKind,
    created_at: Timestamp,
    data: RawJson,
}

#[derive(Deserialize)]
struct OldData {
    id: Option<String>,
    payment: Option<Box<OldData>>,
}

/// Moves events into their payments. A ping's event is in its delivery.
fn events(step: &mut Step<'_, '_>) -> Result<(), StoreError> {
    for (key, json) in step.take(OLD_EVENTS)? {
        let OldEnvelope { id, event, created_at, data } = codec::parse(&key, &json)?;
        let about: OldData = codec::parse(&key, data.as_str().as_bytes())?;
        let about = about.id.or_else(|| about.payment.and_then(|payment| payment.id));
        let Some(payment) = about.and_then(|id| id.parse().ok()).filter(|_| event != EventKind::TestPing) else {
            continue;
        };
        let at = keys::session(&payment);
        let json = step.view.bytes(&at)?;
        if json.is_empty() {
            // `check` reports an event without a payment.
            tracing::warn!(event = %id, "an event about a payment that is not there is dropped");
            continue;
        }
        let mut stored: Stored = codec::parse(&at, &json)?;
        let payment = RawJson::of(&stored.session.payment).map_err(|error| StoreError::corrupt(&at, error))?;
        stored.events.push(Event { id, event, created_at, data: (data != payment).then_some(data) });
        let json = serde_json::to_vec(&stored).map_err(|error| StoreError::corrupt(&at, error))?;
        step.view.set(at, json);
    }
    Ok(())
}

/// Packs list entries, and turns lists by status into bitmaps.
fn lists(step: &mut Step<'_, '_>) -> Result<(), StoreError> {
    for (key, id) in step.take(OLD_LISTS)? {
        let Some((name, place)) = keys::numbered(OLD_LISTS, &key) else { continue };
        let record = |prefix, number: u64| [prefix, name.as_bytes(), b"/", number.to_be_bytes().as_slice()].concat();
        if keys::is_of_a_status(name) {
            let block = record(keys::BITMAPS, place / keys::BLOCK);
            let mut marks = step.view.bytes(&block)?;
            packed::set_bit(&mut marks, place % keys::BLOCK, true);
            step.view.set(block, marks);
        } else {
            // The old entries come in the order of their places, without a gap.
            step.add_line(record(keys::LISTS, place / keys::LEAF), &String::from_utf8_lossy(&id))?;
        }
    }
    Ok(())
}

/// The counts of the bitmaps replace the counts of the old lists.
fn counts_of_blocks(step: &mut Step<'_, '_>) -> Result<(), StoreError> {
    step.take(OLD_BLOCKS).map(drop)
}

fn session_ends(step: &mut Step<'_, '_>) -> Result<(), StoreError> {
    for (key, _) in step.take(OLD_ENDS)? {
        if let Some((at, id)) = in_time(OLD_ENDS, &key) {
            step.add_line(keys::expiry(at), &String::from_utf8_lossy(id))?;
        }
    }
    Ok(())
}

#[derive(Deserialize)]
struct OldResponse {
    fingerprint: String,
    created_at: Timestamp,
    body: RawJson,
}

/// Packs responses into a time index, and stores the time under each used key.
fn responses(step: &mut Step<'_, '_>) -> Result<(), StoreError> {
    for (key, json) in step.take(OLD_RESPONSES)? {
        let OldResponse { fingerprint, created_at, body } = codec::parse(&key, &json)?;
        let used = [keys::KEYS_USED, key.strip_prefix(OLD_RESPONSES).unwrap_or_default()].concat();
        let Some(of) = keys::name_of_used_key(&used) else { continue };
        let record = keys::responses(created_at);
        let mut responses = step.view.bytes(&record)?;
        let response = StoredResponse { of, fingerprint, created_at, body: Some(body), told: None };
        packed::push_value(&mut responses, &response).map_err(|error| StoreError::corrupt(&record, error))?;
        step.view.set(record, responses);
        let used_at = serde_json::to_vec(&created_at).map_err(|error| StoreError::corrupt(&key, error))?;
        step.view.set(used, used_at);
    }
    Ok(())
}

fn times_of_responses(step: &mut Step<'_, '_>) -> Result<(), StoreError> {
    step.take(OLD_KEPT).map(drop)
}

/// The time and the rest of an old time-ordered key.
fn in_time<'k>(prefix: &[u8], key: &'k [u8]) -> Option<(Timestamp, &'k [u8])> {
    let (millis, about) = key.strip_prefix(prefix)?.split_first_chunk::<8>()?;
    Some((Timestamp::from_millis(i64::try_from(u64::from_be_bytes(*millis)).ok()?).ok()?, about))
}
