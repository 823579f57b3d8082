//! Where each record lies: one sled tree, one key prefix for each kind of record.
//!
//! sled applies a batch atomically to one tree only, so everything is in one. Identifiers hold no `/`, so the parts of
//! a key cannot run together.

use std::ops::Range;

use payments_core::{
    AppId, Currency, DeliveryId, DeveloperId, Environment, EventId, KeyId, LedgerAccount, PaymentId, Status, Timestamp,
    WebhookId, WorkspaceId,
};

use crate::store::{IdempotencyKey, KeyHash, Scope};

/// The number of the last journal entry that the tree holds.
pub(super) const APPLIED: &[u8] = b"meta/applied";
/// When the last entry was committed, in milliseconds since 1970. In the journal it tells each entry's time.
pub(super) const COMMITTED_AT: &[u8] = b"meta/committed-at";
/// The last delivery that has forgotten its bodies: those before it have too.
pub(super) const BODIES_FORGOTTEN: &[u8] = b"meta/bodies-forgotten";
/// The version of this layout.
pub(super) const FORMAT: &[u8] = b"meta/format";

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

/// What the keys of the ends of all open sessions begin with.
const SESSION_ENDS: &[u8] = b"session-end/";

/// The end of an open session. The keys sort by time.
pub(super) fn session_end(at: Timestamp, id: &PaymentId) -> Vec<u8> {
    [in_time(SESSION_ENDS, at).as_slice(), id.as_str().as_bytes()].concat()
}

/// The ends of sessions before a time.
pub(super) fn session_ends_before(time: Timestamp) -> Range<Vec<u8>> {
    SESSION_ENDS.to_vec()..in_time(SESSION_ENDS, time)
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

/// The payment that an entry of an index in time order is about.
pub(super) fn payment_in_time(key: &[u8]) -> Option<PaymentId> {
    let id = key.strip_prefix(SESSION_ENDS).or_else(|| key.strip_prefix(CHECKS))?.get(8..)?;
    std::str::from_utf8(id).ok()?.parse().ok()
}

fn in_time(prefix: &[u8], time: Timestamp) -> Vec<u8> {
    let millis = u64::try_from(time.as_millis()).unwrap_or(0);
    [prefix, millis.to_be_bytes().as_slice()].concat()
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

pub(super) fn event(id: &EventId) -> Vec<u8> {
    format!("event/{id}").into_bytes()
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

pub(super) fn idempotency(key: &IdempotencyKey) -> Vec<u8> {
    let scope = format!("idempotency/{}/{}/", key.scope.developer_id, key.scope.environment);
    [scope.as_bytes(), key.digest.as_slice()].concat()
}

/// What the keys of all kept responses begin with, and those of when they were kept.
pub(super) const RESPONSES: &[u8] = b"idempotency/";
pub(super) const KEPT: &[u8] = b"kept/";

/// When a response was kept. The keys sort by time.
pub(super) fn kept(at: Timestamp, response: &[u8]) -> Vec<u8> {
    let of = response.strip_prefix(RESPONSES).unwrap_or_default();
    [in_time(KEPT, at).as_slice(), of].concat()
}

/// The responses kept before a time.
pub(super) fn kept_before(time: Timestamp) -> Range<Vec<u8>> {
    KEPT.to_vec()..in_time(KEPT, time)
}

/// The key of the response that an entry of the index is about.
pub(super) fn response_in_time(key: &[u8]) -> Option<Vec<u8>> {
    let of = key.strip_prefix(KEPT)?.get(8..)?;
    Some([RESPONSES, of].concat())
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

/// What the keys of all lists' entries begin with, and those of their blocks.
pub(super) const LISTS: &[u8] = b"list/";
pub(super) const BLOCKS: &[u8] = b"block/";

/// What the names of the lists of payments by status begin with.
const WITH_STATUS: &str = "payments.";

/// What the keys of all lists' counts begin with.
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

/// The name of a list with gaps, and the place in it, of a key that is an entry of one.
pub(super) fn entry_with_gaps(key: &[u8]) -> Option<(&[u8], u64)> {
    // A place may hold any byte, a slash as well; so the key is cut by its length.
    let (list, place) = key.strip_prefix(LISTS)?.split_last_chunk::<8>()?;
    let list = list.strip_suffix(b"/")?;
    let name = list.rsplit(|byte| *byte == b'/').next()?;
    name.starts_with(WITH_STATUS.as_bytes()).then(|| (list, u64::from_be_bytes(*place)))
}

/// How many places make a block: to a page of a list with gaps it is so many steps at most within a block, and one for
/// each block before it.
pub(super) const BLOCK: u64 = 512;

/// A list in the order of time: each entry has a place, counted from 0, that it keeps.
pub(super) struct List {
    name: String,
    /// Nothing ever leaves it, so its places have no gap and its count is the next place.
    pub(super) is_dense: bool,
}

impl List {
    pub(super) fn payments(scope: &Scope) -> Self {
        Self::dense(scope, "payments")
    }

    pub(super) fn payments_with(scope: &Scope, status: &Status) -> Self {
        Self { is_dense: false, ..Self::dense(scope, &format!("{WITH_STATUS}{status}")) }
    }

    pub(super) fn deliveries(scope: &Scope) -> Self {
        Self::dense(scope, "deliveries")
    }

    pub(super) fn deliveries_to(scope: &Scope, endpoint: &WebhookId) -> Self {
        Self::dense(scope, &format!("deliveries.{endpoint}"))
    }

    fn dense(scope: &Scope, name: &str) -> Self {
        Self { name: format!("{}/{}/{name}", scope.developer_id, scope.environment), is_dense: true }
    }

    /// How many entries it has.
    pub(super) fn count(&self) -> Vec<u8> {
        [COUNTS, self.name.as_bytes()].concat()
    }

    /// What the keys of all its entries begin with.
    pub(super) fn entries(&self) -> Vec<u8> {
        [LISTS, self.name.as_bytes(), b"/"].concat()
    }

    /// What the keys of all its blocks begin with.
    pub(super) fn blocks(&self) -> Vec<u8> {
        [BLOCKS, self.name.as_bytes(), b"/"].concat()
    }

    /// How many entries there are among so many places, for a list whose places have gaps. Blocks sort as numbers.
    pub(super) fn block(&self, place: u64) -> Vec<u8> {
        [self.blocks().as_slice(), (place / BLOCK).to_be_bytes().as_slice()].concat()
    }

    /// One entry. Places sort as numbers.
    pub(super) fn entry(&self, place: u64) -> Vec<u8> {
        [self.entries().as_slice(), place.to_be_bytes().as_slice()].concat()
    }
}
