//! Work that is due.

use payments_core::{Timestamp, WebhookId};

use super::{codec::Records, keys, packed};
use crate::store::{Due, StoreError, Work};

/// Every endpoint that has pending deliveries.
pub(super) fn lanes(records: &impl Records) -> impl Iterator<Item = Result<Due, StoreError>> {
    endpoints_with_outbox(records).map(|endpoint| Ok((Work::Lane(endpoint?), None)))
}

/// The ids of endpoints with pending deliveries. Takes one step for each endpoint, not for each delivery.
pub(super) fn endpoints_with_outbox(records: &impl Records) -> impl Iterator<Item = Result<WebhookId, StoreError>> {
    let mut after = keys::OUTBOX.to_vec();
    std::iter::from_fn(move || {
        let key = match records.prefix_after(keys::OUTBOX, &after).next()? {
            Ok((key, _)) => key,
            Err(error) => return Some(Err(error.into())),
        };
        let id = key.strip_prefix(keys::OUTBOX)?.split(|byte| *byte == b'/').next()?;
        let id: WebhookId = String::from_utf8_lossy(id).parse().ok()?;
        // Skips every other delivery of this endpoint.
        after = keys::outbox_of(&id);
        after.push(0xff);
        Some(Ok(id))
    })
}

/// Open sessions that expired before a time, oldest first.
pub(super) fn expired(records: &impl Records, now: Timestamp) -> impl Iterator<Item = Result<Due, StoreError>> {
    records.range(keys::expired_before(now)).flat_map(|entry| match entry {
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
