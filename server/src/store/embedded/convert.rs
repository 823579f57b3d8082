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
//! | 7 | payments as the API serves them, and the number of pending deliveries |
//! | 8 | all refunds of a payment, lists of events and transactions, the deliveries of a payment, what payments are found by |
//! | 9 | the totals of each day |
//!
//! A store is converted in steps. Each step is a change like any other, so conversion continues after a crash. The last step
//! changes the format number.

use journaled_tree::{Read, TreeError};
use payments_core::{EventId, EventKind, Posting, RawJson, Timestamp};
use serde::Deserialize;

use super::{
    codec::{Records, parse},
    events, keys,
    layout::FORMAT,
    packed,
    responses::ResponseRecord,
    stored::{Parts, Stored},
    view::View,
};
use crate::{
    domain::{MoneyMove, Outgoing, Session, effects, lookups},
    store::{EventEntry, StoreError, StoredEvent, stored_event::payment_of},
};

/// How many old records a step converts.
const AT_A_TIME: usize = 1000;

/// Converts one old record.
type Convert = fn(&mut View<'_, '_>, &[u8], &[u8]) -> Result<(), StoreError>;

const OLD_LISTS: &[u8] = b"list/";
const OLD_EXPIRIES: &[u8] = b"session-end/";
const OLD_RESPONSES: &[u8] = b"idempotency/";
/// While a store is converted: events that are to be listed, in the order of their times.
const TO_LIST: &[u8] = b"event-to-list/";

/// The key prefixes of format 3 that format 4 does not have, in the order of conversion, and that of events to list. The counts
/// of the bitmaps replace the counts of blocks, and each response holds its time.
const OLD: [(&[u8], Convert); 7] = [
    (b"event/", event),
    (OLD_LISTS, list_entry),
    (b"block/", |_, _, _| Ok(())),
    (OLD_EXPIRIES, expiry),
    (OLD_RESPONSES, response),
    (b"kept/", |_, _, _| Ok(())),
    (TO_LIST, list_events),
];

/// How many payments a step converts. With metadata, each may be of 100 KB.
const PAYMENTS_AT_A_TIME: usize = 200;

/// Takes the next step of a store of this format. Returns whether the store now has the present one.
pub(super) fn step(mut view: View<'_, '_>, found: u32) -> Result<bool, StoreError> {
    let is_counting = !view.bytes(keys::COUNTED_UP_TO)?.is_empty();
    if (found < 8 && !is_counting && !step_to_8(&mut view)?) || has_uncounted_payments(&mut view)? {
        return Ok(false);
    }
    view.remove(keys::CONVERTED_UP_TO.to_vec());
    view.remove(keys::DELIVERIES_CONVERTED_UP_TO.to_vec());
    view.remove(keys::COUNTED_UP_TO.to_vec());
    view.set(journaled_tree::FORMAT.to_vec(), FORMAT.to_string().into_bytes());
    Ok(true)
}

/// Takes the next step to format 8. Returns whether none was left.
fn step_to_8(view: &mut View<'_, '_>) -> Result<bool, StoreError> {
    // First: the steps after it write payments of the present format.
    if has_old_payments(view)? {
        return Ok(false);
    }
    for (prefix, convert) in OLD {
        let old = view.prefix(prefix).take(AT_A_TIME).collect::<Result<Vec<_>, _>>()?;
        for (key, value) in &old {
            convert(view, key, value)?;
            view.remove(key.clone());
        }
        if !old.is_empty() {
            return Ok(false);
        }
    }
    if has_old_deliveries(view)? {
        return Ok(false);
    }
    let pending = view.count_prefix(keys::OUTBOX, usize::MAX)?;
    view.put(keys::pending_deliveries(), &pending)?;
    Ok(true)
}

/// A payment before format 7.
#[derive(Deserialize)]
struct OldStored {
    place: u64,
    session: Session,
    /// Missing before format 4.
    #[serde(default)]
    events: Vec<StoredEvent>,
}

/// A payment before format 7, or one of format 7.
fn old_stored(key: &[u8], record: &[u8]) -> Result<Stored, StoreError> {
    if let Ok(stored) = Stored::parse(key, record) {
        return Ok(stored);
    }
    let OldStored { place: position, session, events } = parse(key, record)?;
    Ok(Stored { position, session, events })
}

