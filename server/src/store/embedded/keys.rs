//! The key of each record. One tree holds all records; each kind has a key prefix.
//!
//! Identifiers hold no `/`, so the parts of a key cannot run together.

use std::ops::Range;

use payments_core::{
    AppId, Currency, DeliveryId, DeveloperId, Environment, EventId, KeyId, LedgerAccount, PaymentId, Status, Timestamp,
    WebhookId, WorkspaceId,
};

use crate::domain::{IdempotencyKey, KeyHash, Scope};

/// The last delivery that pruning redacted or passed over. No earlier one is left to redact.
pub(super) const REDACTED_UP_TO: &[u8] = b"meta/bodies-forgotten";

pub(super) fn workspace(id: &str) -> Vec<u8> {
    format!("workspace/{id}").into_bytes()
}

pub(super) fn workspace_of(developer: &DeveloperId) -> Vec<u8> {
    format!("workspace-of/{developer}").into_bytes()
}

pub(super) fn api_key(hash: &KeyHash) -> Vec<u8> {
    [b"key/", hash.as_bytes().as_slice()].concat()
}

/// The prefix of the index from API key ids to hashes.
pub(super) const API_KEY_IDS: &[u8] = b"key-of/";

/// The index entry that leads from an API key's id to its hash.
pub(super) fn api_key_id(workspace: &WorkspaceId, id: &KeyId) -> Vec<u8> {
    format!("key-of/{workspace}/{id}").into_bytes()
}

/// The prefixes of payments and deliveries.
pub(super) const SESSIONS: &[u8] = b"payment/";
pub(super) const DELIVERIES: &[u8] = b"delivery/";

pub(super) fn session(id: &PaymentId) -> Vec<u8> {
    format!("payment/{id}").into_bytes()
}

/// One record of a time index holds the entries of 2 ms. So a batch under load writes few of them, and a session expires at
/// most 2 ms late.
const BUCKET_MILLIS: u64 = 2;

/// The prefix of the time index of open sessions by their expiry.
pub(super) const EXPIRIES: &[u8] = b"ends/";

/// The record that names the open sessions that expire within the same 2 ms, one in each line.
pub(super) fn expiry(at: Timestamp) -> Vec<u8> {
    bucket(EXPIRIES, at)
}

/// The records of sessions that expired before a time.
pub(super) fn expired_before(time: Timestamp) -> Range<Vec<u8>> {
    EXPIRIES.to_vec()..bucket(EXPIRIES, time)
}

fn bucket(prefix: &[u8], at: Timestamp) -> Vec<u8> {
    [prefix, (millis(at) / BUCKET_MILLIS).to_be_bytes().as_slice()].concat()
}

/// The prefix of the time index of gateway checks.
const CHECKS: &[u8] = b"check/";

/// The index entry of a payment whose gateway is due at a time. Keys sort by time.
pub(super) fn check(at: Timestamp, id: &PaymentId) -> Vec<u8> {
    [in_time(CHECKS, at).as_slice(), id.as_str().as_bytes()].concat()
}

/// The gateway checks that are due before a time.
pub(super) fn checks_before(time: Timestamp) -> Range<Vec<u8>> {
    CHECKS.to_vec()..in_time(CHECKS, time)
}

/// The payment of a gateway check.
pub(super) fn payment_to_check(key: &[u8]) -> Option<PaymentId> {
    std::str::from_utf8(key.strip_prefix(CHECKS)?.get(8..)?).ok()?.parse().ok()
}

fn in_time(prefix: &[u8], time: Timestamp) -> Vec<u8> {
    [prefix, millis(time).to_be_bytes().as_slice()].concat()
}

fn millis(time: Timestamp) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(0)
}

/// The prefix of payments whose refund needs manual settlement.
pub(super) const MANUAL_SETTLEMENTS: &[u8] = b"unsettled/";

pub(super) fn manual_settlement(id: &PaymentId) -> Vec<u8> {
    [MANUAL_SETTLEMENTS, id.as_str().as_bytes()].concat()
}

/// The prefix of payments that need manual review.
pub(super) const MANUAL_REVIEWS: &[u8] = b"review/";

pub(super) fn manual_review(id: &PaymentId) -> Vec<u8> {
    [MANUAL_REVIEWS, id.as_str().as_bytes()].concat()
}

pub(super) fn gateway_token(name: &str) -> Vec<u8> {
    format!("gateway-token/{name}").into_bytes()
}

pub(super) fn endpoint(id: &WebhookId) -> Vec<u8> {
    format!("endpoint/{id}").into_bytes()
}

pub(super) fn endpoints_of(scope: &Scope) -> Vec<u8> {
    format!("endpoint-of/{}/{}/", scope.developer_id, scope.environment).into_bytes()
}

