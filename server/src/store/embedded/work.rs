//! Work that is due.

use payments_core::{DeliveryId, Timestamp, WebhookId};

use super::{codec::Records, keys, packed};
use crate::store::{Due, Planned, StoreError, Work};

/// The endpoints with deliveries in their outboxes, and since when the first of these is due. Takes one step for each endpoint,
/// not for each delivery.
pub(super) fn lanes(
    records: &impl Records,
) -> impl Iterator<Item = Result<(WebhookId, Option<Timestamp>), StoreError>> {
    let mut after = keys::OUTBOX.to_vec();
    std::iter::from_fn(move || {
        let (key, value) = match records.prefix_after(keys::OUTBOX, &after).next()? {
            Ok(entry) => entry,
            Err(error) => return Some(Err(error.into())),
        };
        let (endpoint, oldest) = str::from_utf8(key.strip_prefix(keys::OUTBOX)?).ok()?.split_once('/')?;
        let endpoint = endpoint.parse().ok()?;
        let due_since =
            str::from_utf8(&value).ok().and_then(|millis| Timestamp::from_millis(millis.parse().ok()?).ok());
        let made_at = || oldest.parse().ok().and_then(|oldest: DeliveryId| oldest.created_at());
        let oldest = due_since.or_else(made_at);
        // Skips every other delivery of this endpoint.
        after = keys::outbox_of(&endpoint);
        after.push(0xff);
        Some(Ok((endpoint, oldest)))
    })
}

/// Open sessions that expired before a time, oldest first.
pub(super) fn expired(records: &impl Records, now: Timestamp) -> impl Iterator<Item = Result<Due, StoreError>> {
    records.range(keys::buckets_before(keys::EXPIRIES, now)).flat_map(|entry| match entry {
        Ok((_, names)) => {
            packed::lines(&names).filter_map(|id| id.parse().ok()).map(|id| Ok((Work::Expiry(id), None))).collect()
        }
        Err(error) => vec![Err(error.into())],
    })
}

/// Deliveries whose next attempt is due before a time, oldest first.
pub(super) fn retries(records: &impl Records, now: Timestamp) -> impl Iterator<Item = Result<Due, StoreError>> {
    records.range(keys::retries_before(now)).filter_map(|entry| match entry {
        Ok((key, _)) => keys::delivery_to_retry(&key).map(|id| Ok((Work::Retry(id), None))),
        Err(error) => Some(Err(error.into())),
    })
}

/// Payments whose gateway check is due before a time, oldest first.
pub(super) fn gateway_checks(records: &impl Records, now: Timestamp) -> impl Iterator<Item = Result<Due, StoreError>> {
    records.range(keys::checks_before(now)).filter_map(|entry| match entry {
        Ok((key, _)) => keys::payment_to_check(&key).map(|id| Ok((Work::GatewayCheck(id), None))),
        Err(error) => Some(Err(error.into())),
    })
}

/// Open sessions that expire after a time, earliest first, each with the beginning of its bucket.
pub(super) fn expiring_after(
    records: &impl Records,
    after: Timestamp,
) -> impl Iterator<Item = Result<Planned, StoreError>> {
    let (index, unit) = (keys::EXPIRIES, keys::BUCKET_MILLIS);
    records.range(keys::later(index, unit, after)).flat_map(move |entry| match entry {
        Ok((key, names)) => {
            let ids = packed::lines(&names).filter_map(|id| id.parse().ok());
            ids.filter_map(|id| Some(Ok((keys::time_of(index, unit, &key)?, Work::Expiry(id))))).collect()
        }
        Err(error) => vec![Err(error.into())],
    })
}

/// Deliveries whose next attempt is due after a time, earliest first.
pub(super) fn retries_after(
    records: &impl Records,
    after: Timestamp,
) -> impl Iterator<Item = Result<Planned, StoreError>> {
    by_millis_after(records, keys::RETRIES, after, |key| keys::delivery_to_retry(key).map(Work::Retry))
}

/// Payments whose gateway check is due after a time, earliest first.
pub(super) fn gateway_checks_after(
    records: &impl Records,
    after: Timestamp,
) -> impl Iterator<Item = Result<Planned, StoreError>> {
    by_millis_after(records, keys::CHECKS, after, |key| keys::payment_to_check(key).map(Work::GatewayCheck))
}

fn by_millis_after(
    records: &impl Records,
    index: &'static [u8],
    after: Timestamp,
    work: impl Fn(&[u8]) -> Option<Work>,
) -> impl Iterator<Item = Result<Planned, StoreError>> {
    records.range(keys::later(index, 1, after)).filter_map(move |entry| match entry {
        Ok((key, _)) => Some(Ok((keys::time_of(index, 1, &key)?, work(&key)?))),
        Err(error) => Some(Err(error.into())),
    })
}