/// Converts the next payments. Returns whether there were some. Leaves a damaged record to `check`.
fn has_old_payments(view: &mut View<'_, '_>) -> Result<bool, StoreError> {
    let up_to = view.bytes(keys::CONVERTED_UP_TO)?;
    let old = view.prefix_after(keys::SESSIONS, &up_to);
    let readable = old.filter(|entry| !matches!(entry, Err(TreeError::Damaged { .. })));
    let old = readable.take(PAYMENTS_AT_A_TIME).collect::<Result<Vec<_>, _>>()?;
    let Some((last, _)) = old.last() else { return Ok(false) };
    view.set(keys::CONVERTED_UP_TO.to_vec(), last.clone());
    for (key, record) in old {
        let Ok(mut stored) = old_stored(&key, &record) else { continue };
        for event in &stored.events {
            to_list(view, &stored.session, event)?;
        }
        view.add_lookups(&stored.session.scope(), stored.position, &lookups(&stored.session.payment))?;
        let json = RawJson::of(&stored.session.payment).map_err(|error| StoreError::corrupt(&key, error))?;
        if let Ok(parts) = Parts::of(&key, &record) {
            let served = parts.json()?;
            if served == json {
                continue;
            }
            // An event without data of its own has the payment as it was.
            for event in &mut stored.events {
                event.data.get_or_insert_with(|| served.clone());
            }
        }
        view.put_payment(key, stored, &json)?;
    }
    Ok(true)
}

/// Counts the next payments on their days. Returns whether there were some. Leaves a damaged record to `check`.
fn has_uncounted_payments(view: &mut View<'_, '_>) -> Result<bool, StoreError> {
    let up_to = view.bytes(keys::COUNTED_UP_TO)?;
    let payments = view.prefix_after(keys::SESSIONS, &up_to);
    let readable = payments.filter(|entry| !matches!(entry, Err(TreeError::Damaged { .. })));
    let payments = readable.take(PAYMENTS_AT_A_TIME).collect::<Result<Vec<_>, _>>()?;
    let Some((last, _)) = payments.last() else { return Ok(false) };
    view.set(keys::COUNTED_UP_TO.to_vec(), last.clone());
    for (key, record) in payments {
        let Ok(Stored { session, .. }) = Stored::parse(&key, &record) else { continue };
        let mut postings = Vec::new();
        for entry in view.prefix(&keys::postings_of(&session.payment.id)) {
            let (key, changed) = entry?;
            postings.extend(parse::<Vec<Posting>>(&key, &changed)?);
        }
        view.add_to_day(&effects(None, &session, &postings))?;
    }
    Ok(true)
}

/// Names the next deliveries among those of their payments. Returns whether there were some.
fn has_old_deliveries(view: &mut View<'_, '_>) -> Result<bool, StoreError> {
    let up_to = view.bytes(keys::DELIVERIES_CONVERTED_UP_TO)?;
    let old = view.prefix_after(keys::DELIVERIES, &up_to);
    let readable = old.filter(|entry| !matches!(entry, Err(TreeError::Damaged { .. })));
    let old = readable.take(AT_A_TIME).collect::<Result<Vec<_>, _>>()?;
    let Some((last, _)) = old.last() else { return Ok(false) };
    view.set(keys::DELIVERIES_CONVERTED_UP_TO.to_vec(), last.clone());
    for (key, record) in old {
        let Ok(Outgoing { payment: Some(payment), delivery, .. }) = parse(&key, &record) else { continue };
        view.add_line(keys::deliveries_of(&payment), delivery.id.as_str())?;
    }
    Ok(true)
}

#[derive(Deserialize)]
struct OldEnvelope {
    id: EventId,
    event: EventKind,
    created_at: Timestamp,
    data: RawJson,
}

