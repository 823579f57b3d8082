//! The key of each record. One tree holds all records; each kind has a key prefix.
//!
//! Identifiers hold no `/`, so the parts of a key cannot run together.

use std::{fmt, ops::Range, str::FromStr};

use payments_core::{
    AppId, Currency, Day, DeliveryId, DeveloperId, Environment, EventId, KeyId, LedgerAccount, PaymentId, Status,
    Timestamp, WebhookId, WorkspaceId,
};

use sha2::{Digest, Sha256};

use crate::domain::{IdempotencyKey, KeyHash, Lookup, Scope};

/// Defines one function for each key that is text.
macro_rules! keys {
    ($($(#[$doc:meta])* $name:ident($($part:ident: $type:ty),+) = $text:literal;)+) => {
        $($(#[$doc])* pub(super) fn $name($($part: $type),+) -> Vec<u8> { format!($text).into_bytes() })+
    };
}

keys! {
    workspace(id: &str) = "workspace/{id}";
    /// Holds the id of a developer's workspace.
    workspace_of(developer: &DeveloperId) = "workspace-of/{developer}";
    /// The prefix of the ids of a workspace's API keys.
    api_key_ids_of(workspace: &WorkspaceId) = "key-of/{workspace}/";
    /// Holds the hash of an API key.
    api_key_id(workspace: &WorkspaceId, id: &KeyId) = "key-of/{workspace}/{id}";
    apps_of(developer: &DeveloperId) = "app/{developer}/";
    app(developer: &DeveloperId, id: &AppId) = "app/{developer}/{id}";
    gateway_token(name: &str) = "gateway-token/{name}";

    session(id: &PaymentId) = "payment/{id}";
    /// The prefix of a payment's postings.
    postings_of(payment: &PaymentId) = "posting/{payment}/";
    /// The postings of one change of a payment.
    postings(payment: &PaymentId, version: u64) = "posting/{payment}/{version:020}";
    manual_settlement(id: &PaymentId) = "unsettled/{id}";
    manual_review(id: &PaymentId) = "review/{id}";
    /// The volume: the amount and the number of payments ever paid.
    volume(scope: &Scope, currency: Currency) = "volume/{scope}/{currency}";
    /// The totals of a day. Keys sort by it.
    day(scope: &Scope, currency: Currency, day: Day) = "day/{scope}/{currency}/{day}";

    endpoint(id: &WebhookId) = "endpoint/{id}";
    endpoints_of(scope: &Scope) = "endpoint-of/{scope}/";
    endpoint_of(scope: &Scope, id: &WebhookId) = "endpoint-of/{scope}/{id}";
    /// Names the deliveries of a payment's events, one in each line.
    deliveries_of(payment: &PaymentId) = "delivery-of/{payment}";
    delivery(id: &DeliveryId) = "delivery/{id}";
    /// The prefix of an endpoint's pending deliveries.
    outbox_of(endpoint: &WebhookId) = "outbox/{endpoint}/";
    outbox(endpoint: &WebhookId, delivery: &DeliveryId) = "outbox/{endpoint}/{delivery}";
    pending_event(event: &EventId) = "untold/{event}";

    /// A part of the log of a scope's requests.
    log_part(name: &str) = "log/{name}";

    /// The count of a list or status bitmap of this name.
    count(name: &str) = "count/{name}";
}

/// Whether a key is of a record, and not of the state of the store itself.
pub(super) fn is_record(key: &[u8]) -> bool {
    !key.starts_with(b"meta/")
}

/// The last delivery that pruning redacted or passed over. No earlier one is left to redact.
pub(super) const REDACTED_UP_TO: &[u8] = b"meta/bodies-forgotten";

/// The last migration into this store.
pub(super) const MIGRATION: &[u8] = b"meta/migration";

pub(super) const WORKSPACES: &[u8] = b"workspace/";
pub(super) const API_KEYS: &[u8] = b"key/";
pub(super) const APPS: &[u8] = b"app/";
pub(super) const GATEWAY_TOKENS: &[u8] = b"gateway-token/";
pub(super) const ENDPOINTS: &[u8] = b"endpoint/";
/// The index from scopes to their endpoints.
pub(super) const ENDPOINTS_OF_SCOPES: &[u8] = b"endpoint-of/";
pub(super) const SESSIONS: &[u8] = b"payment/";
pub(super) const DELIVERIES: &[u8] = b"delivery/";
pub(super) const DELIVERIES_OF_PAYMENTS: &[u8] = b"delivery-of/";
/// All deliveries in outboxes.
pub(super) const OUTBOX: &[u8] = b"outbox/";
/// The record of the number of all deliveries in outboxes. A start reads it instead of counting them.
pub(super) fn pending_deliveries() -> Vec<u8> {
    count("outbox")
}

/// Logs of requests.
pub(super) const LOGS: &[u8] = b"log/";

/// Deliveries that wait for their next attempt, by its time.
pub(super) const RETRIES: &[u8] = b"retry/";
/// The record of the number of all deliveries that wait for their next attempt.
pub(super) fn waiting_deliveries() -> Vec<u8> {
    count("retries")
}

/// Where in its list each event is.
pub(super) const EVENT_PLACES: &[u8] = b"event-at/";

/// Pending events. Keys sort by age.
pub(super) const PENDING_EVENTS: &[u8] = b"untold/";
/// Payments whose refund needs manual settlement.
pub(super) const MANUAL_SETTLEMENTS: &[u8] = b"unsettled/";
/// Payments that need manual review.
pub(super) const MANUAL_REVIEWS: &[u8] = b"review/";
/// The index from API key ids to hashes.
pub(super) const API_KEY_IDS: &[u8] = b"key-of/";
/// Used idempotency keys, claims on them, and stored responses.
pub(super) const KEYS_USED: &[u8] = b"used/";
pub(super) const CLAIMS: &[u8] = b"claim/";
pub(super) const RESPONSES: &[u8] = b"responses/";
/// The bitmaps of the payments that values find.
pub(super) const FOUND: &[u8] = b"found/";
/// Lists, status bitmaps, and the counts of both and of the outbox.
pub(super) const LISTS: &[u8] = b"places/";
pub(super) const BITMAPS: &[u8] = b"marks/";
pub(super) const COUNTS: &[u8] = b"count/";
/// The time index of open sessions by their expiry.
pub(super) const EXPIRIES: &[u8] = b"ends/";
/// The time index of gateway checks.
pub(super) const CHECKS: &[u8] = b"check/";

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.developer_id, self.environment)
    }
}

/// The scope in the first two parts of a name.
pub(super) fn scope_of(name: &str) -> Option<Scope> {
    let mut parts = name.split('/');
    let developer_id = parts.next()?.parse().ok()?;
    let environment = parts.next()?;
    let environment = [Environment::Live, Environment::Test].into_iter().find(|one| one.as_str() == environment)?;
    Some(Scope { developer_id, environment })
}

/// The scope of an entry in the index from scopes to endpoints.
pub(super) fn scope_with_endpoint(key: &[u8]) -> Option<Scope> {
    scope_of(str::from_utf8(key.strip_prefix(ENDPOINTS_OF_SCOPES)?).ok()?)
}

/// The id that follows a prefix in a key.
pub(super) fn id_after<I: FromStr>(prefix: &[u8], key: &[u8]) -> Option<I> {
    str::from_utf8(key.strip_prefix(prefix)?).ok()?.parse().ok()
}

/// The day of a record of totals.
pub(super) fn day_of(key: &[u8]) -> Option<Day> {
    str::from_utf8(key).ok()?.rsplit('/').next()?.parse().ok()
}

pub(super) fn api_key(hash: &KeyHash) -> Vec<u8> {
    [b"key/", hash.0.as_slice()].concat()
}

pub(super) fn balance(scope: &Scope, currency: Currency, account: LedgerAccount) -> Vec<u8> {
    let account = match account {
        LedgerAccount::GatewayClearing => "gateway_clearing",
        LedgerAccount::Merchant => "merchant",
        LedgerAccount::PlatformFee => "platform_fee",
    };
    format!("balance/{scope}/{currency}/{account}").into_bytes()
}

/// One record of a time index holds the entries of 2 ms. So a batch under load writes few of them, and a session expires at
/// most 2 ms late.
pub(super) const BUCKET_MILLIS: u64 = 2;

/// The record of a time index that holds the entries of the same 2 ms.
pub(super) fn bucket(prefix: &[u8], at: Timestamp) -> Vec<u8> {
    numbered(prefix, millis(at) / BUCKET_MILLIS)
}

/// The records of a time index that hold entries before a time.
pub(super) fn buckets_before(prefix: &[u8], time: Timestamp) -> Range<Vec<u8>> {
    prefix.to_vec()..bucket(prefix, time)
}

/// The keys of a time index, whose numbers count units of time, after a time.
pub(super) fn later(index: &[u8], unit_millis: u64, time: Timestamp) -> Range<Vec<u8>> {
    numbered(index, millis(time) / unit_millis + 1)..numbered(index, u64::MAX)
}

/// The time of a key of a time index, whose numbers count units of time.
pub(super) fn time_of(index: &[u8], unit_millis: u64, key: &[u8]) -> Option<Timestamp> {
    let number = u64::from_be_bytes(key.strip_prefix(index)?.first_chunk().copied()?);
    Timestamp::from_millis(i64::try_from(number.checked_mul(unit_millis)?).ok()?).ok()
}

/// The record that says where an event is, with the other events of the same 2 ms.
pub(super) fn event_places(id: &EventId) -> Vec<u8> {
    numbered(EVENT_PLACES, id.created_at().map_or(0, millis) / BUCKET_MILLIS)
}

/// The index entry of a payment whose gateway is due at a time. Keys sort by time.
pub(super) fn check(at: Timestamp, id: &PaymentId) -> Vec<u8> {
    [numbered(CHECKS, millis(at)).as_slice(), id.as_str().as_bytes()].concat()
}

/// The gateway checks that are due before a time.
pub(super) fn checks_before(time: Timestamp) -> Range<Vec<u8>> {
    CHECKS.to_vec()..numbered(CHECKS, millis(time))
}

/// The payment of a gateway check.
pub(super) fn payment_to_check(key: &[u8]) -> Option<PaymentId> {
    id_after(key.get(..CHECKS.len() + size_of::<u64>())?, key)
}

/// The index entry of a delivery whose next attempt is due at a time. Keys sort by time.
pub(super) fn retry(at: Timestamp, id: &DeliveryId) -> Vec<u8> {
    [numbered(RETRIES, millis(at)).as_slice(), id.as_str().as_bytes()].concat()
}

/// The deliveries whose next attempt is due before a time.
pub(super) fn retries_before(time: Timestamp) -> Range<Vec<u8>> {
    RETRIES.to_vec()..numbered(RETRIES, millis(time))
}

/// The delivery of an entry in the index of retries.
pub(super) fn delivery_to_retry(key: &[u8]) -> Option<DeliveryId> {
    id_after(key.get(..RETRIES.len() + size_of::<u64>())?, key)
}

fn millis(time: Timestamp) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(0)
}

