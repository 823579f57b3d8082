//! Work that is due.

use payments_core::{DeliveryId, Timestamp, WebhookId};

use super::{codec::Records, keys, packed};
use crate::store::{Due, StoreError, Work};

/// The endpoints with pending deliveries, and when the oldest of these was committed. Takes one step for each endpoint, not for
/// each delivery.
pub(super) fn lanes(
    records: &impl Records,
) -> impl Iterator<Item = Result<(WebhookId, Option<Timestamp>), StoreError>> {
    let mut after = keys::OUTBOX.to_vec();
    std::iter::from_fn(move || {
        let key = match records.prefix_after(keys::OUTBOX, &after).next()? {
            Ok((key, _)) => key,
            Err(error) => return Some(Err(error.into())),
        };
        let (endpoint, oldest) = str::from_utf8(key.strip_prefix(keys::OUTBOX)?).ok()?.split_once('/')?;
        let endpoint = endpoint.parse().ok()?;
        let oldest = oldest.parse().ok().and_then(|oldest: DeliveryId| oldest.created_at());
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

/// Payments whose gateway check is due before a time, oldest first.
pub(super) fn gateway_checks(records: &impl Records, now: Timestamp) -> impl Iterator<Item = Result<Due, StoreError>> {
    records.range(keys::checks_before(now)).filter_map(|entry| match entry {
        Ok((key, _)) => keys::payment_to_check(&key).map(|id| Ok((Work::GatewayCheck(id), None))),
        Err(error) => Some(Err(error.into())),
    })
}
