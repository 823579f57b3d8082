//! Where each record lies: one tree, one key prefix for each kind of record.
//!
//! A journal entry is keys and their values, so one tree is all it takes. Identifiers hold no `/`, so the parts of a key
//! cannot run together.

use std::ops::Range;

use payments_core::{
    AppId, Currency, DeliveryId, DeveloperId, Environment, EventId, KeyId, LedgerAccount, PaymentId, Status, Timestamp,
    WebhookId, WorkspaceId,
};

use crate::domain::{IdempotencyKey, KeyHash, Scope};

/// The last delivery that has forgotten its bodies: those before it have too.
pub(super) const BODIES_FORGOTTEN: &[u8] = b"meta/bodies-forgotten";

pub(super) fn workspace(id: &str) -> Vec<u8> {
    format!("workspace/{id}").into_bytes()
}

pub(super) fn workspace_of(developer: &DeveloperId) -> Vec<u8> {
    format!("workspace-of/{developer}").into_bytes()
}

pub(super) fn api_key(hash: &KeyHash) -> Vec<u8> {
    [b"key/", hash.as_bytes().as_slice()].concat()
}

/// What the keys of all API keys' ids begin with.
pub(super) const API_KEY_IDS: &[u8] = b"key-of/";

/// From a key's id to its hash, among the keys of its workspace.
pub(super) fn api_key_id(workspace: &WorkspaceId, id: &KeyId) -> Vec<u8> {
    format!("key-of/{workspace}/{id}").into_bytes()
}

/// What the keys of all payments begin with, and those of all deliveries.
pub(super) const SESSIONS: &[u8] = b"payment/";
pub(super) const DELIVERIES: &[u8] = b"delivery/";

pub(super) fn session(id: &PaymentId) -> Vec<u8> {
    format!("payment/{id}").into_bytes()
}

/// How many milliseconds share one record of an index in time order: under load a batch then writes few of them, and a
/// session ends late by no more than this.
const BUCKET_MILLIS: u64 = 2;

/// What the keys of the records begin with that name the open sessions by their ends.
pub(super) const ENDS: &[u8] = b"ends/";

/// The record that names the open sessions which end at about this time, one in each line.
pub(super) fn ends(at: Timestamp) -> Vec<u8> {
    bucket(ENDS, at)
}

/// The records of sessions that ended before a time.
pub(super) fn ends_before(time: Timestamp) -> Range<Vec<u8>> {
    ENDS.to_vec()..bucket(ENDS, time)
}

fn bucket(prefix: &[u8], at: Timestamp) -> Vec<u8> {
    [prefix, (millis(at) / BUCKET_MILLIS).to_be_bytes().as_slice()].concat()
}

/// What the keys of all checks of payments at their gateways begin with.
const CHECKS: &[u8] = b"check/";

/// When a payment's gateway is to be asked. The keys sort by time.
pub(super) fn check(at: Timestamp, id: &PaymentId) -> Vec<u8> {
    [in_time(CHECKS, at).as_slice(), id.as_str().as_bytes()].concat()
}

/// The checks before a time.
pub(super) fn checks_before(time: Timestamp) -> Range<Vec<u8>> {
    CHECKS.to_vec()..in_time(CHECKS, time)
}

/// The payment that a check is of.
pub(super) fn payment_to_check(key: &[u8]) -> Option<PaymentId> {
    std::str::from_utf8(key.strip_prefix(CHECKS)?.get(8..)?).ok()?.parse().ok()
}

fn in_time(prefix: &[u8], time: Timestamp) -> Vec<u8> {
    [prefix, millis(time).to_be_bytes().as_slice()].concat()
}

fn millis(time: Timestamp) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(0)
}

/// Payments whose refund waits to be settled by hand.
pub(super) const UNSETTLED: &[u8] = b"unsettled/";

pub(super) fn unsettled(id: &PaymentId) -> Vec<u8> {
    [UNSETTLED, id.as_str().as_bytes()].concat()
}

/// Payments that a person must look at.
pub(super) const REVIEWS: &[u8] = b"review/";