/// A key that ends with a number. Keys with the same prefix sort by it.
pub(super) fn numbered(prefix: &[u8], number: u64) -> Vec<u8> {
    [prefix, number.to_be_bytes().as_slice()].concat()
}

/// The length of an idempotency key's digest.
const DIGEST_BYTES: usize = 32;

pub(super) fn idempotency(key: &IdempotencyKey) -> Vec<u8> {
    [format!("used/{}/", key.scope).as_bytes(), key.digest.as_slice()].concat()
}

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

/// The claim on an idempotency key.
pub(super) fn claim(key: &IdempotencyKey) -> Vec<u8> {
    [format!("claim/{}/", key.scope).as_bytes(), key.digest.as_slice()].concat()
}

/// The used key that belongs to a claim.
pub(super) fn used_of_claim(key: &[u8]) -> Option<Vec<u8>> {
    let used = [KEYS_USED, key.strip_prefix(CLAIMS)?].concat();
    scope_of(&name_of_used_key(&used)?).map(|_| used)
}

/// How many entries of a list share one record.
pub(super) const LEAF: u64 = 32;
/// How many bits of a status bitmap share one record. A page of a status takes one step for each record that it skips.
pub(super) const BLOCK: u64 = 512;

/// A list in the order of creation, by its name. Each entry keeps its position, counted from 0. Nothing leaves a list, so its
/// count is the next position.
pub(super) struct List(String);