/// Moves an event into its payment. A ping's event is in its delivery.
fn event(view: &mut View<'_, '_>, key: &[u8], json: &[u8]) -> Result<(), StoreError> {
    let OldEnvelope { id, event, created_at, data } = parse(key, json)?;
    let about = payment_of(&data).map_err(|error| StoreError::corrupt(key, error))?;
    let Some(payment) = about.and_then(|id| id.parse().ok()).filter(|_| event != EventKind::TestPing) else {
        return Ok(());
    };
    let at = keys::session(&payment);
    let Some(record) = view.get(&at)? else {
        // `check` reports an event without a payment.
        tracing::warn!(event = %id, "an event about a payment that is not there is dropped");
        return Ok(());
    };
    let parts = Parts::of(&at, &record)?;
    let (mut stored, payment) = (Stored::of(&parts)?, parts.json()?);
    stored.events.push(StoredEvent { id, event, created_at, data: (data != payment).then_some(data) });
    if let Some(event) = stored.events.last() {
        to_list(view, &stored.session, event)?;
    }
    view.put_payment(at, stored, &payment)
}

/// Remembers an event for [`list_events`], which has all of a time at once.
fn to_list(view: &mut View<'_, '_>, session: &Session, event: &StoredEvent) -> Result<(), StoreError> {
    let (at, scope) = (event.id.created_at().unwrap_or(event.created_at), session.scope());
    view.add_line(keys::bucket(TO_LIST, at), &format!("{} {} {} {scope}", event.id, event.event, session.payment.id))
}

/// Adds the events of a time to the lists of their scopes.
fn list_events(view: &mut View<'_, '_>, key: &[u8], lines: &[u8]) -> Result<(), StoreError> {
    let mut lines: Vec<_> = packed::lines(lines).collect();
    lines.sort_unstable();
    for line in lines {
        let scope = line.rsplit(' ').next().and_then(keys::scope_of);
        let (entry, scope) =
            events::of_line(line).zip(scope).ok_or_else(|| StoreError::corrupt(key, "it is no event"))?;
        let money = money_of(view, &entry)?;
        view.add_event(&scope, &entry, money)?;
    }
    Ok(())
}

/// What an event adds to the balance. Before format 8 a payment is refunded once, so it has two changes with postings at most.
fn money_of(view: &View<'_, '_>, entry: &EventEntry) -> Result<Option<MoneyMove>, StoreError> {
    let nth = match entry.kind {
        EventKind::PaymentCompleted => 0,
        EventKind::PaymentRefunded => 1,
        _ => return Ok(None),
    };
    let Some((key, postings)) = view.prefix(&keys::postings_of(&entry.payment)).nth(nth).transpose()? else {
        // `check` reports an event without its postings.
        return Ok(None);
    };
    let postings: Vec<Posting> = parse(&key, &postings)?;
    let at = keys::session(&entry.payment);
    let Some(record) = view.get(&at)? else { return Ok(None) };
    Ok(MoneyMove::of(Stored::parse(&at, &record)?.session.payment.currency, &postings))
}

/// Packs list entries, and turns lists by status into bitmaps.
fn list_entry(view: &mut View<'_, '_>, key: &[u8], id: &[u8]) -> Result<(), StoreError> {
    let Some((name, position)) = keys::name_and_number(OLD_LISTS, key) else { return Ok(()) };
    if keys::is_of_a_status(name) {
        return view.set_bit(keys::part(keys::BITMAPS, name, position / keys::BLOCK), position % keys::BLOCK, true);
    }
    // The old entries come in the order of their positions, without a gap.
    view.add_line(keys::part(keys::LISTS, name, position / keys::LEAF), &String::from_utf8_lossy(id))
}

fn expiry(view: &mut View<'_, '_>, key: &[u8], _: &[u8]) -> Result<(), StoreError> {
    let expiry = key[OLD_EXPIRIES.len()..].split_first_chunk().and_then(|(millis, id)| {
        let millis = i64::try_from(u64::from_be_bytes(*millis)).ok()?;
        Some((Timestamp::from_millis(millis).ok()?, String::from_utf8_lossy(id)))
    });
    expiry.map_or(Ok(()), |(at, id)| view.add_line(keys::bucket(keys::EXPIRIES, at), &id))
}

/// Packs a response into the time index, and stores its time under its used key.
fn response(view: &mut View<'_, '_>, key: &[u8], json: &[u8]) -> Result<(), StoreError> {
    let used = [keys::KEYS_USED, &key[OLD_RESPONSES.len()..]].concat();
    let Some(of) = keys::name_of_used_key(&used) else { return Ok(()) };
    let response = ResponseRecord { of, ..parse(key, json)? };
    view.put(used, &response.created_at)?;
    view.add_responses(keys::bucket(keys::RESPONSES, response.created_at), &[response])
}