pub(super) fn endpoint_of(scope: &Scope, id: &WebhookId) -> Vec<u8> {
    [endpoints_of(scope).as_slice(), id.as_str().as_bytes()].concat()
}

pub(super) fn delivery(id: &DeliveryId) -> Vec<u8> {
    format!("delivery/{id}").into_bytes()
}

/// The prefix of all pending deliveries.
pub(super) const OUTBOX: &[u8] = b"outbox/";

/// The prefix of an endpoint's pending deliveries.
pub(super) fn outbox_of(endpoint: &WebhookId) -> Vec<u8> {
    format!("outbox/{endpoint}/").into_bytes()
}

pub(super) fn outbox(endpoint: &WebhookId, delivery: &DeliveryId) -> Vec<u8> {
    format!("outbox/{endpoint}/{delivery}").into_bytes()
}

/// The prefix of pending events. Keys sort by age.
pub(super) const PENDING_EVENTS: &[u8] = b"untold/";

pub(super) fn pending_event(event: &EventId) -> Vec<u8> {
    [PENDING_EVENTS, event.as_str().as_bytes()].concat()
}

/// The event of a pending event's key.
pub(super) fn event_of_pending(key: &[u8]) -> Option<EventId> {
    std::str::from_utf8(key.strip_prefix(PENDING_EVENTS)?).ok()?.parse().ok()
}

pub(super) fn idempotency(key: &IdempotencyKey) -> Vec<u8> {
    let scope = format!("used/{}/{}/", key.scope.developer_id, key.scope.environment);
    [scope.as_bytes(), key.digest.as_slice()].concat()
}

/// The prefixes of used idempotency keys and of stored responses.
pub(super) const KEYS_USED: &[u8] = b"used/";
pub(super) const RESPONSES: &[u8] = b"responses/";

/// The name of a used idempotency key in a stored response. The digest is written in hex, because JSON cannot hold any byte.
pub(super) fn name_of_used_key(key: &[u8]) -> Option<String> {
    let (scope, digest) = key.strip_prefix(KEYS_USED)?.split_last_chunk::<DIGEST_BYTES>()?;
    Some(String::from_utf8(scope.to_vec()).ok()? + &hex::encode(digest))
}

/// The used idempotency key of a name.
pub(super) fn used(name: &str) -> Option<Vec<u8>> {
    let (scope, digest) = name.split_at_checked(name.len().checked_sub(2 * DIGEST_BYTES)?)?;
    Some([KEYS_USED, scope.as_bytes(), &hex::decode(digest).ok()?].concat())
}

/// The prefix of claims on idempotency keys.
pub(super) const CLAIMS: &[u8] = b"claim/";

/// The claim on an idempotency key.
pub(super) fn claim(key: &IdempotencyKey) -> Vec<u8> {
    [CLAIMS, idempotency(key).get(KEYS_USED.len()..).unwrap_or_default()].concat()
}

/// The used key that belongs to a claim.
pub(super) fn used_of_claim(key: &[u8]) -> Option<Vec<u8>> {
    let used = [KEYS_USED, key.strip_prefix(CLAIMS)?].concat();
    let name = name_of_used_key(&used)?;
    scope_of(&mut name.split('/')).map(|_| used)
}

/// The length of an idempotency key's digest.
const DIGEST_BYTES: usize = 32;

/// The scope in the first two parts of a name.
pub(super) fn scope_of<'n>(parts: &mut impl Iterator<Item = &'n str>) -> Option<Scope> {
    let developer_id = parts.next()?.parse().ok()?;
    let environment = parts.next()?;
    let environment = [Environment::Live, Environment::Test].into_iter().find(|one| one.as_str() == environment)?;
    Some(Scope { developer_id, environment })
}

/// The record of the responses stored within the same 2 ms.
pub(super) fn responses(at: Timestamp) -> Vec<u8> {
    bucket(RESPONSES, at)
}

/// The records of responses stored before a time.
pub(super) fn responses_before(time: Timestamp) -> Range<Vec<u8>> {
    RESPONSES.to_vec()..bucket(RESPONSES, time)
}

/// The prefix of a payment's postings.
pub(super) fn postings_of(payment: &PaymentId) -> Vec<u8> {
    format!("posting/{payment}/").into_bytes()
}

/// The postings of one change of a payment.
pub(super) fn postings(payment: &PaymentId, version: u64) -> Vec<u8> {
    format!("posting/{payment}/{version:020}").into_bytes()
}

pub(super) fn balance(scope: &Scope, currency: Currency, account: LedgerAccount) -> Vec<u8> {
    let account = match account {
        LedgerAccount::GatewayClearing => "gateway_clearing",
        LedgerAccount::Merchant => "merchant",
        LedgerAccount::PlatformFee => "platform_fee",
    };
    format!("balance/{}/{}/{currency}/{account}", scope.developer_id, scope.environment).into_bytes()
}