impl List {
    pub(super) fn payments(scope: &Scope) -> Self {
        Self(format!("{scope}/payments"))
    }

    pub(super) fn events(scope: &Scope) -> Self {
        Self(format!("{scope}/events"))
    }

    pub(super) fn transactions(scope: &Scope) -> Self {
        Self(format!("{scope}/transactions"))
    }

    pub(super) fn deliveries(scope: &Scope) -> Self {
        Self(format!("{scope}/deliveries"))
    }

    pub(super) fn deliveries_to(scope: &Scope, endpoint: &WebhookId) -> Self {
        Self(format!("{scope}/deliveries.{endpoint}"))
    }

    /// The record of its count.
    pub(super) fn count(&self) -> Vec<u8> {
        count(&self.0)
    }

    /// The record that names the entries around a position, one in each line.
    pub(super) fn leaf(&self, position: u64) -> Vec<u8> {
        part(LISTS, &self.0, position / LEAF)
    }
}

/// The part of a bitmap's name between the scope and the public status.
const WITH_STATUS: &str = "/payments.";

/// The payments of one public status: a bit for each position in the list of all payments. Holds its name.
pub(super) struct StatusBitmap(String);

impl StatusBitmap {
    pub(super) fn of(scope: &Scope, status: &Status) -> Self {
        Self(format!("{scope}{WITH_STATUS}{status}"))
    }