pub(super) fn review(id: &PaymentId) -> Vec<u8> {
    [REVIEWS, id.as_str().as_bytes()].concat()
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

/// All of the outbox.
pub(super) const OUTBOX: &[u8] = b"outbox/";

/// What an endpoint is owed.
pub(super) fn outbox_of(endpoint: &WebhookId) -> Vec<u8> {
    format!("outbox/{endpoint}/").into_bytes()
}

pub(super) fn outbox(endpoint: &WebhookId, delivery: &DeliveryId) -> Vec<u8> {
    format!("outbox/{endpoint}/{delivery}").into_bytes()
}

/// What the keys of events begin with whose deliveries are still to be made, the oldest first.
pub(super) const UNTOLD: &[u8] = b"untold/";

pub(super) fn untold(event: &EventId) -> Vec<u8> {
    [UNTOLD, event.as_str().as_bytes()].concat()
}

/// The event of such a key.
pub(super) fn untold_event(key: &[u8]) -> Option<EventId> {
    std::str::from_utf8(key.strip_prefix(UNTOLD)?).ok()?.parse().ok()
}

pub(super) fn idempotency(key: &IdempotencyKey) -> Vec<u8> {
    let scope = format!("used/{}/{}/", key.scope.developer_id, key.scope.environment);
    [scope.as_bytes(), key.digest.as_slice()].concat()
}

/// What the keys begin with that say when an idempotency key was used, and those of the responses of that time.
pub(super) const KEYS_USED: &[u8] = b"used/";
pub(super) const RESPONSES: &[u8] = b"responses/";

/// How a used key is named among the responses: its digest may hold any byte, JSON may not.
pub(super) fn name_of_used(key: &[u8]) -> Option<String> {
    let (scope, digest) = key.strip_prefix(KEYS_USED)?.split_last_chunk::<DIGEST_BYTES>()?;
    Some(String::from_utf8(scope.to_vec()).ok()? + &hex::encode(digest))
}

/// The used key of that name.
pub(super) fn used(name: &str) -> Option<Vec<u8>> {
    let (scope, digest) = name.split_at_checked(name.len().checked_sub(2 * DIGEST_BYTES)?)?;
    Some([KEYS_USED, scope.as_bytes(), &hex::decode(digest).ok()?].concat())
}

/// What the keys of all claims on idempotency keys begin with.
pub(super) const CLAIMS: &[u8] = b"claim/";

/// The claim on an idempotency key.
pub(super) fn claim(key: &IdempotencyKey) -> Vec<u8> {
    [CLAIMS, idempotency(key).get(KEYS_USED.len()..).unwrap_or_default()].concat()
}

/// The used key that a claim is on.
pub(super) fn used_of_claim(key: &[u8]) -> Option<Vec<u8>> {
    let used = [KEYS_USED, key.strip_prefix(CLAIMS)?].concat();
    let name = name_of_used(&used)?;
    scope_of(&mut name.split('/')).map(|_| used)
}

/// The length of what tells an idempotency key.
const DIGEST_BYTES: usize = 32;

/// Whose a record is, from the first two parts of its name.
pub(super) fn scope_of<'n>(parts: &mut impl Iterator<Item = &'n str>) -> Option<Scope> {
    let developer_id = parts.next()?.parse().ok()?;
    let environment = parts.next()?;
    let environment = [Environment::Live, Environment::Test].into_iter().find(|one| one.as_str() == environment)?;
    Some(Scope { developer_id, environment })
}

/// The record that has the responses kept at about this time.
pub(super) fn responses(at: Timestamp) -> Vec<u8> {
    bucket(RESPONSES, at)
}

/// The records of responses kept before a time.
pub(super) fn responses_before(time: Timestamp) -> Range<Vec<u8>> {
    RESPONSES.to_vec()..bucket(RESPONSES, time)
}

/// What the keys of a payment's postings begin with.
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

/// What was ever paid.
pub(super) fn volume(scope: &Scope, currency: Currency) -> Vec<u8> {
    format!("volume/{}/{}/{currency}", scope.developer_id, scope.environment).into_bytes()
}

pub(super) fn apps_of(developer: &DeveloperId) -> Vec<u8> {
    format!("app/{developer}/").into_bytes()
}

pub(super) fn app(developer: &DeveloperId, id: &AppId) -> Vec<u8> {
    [apps_of(developer).as_slice(), id.as_str().as_bytes()].concat()
}

/// What the names of the payments of one status begin with, after whose they are.
const WITH_STATUS: &str = "payments.";

/// Whether a name is of the payments of one status.
pub(super) fn is_of_a_status(name: &str) -> bool {
    name.rsplit('/').next().is_some_and(|last| last.starts_with(WITH_STATUS))
}

/// What the keys of all counts begin with.
pub(super) const COUNTS: &[u8] = b"count/";

/// The environment and the status of a key that is the count of a list of payments by status.
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
/// How many places share one record that names what is at them.
pub(super) const LEAF: u64 = 32;
/// How many places share one record of marks: so many bits. To a page of a status it is one step for each such record
/// that is passed.
pub(super) const BLOCK: u64 = 512;

/// What the keys of the records of all lists begin with, and those of all marks.
pub(super) const LISTS: &[u8] = b"places/";
pub(super) const MARKS: &[u8] = b"marks/";

/// The name of a list or of marks, and the number of the record among its records, of a key of one.
pub(super) fn numbered<'k>(prefix: &[u8], key: &'k [u8]) -> Option<(&'k str, u64)> {
    // A number may hold any byte, a slash as well; so the key is cut by its length.
    let (name, number) = key.strip_prefix(prefix)?.split_last_chunk::<8>()?;
    Some((std::str::from_utf8(name.strip_suffix(b"/")?).ok()?, u64::from_be_bytes(*number)))
}

/// A list in the order of time: each entry has a place, counted from 0, that it keeps. Nothing leaves it, so its count is
/// the next place.
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

    /// How many entries it has.
    pub(super) fn count(&self) -> Vec<u8> {
        count(&self.name)
    }

    /// The record that names the entry at a place and those beside it, one in each line.
    pub(super) fn leaf(&self, place: u64) -> Vec<u8> {
        [LISTS, self.name.as_bytes(), b"/", (place / LEAF).to_be_bytes().as_slice()].concat()
    }
}

/// The payments of one public status: marks on the list of all payments.
pub(super) struct Marks {
    name: String,
}

impl Marks {
    pub(super) fn of(scope: &Scope, status: &Status) -> Self {
        Self { name: List::named(scope, &format!("{WITH_STATUS}{status}")).name }
    }

    /// How many there are.
    pub(super) fn count(&self) -> Vec<u8> {
        count(&self.name)
    }

    /// What the keys of all its records begin with. They sort as numbers.
    pub(super) fn blocks(&self) -> Vec<u8> {
        [MARKS, self.name.as_bytes(), b"/"].concat()
    }

    /// The record that has the mark of a place.
    pub(super) fn block(&self, place: u64) -> Vec<u8> {
        [self.blocks().as_slice(), (place / BLOCK).to_be_bytes().as_slice()].concat()
    }
}

/// The count of a list or of marks of this name.
pub(super) fn count(name: &str) -> Vec<u8> {
    [COUNTS, name.as_bytes()].concat()
}