/// The volume: the amount and the number of payments ever paid.
pub(super) fn volume(scope: &Scope, currency: Currency) -> Vec<u8> {
    format!("volume/{}/{}/{currency}", scope.developer_id, scope.environment).into_bytes()
}

pub(super) fn apps_of(developer: &DeveloperId) -> Vec<u8> {
    format!("app/{developer}/").into_bytes()
}

pub(super) fn app(developer: &DeveloperId, id: &AppId) -> Vec<u8> {
    [apps_of(developer).as_slice(), id.as_str().as_bytes()].concat()
}

/// The part of a name that comes before a public status.
const WITH_STATUS: &str = "payments.";

/// Whether a name is that of a status bitmap.
pub(super) fn is_of_a_status(name: &str) -> bool {
    name.rsplit('/').next().is_some_and(|last| last.starts_with(WITH_STATUS))
}

/// The prefix of the counts of lists and status bitmaps.
pub(super) const COUNTS: &[u8] = b"count/";

/// The environment and the status of the count of a status bitmap.
pub(super) fn count_of_status(key: &[u8]) -> Option<(Environment, Status)> {
    let name = std::str::from_utf8(key.strip_prefix(COUNTS)?).ok()?;
    let mut parts = name.rsplit('/');
    let status = Status::from(parts.next()?.strip_prefix(WITH_STATUS)?);
    let environment = match parts.next()? {
        "live" => Environment::Live,
        _ => Environment::Test,
    };
    Some((environment, status))
}
/// How many entries of a list share one record.
pub(super) const LEAF: u64 = 32;
/// How many bits of a status bitmap share one record. A page of a status takes one step for each record that it skips.
pub(super) const BLOCK: u64 = 512;

/// The prefixes of lists and of status bitmaps.
pub(super) const LISTS: &[u8] = b"places/";
pub(super) const BITMAPS: &[u8] = b"marks/";

/// The name of a list or bitmap, and the number of one of its records, from that record's key.
pub(super) fn numbered<'k>(prefix: &[u8], key: &'k [u8]) -> Option<(&'k str, u64)> {
    // The number may contain the byte of a slash, so its length tells where it begins.
    let (name, number) = key.strip_prefix(prefix)?.split_last_chunk::<8>()?;
    Some((std::str::from_utf8(name.strip_suffix(b"/")?).ok()?, u64::from_be_bytes(*number)))
}

/// A list in the order of creation. Each entry keeps its place, counted from 0. Nothing leaves a list, so its count is the
/// next place.
pub(super) struct List {
    name: String,
}

impl List {
    pub(super) fn payments(scope: &Scope) -> Self {
        Self::named(scope, "payments")
    }

    pub(super) fn deliveries(scope: &Scope) -> Self {
        Self::named(scope, "deliveries")
    }

    pub(super) fn deliveries_to(scope: &Scope, endpoint: &WebhookId) -> Self {
        Self::named(scope, &format!("deliveries.{endpoint}"))
    }

    fn named(scope: &Scope, name: &str) -> Self {
        Self { name: format!("{}/{}/{name}", scope.developer_id, scope.environment) }
    }

    /// The record of its count.
    pub(super) fn count(&self) -> Vec<u8> {
        count(&self.name)
    }

    /// The record that names the entries around a place, one in each line.
    pub(super) fn leaf(&self, place: u64) -> Vec<u8> {
        [LISTS, self.name.as_bytes(), b"/", (place / LEAF).to_be_bytes().as_slice()].concat()
    }
}

/// The payments of one public status: a bit for each place in the list of all payments.
pub(super) struct StatusBitmap {
    name: String,
}

impl StatusBitmap {
    pub(super) fn of(scope: &Scope, status: &Status) -> Self {
        Self { name: List::named(scope, &format!("{WITH_STATUS}{status}")).name }
    }

    /// The record of the number of set bits.
    pub(super) fn count(&self) -> Vec<u8> {
        count(&self.name)
    }

    /// The prefix of its records, which sort by their numbers.
    pub(super) fn blocks(&self) -> Vec<u8> {
        [BITMAPS, self.name.as_bytes(), b"/"].concat()
    }

    /// The record that holds the bit of a place.
    pub(super) fn block(&self, place: u64) -> Vec<u8> {
        [self.blocks().as_slice(), (place / BLOCK).to_be_bytes().as_slice()].concat()
    }
}

/// The count of a list or bitmap of this name.
pub(super) fn count(name: &str) -> Vec<u8> {
    [COUNTS, name.as_bytes()].concat()
}