    /// The record of the number of set bits.
    pub(super) fn count(&self) -> Vec<u8> {
        count(&self.0)
    }

    /// The prefix of its records, which sort by their numbers.
    pub(super) fn blocks(&self) -> Vec<u8> {
        [BITMAPS, self.0.as_bytes(), b"/"].concat()
    }

    /// The record that holds the bit of a position.
    pub(super) fn block(&self, position: u64) -> Vec<u8> {
        part(BITMAPS, &self.0, position / BLOCK)
    }
}

/// How many bytes of a value's digest a key has.
const VALUE_BYTES: usize = 16;

/// The prefix of the records of a bitmap: the payments of a scope that a value finds, by their positions in the list of all. The
/// digest hides the value and gives every key the same length.
pub(super) fn found_by(scope: &Scope, lookup: &Lookup) -> Vec<u8> {
    let digest = Sha256::digest(format!("{} {}", lookup.kind.as_str(), lookup.value));
    [FOUND, scope.to_string().as_bytes(), b"/", &digest[..VALUE_BYTES]].concat()
}

/// The scope and the number of a record of such a bitmap.
pub(super) fn scope_and_number_found(key: &[u8]) -> Option<(Scope, u64)> {
    let (name, number) = key.strip_prefix(FOUND)?.split_last_chunk::<8>()?;
    let (scope, _) = name.split_last_chunk::<VALUE_BYTES>()?;
    Some((scope_of(str::from_utf8(scope).ok()?)?, u64::from_be_bytes(*number)))
}

/// The environment and the status of the count of a status bitmap.
pub(super) fn count_of_status(key: &[u8]) -> Option<(Environment, Status)> {
    let name = str::from_utf8(key.strip_prefix(COUNTS)?).ok()?;
    let (_, status) = name.split_once(WITH_STATUS)?;
    Some((scope_of(name)?.environment, Status::from(status)))
}

/// One of the records of a list or bitmap of this name.
pub(super) fn part(prefix: &[u8], name: &str, number: u64) -> Vec<u8> {
    numbered(&[prefix, name.as_bytes(), b"/"].concat(), number)
}

/// The name of a list or bitmap, and the number of one of its records, from that record's key.
pub(super) fn name_and_number<'k>(prefix: &[u8], key: &'k [u8]) -> Option<(&'k str, u64)> {
    // The number may contain the byte of a slash, so its length tells where it begins.
    let (name, number) = key.strip_prefix(prefix)?.split_last_chunk::<8>()?;
    Some((str::from_utf8(name.strip_suffix(b"/")?).ok()?, u64::from_be_bytes(*number)))
}
