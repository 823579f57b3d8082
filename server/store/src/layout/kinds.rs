//! The kinds of records, by the names in their keys.

use super::{
    booking::StoredBooking,
    delivery::StoredDelivery,
    entry::{Entry, Record},
    event::StoredEvent,
    idempotency::{ClaimOn, ResponseOf},
    keys,
    merchants::{KeyOf, TokenOf},
    payment::StoredPayment,
    payout::StoredPayout,
    reads::parse,
};
use crate::{
    StoreError,
    domain::{
        App, AuditRecord, BooksEntry, Coverage, Destination, Endpoint, GatewayPause, LogPart, Notices, PersonSession,
        PlatformKey, SettledRow, Workspace,
    },
};

/// The entries of a stored record.
pub(super) fn entries_of(key: &[u8], value: &[u8]) -> Result<Vec<Entry>, StoreError> {
    let unknown = || StoreError::corrupt(key, "its key is of no kind that this version writes");
    let (_, kind) = keys::kind_of(key).ok_or_else(unknown)?;
    Ok(match kind {
        "workspace" => parse::<Workspace>(key, value)?.entries(),
        "api-key" => KeyOf { hash: keys::hash_of(key).ok_or_else(unknown)?, key: parse(key, value)? }.entries(),
        "app" => parse::<App>(key, value)?.entries(),
        "gateway-token" => {
            let gateway = keys::rest_of(key).ok_or_else(unknown)?.to_owned();
            TokenOf { gateway, token: parse(key, value)? }.entries()
        }
        "endpoint" => parse::<Endpoint>(key, value)?.entries(),
        "payment" => StoredPayment::parse(key, value)?.entries(),
        "event" => StoredEvent::parse(key, value)?.entries(),
        "booking" => parse::<StoredBooking>(key, value)?.entries(),
        "delivery" => parse::<StoredDelivery>(key, value)?.entries(),
        "response" => {
            ResponseOf { key: keys::idempotency_key(key).ok_or_else(unknown)?, kept: parse(key, value)? }.entries()
        }
        "claim" => {
            ClaimOn { key: keys::idempotency_key(key).ok_or_else(unknown)?, claim: parse(key, value)? }.entries()
        }
        "settled-row" => parse::<SettledRow>(key, value)?.entries(),
        "books" => parse::<BooksEntry>(key, value)?.entries(),
        "coverage" => parse::<Coverage>(key, value)?.entries(),
        "audit" => parse::<AuditRecord>(key, value)?.entries(),
        "platform-key" => parse::<PlatformKey>(key, value)?.entries(),
        "gateway-pause" => parse::<GatewayPause>(key, value)?.entries(),
        "notices" => parse::<Notices>(key, value)?.entries(),
        "person-session" => parse::<PersonSession>(key, value)?.entries(),
        "destination" => parse::<Destination>(key, value)?.entries(),
        "payout" => parse::<StoredPayout>(key, value)?.entries(),
        "log" => parse::<LogPart>(key, value)?.entries(),
        _ => return Err(unknown()),
    })
}
