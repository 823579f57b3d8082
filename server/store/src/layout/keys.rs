//! The key of each value.
//!
//! A key is text, except for a number or a digest at its end. Ids contain no `/`, so the parts of a key stay apart.

use std::{fmt, ops::Range, str::FromStr};

use payments_core::{
    AppId, AuditId, Currency, Day, DeliveryId, DeveloperId, DisputeId, Environment, EventId, KeyId, PaymentId,
    PayoutId, Slot, Status, Timestamp, TransactionId, WebhookId, WorkspaceId,
};
use sha2::{Digest, Sha256};

use crate::{
    Work,
    bytes::{CELL, Table, with_prefix},
    domain::{BooksChange, GatewayName, IdempotencyKey, KeyHash, Lookup, Place, Scope, Subject},
};

/// Defines a function for each kind of key: its home, and its parts.
macro_rules! keys {
    ($table:ident $($(#[$doc:meta])* $name:ident($($part:ident: $type:ty),*) of $home:expr => $($text:expr),+;)+) => {
        $($(#[$doc])* pub(super) fn $name($($part: $type),*) -> Vec<u8> {
            key(Table::$table, &$home, &[$($text.as_ref()),+])
        })+
    };
}

/// Joins the parts of a key. It uses no formatter, because most requests make many keys.
fn key(table: Table, home: &[u8; CELL.len()], parts: &[&str]) -> Vec<u8> {
    let mut key = Vec::with_capacity(home.len() + 1 + parts.iter().map(|part| part.len()).sum::<usize>());
    key.extend_from_slice(home);
    key.push(table.mark());
    parts.iter().for_each(|part| key.extend_from_slice(part.as_bytes()));
    key
}

/// The home of a slot's keys: its number in three hex digits.
fn home(slot: Slot) -> [u8; CELL.len()] {
    [8, 4, 0].map(|shift| b"0123456789abcdef"[usize::from(slot.number() >> shift & 15)])
}

keys! { Record
    workspace(id: &WorkspaceId) of home(id.slot()) => "workspace/", id;
    /// The prefix of a developer's apps.
    apps_of(developer: &DeveloperId) of home(developer.slot()) => "app/", developer, "/";
    app(developer: &DeveloperId, id: &AppId) of home(developer.slot()) => "app/", developer, "/", id;
    audit(id: &AuditId) of home(id.slot()) => "audit/", id;
    gateway_pause(gateway: GatewayName) of home(Slot::FIRST) => "gateway-pause/", gateway.as_str();
    /// The prefix of the platform keys.
    platform_keys() of home(Slot::FIRST) => "platform-key/";
    platform_key(hash: &str) of home(Slot::FIRST) => "platform-key/", hash;
    /// The prefix of people's sessions.
    person_sessions() of home(Slot::FIRST) => "person-session/";
    person_session(token_hash: &str) of home(Slot::FIRST) => "person-session/", token_hash;
    gateway_token(name: &str) of home(Slot::FIRST) => "gateway-token/", name;
    endpoint(id: &WebhookId) of home(id.slot()) => "endpoint/", id;
    notices() of home(Slot::FIRST) => "notices/all";
    payment(id: &PaymentId) of home(id.slot()) => "payment/", id;
    event(id: &EventId) of home(id.slot()) => "event/", id;
    /// A booking without an event.
    booking(id: &TransactionId) of home(id.slot()) => "booking/", id;
    delivery(id: &DeliveryId) of home(id.slot()) => "delivery/", id;
    payout(id: &PayoutId) of home(id.slot()) => "payout/", id;
    destination(scope: &Scope, currency: Currency) of home(scope.developer_id.slot()) =>
        "destination/", scope.developer_id, "/", scope.environment.as_str(), "/", currency.code();
    /// The prefix of a scope's stored responses.
    responses_of(scope: &Scope) of home(scope.developer_id.slot()) =>
        "response/", scope.developer_id, "/", scope.environment.as_str(), "/";
    log_part_of(developer: &DeveloperId, name: &str) of home(developer.slot()) => "log/", name;
    /// The prefix of the settled rows, in the order of their gateways and ids.
    settled_rows() of home(Slot::FIRST) => "settled-row/";
    settled_row(gateway: GatewayName, id: &str) of home(Slot::FIRST) => "settled-row/", gateway.as_str(), "/", id;
    books_entry(slot: Slot, developer: &str, change: BooksChange, reference: &str) of home(slot) =>
        "books/", developer, "/", change.as_str(), "/", reference;
    coverage(day: Day) of home(Slot::FIRST) => "coverage/", day.to_string();
    /// The last migration into this store.
    migration() of home(Slot::FIRST) => "migration/last";
}

keys! { Entry
    /// Holds the id of a developer's workspace.
    workspace_of(developer: &DeveloperId) of home(developer.slot()) => "workspace-of/", developer;
    /// The prefix of a workspace's API keys.
    api_keys_of(workspace: &WorkspaceId) of home(workspace.slot()) => "api-key-of/", workspace, "/";
    /// Holds the hash of an API key.
    api_key_of(workspace: &WorkspaceId, id: &KeyId) of home(workspace.slot()) => "api-key-of/", workspace, "/", id;
    /// The prefix of a scope's endpoints.
    endpoints_of(scope: &Scope) of home(scope.developer_id.slot()) =>
        "endpoint-of/", scope.developer_id, "/", scope.environment.as_str(), "/";
    endpoint_of(scope: &Scope, id: &WebhookId) of home(scope.developer_id.slot()) =>
        "endpoint-of/", scope.developer_id, "/", scope.environment.as_str(), "/", id;
    /// The prefix of the audit log of a developer.
    audit_of(developer: &DeveloperId) of home(developer.slot()) => "audit-of/", developer, "/";
    /// The head of the list of the deliveries of the events of a payment or a payout.
    deliveries_of(subject: &Subject) of home(subject.slot()) => "deliveries-of/", subject;
    /// Holds the id of a scope's payout that is open.
    open_payout_of(scope: &Scope, currency: Currency) of home(scope.developer_id.slot()) =>
        "open-payout-of/", scope.developer_id, "/", scope.environment.as_str(), "/", currency.code();
    /// Holds the id of a dispute's payment.
    payment_of_dispute(id: &DisputeId) of home(id.slot()) => "dispute/", id;
    /// The prefix of the full chunks of a scope's list.
    chunks(scope: &Scope, name: &str) of home(scope.developer_id.slot()) =>
        "list/", scope.developer_id, "/", scope.environment.as_str(), "/", name, "/";
}

keys! { Hot
    /// The head that most commits of a scope change.
    head_of_scope(scope: &Scope) of home(scope.developer_id.slot()) =>
        "scope/", scope.developer_id, "/", scope.environment.as_str();
    /// The head that the deliveries to an endpoint change.
    head_of_endpoint(scope: &Scope, id: &WebhookId) of home(id.slot()) =>
        "endpoint/", scope.developer_id, "/", scope.environment.as_str(), "/", id;
    /// The prefix of the earlier days of a scope and a currency.
    days(scope: &Scope, currency: Currency) of home(scope.developer_id.slot()) =>
        "day/", scope.developer_id, "/", scope.environment.as_str(), "/", currency.code(), "/";
    day(scope: &Scope, currency: Currency, day: Day) of home(scope.developer_id.slot()) =>
        "day/", scope.developer_id, "/", scope.environment.as_str(), "/", currency.code(), "/", day.to_string();
    /// What the payments of a day in Dhaka count toward the limit of a day.
    limited_day(scope: &Scope, currency: Currency, day: Day) of home(scope.developer_id.slot()) =>
        "limited-day/", scope.developer_id, "/", scope.environment.as_str(), "/", currency.code(), "/", day.to_string();
    /// The prefix of the days of a gateway's payments in a currency.
    held_of(scope: &Scope, currency: Currency, gateway: GatewayName) of home(scope.developer_id.slot()) =>
        "held/", scope.developer_id, "/", scope.environment.as_str(), "/", currency.code(), "/", gateway.as_str(), "/";
    /// The prefix of the blocks of a status bitmap.
    blocks(scope: &Scope, status: &Status) of home(scope.developer_id.slot()) =>
        "bitmap/", scope.developer_id, "/", scope.environment.as_str(), "/", status.as_str(), "/";
    /// The head of the counts over all developers of a cell.
    gauges() of *CELL => "gauges";
}

keys! { Entry
    /// The prefix of a cell's workspaces.
    workspaces() of *CELL => "workspace/";
    workspace_in_cell(id: &WorkspaceId) of *CELL => "workspace/", id;
    /// The prefix of the pending events, which sort by age.
    pending_events() of *CELL => "pending-event/";
    pending_event(id: &EventId) of *CELL => "pending-event/", id;
    /// The prefix of the lanes: the endpoints with pending deliveries.
    lanes() of *CELL => "lane/";
    lane(endpoint: &WebhookId) of *CELL => "lane/", endpoint;
    /// The prefix of the endpoints that fail or were disabled.
    troubled_endpoints() of *CELL => "troubled-endpoint/";
    troubled_endpoint(id: &WebhookId) of *CELL => "troubled-endpoint/", id;
    /// The prefix of an endpoint's outbox.
    outbox_of(endpoint: &WebhookId) of *CELL => "outbox/", endpoint, "/";
    outbox(endpoint: &WebhookId, delivery: &DeliveryId) of *CELL => "outbox/", endpoint, "/", delivery;
    /// The prefix of all claims on work.
    all_leases() of *CELL => "lease/";
    /// The prefix of the claims on work of a queue.
    leases(queue: &str) of *CELL => "lease/", queue, "/";
    lease(queue: &str, id: &str) of *CELL => "lease/", queue, "/", id;
    /// The prefix of the payments whose refund needs manual settlement.
    settlements() of *CELL => "settlement/";
    settlement(id: &PaymentId) of *CELL => "settlement/", id;
    /// The prefix of the live payments with a dispute that is not decided.
    open_disputes() of *CELL => "open-dispute/";
    open_dispute(id: &PaymentId) of *CELL => "open-dispute/", id;
    /// The prefix of the settled rows without a payment, in the order of their gateways and ids.
    suspended_rows() of *CELL => "suspended-row/";
    suspended_row(gateway: GatewayName, id: &str) of *CELL => "suspended-row/", gateway.as_str(), "/", id;
    /// The prefix of the payouts that are open.
    open_payouts() of *CELL => "open-payout/";
    open_payout(id: &PayoutId) of *CELL => "open-payout/", id;
    /// The prefix of the payouts in an operator's batch.
    payouts_in_batch(batch: &str) of *CELL => "payout-batch/", batch, "/";
    payout_in_batch(batch: &str, id: &PayoutId) of *CELL => "payout-batch/", batch, "/", id;
    /// The prefix of the payments that need manual review.
    reviews() of *CELL => "review/";
    review(id: &PaymentId) of *CELL => "review/", id;
}

/// A time index of a whole cell. After its name, a key has a time and the owner of the entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TimeIndex {
    name: &'static str,
    /// How many milliseconds share one key.
    unit: u64,
}

/// Open sessions, by their expiry.
pub(super) const EXPIRIES: TimeIndex = TimeIndex { name: "expiry", unit: 2 };
/// Stored responses, by their age.
pub(super) const RESPONSES: TimeIndex = TimeIndex { name: "response-age", unit: 2 };
/// Deliveries whose bodies are not redacted, by their age.
pub(super) const BODIES: TimeIndex = TimeIndex { name: "body-age", unit: 2 };
/// Payments, by the next query at their gateway.
pub(super) const CHECKS: TimeIndex = TimeIndex { name: "gateway-check", unit: 1 };
/// Deliveries, by the next attempt that they wait for.
pub(super) const RETRIES: TimeIndex = TimeIndex { name: "retry", unit: 1 };
/// Claims on idempotency keys, by the end of their lease.
pub(super) const CLAIMS: TimeIndex = TimeIndex { name: "claim-end", unit: 1 };
/// Payments without the settled row of the payment or of a refund, by the time of that.
pub(super) const UNSETTLED: TimeIndex = TimeIndex { name: "unsettled", unit: 1 };
/// The audit log, by its age.
pub(super) const AUDIT: TimeIndex = TimeIndex { name: "audit-age", unit: 1 };
/// The destinations of payouts, by the time of their next payout.
pub(super) const SCHEDULES: TimeIndex = TimeIndex { name: "payout-schedule", unit: 1 };

impl TimeIndex {
    pub(super) const ALL: [Self; 9] =
        [EXPIRIES, RESPONSES, BODIES, CHECKS, RETRIES, CLAIMS, UNSETTLED, SCHEDULES, AUDIT];

    fn prefix(self) -> Vec<u8> {
        key(Table::Entry, CELL, &[self.name, "/"])
    }

    pub(super) fn at(self, time: Timestamp) -> Vec<u8> {
        numbered(&self.prefix(), millis(time) / self.unit)
    }

    /// Whether several owners of nearly the same time may share a key.
    pub(super) fn is_shared(self) -> bool {
        self.unit > 1
    }

    pub(super) fn all(self) -> Range<Vec<u8>> {
        with_prefix(&self.prefix())
    }

    /// The keys of all times before this one.
    pub(super) fn before(self, time: Timestamp) -> Range<Vec<u8>> {
        self.prefix()..self.at(time)
    }

    /// The keys of all times after this one.
    pub(super) fn after(self, time: Timestamp) -> Range<Vec<u8>> {
        let prefix = self.prefix();
        numbered(&prefix, millis(time) / self.unit + 1)..with_prefix(&prefix).end
    }

    /// The time of a key; `None` if it is not one of this index.
    pub(super) fn time_of(self, key: &[u8]) -> Option<Timestamp> {
        let number = u64::from_be_bytes(*key.strip_prefix(&*self.prefix())?.first_chunk()?);
        Timestamp::from_millis(i64::try_from(number.checked_mul(self.unit)?).ok()?).ok()
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.developer_id, self.environment)
    }
}

/// Reads the scope at the beginning of a name.
pub(super) fn scope_of(name: &str) -> Option<Scope> {
    let mut parts = name.split('/');
    let developer_id = parts.next()?.parse().ok()?;
    let environment = parts.next()?;
    let environment = Environment::ALL.into_iter().find(|one| one.as_str() == environment)?;
    Some(Scope { developer_id, environment })
}

/// The prefix of the records of a kind in a slot.
pub(super) fn records_of(slot: Slot, kind: &str) -> Vec<u8> {
    key(Table::Record, &home(slot), &[kind, "/"])
}

pub(super) fn log_part(scope: &Scope, place: Place) -> Vec<u8> {
    log_part_of(&scope.developer_id, &place.key_in(scope))
}

pub(super) fn api_key(hash: &KeyHash) -> Vec<u8> {
    key(Table::Record, &home(hash.slot), &["api-key/", &hex::encode(hash.digest)])
}

pub(super) fn lease_on(work: &Work) -> Vec<u8> {
    lease(work.queue().name(), work.id())
}

pub(super) fn slot_of(key: &[u8]) -> Option<Slot> {
    Slot::of_digits(str::from_utf8(key.get(..CELL.len())?).ok()?)
}

pub(super) fn all_of(slot: Slot, table: Table) -> Range<Vec<u8>> {
    with_prefix(&key(table, &home(slot), &[]))
}

pub(super) fn hash_of(key: &[u8]) -> Option<KeyHash> {
    Some(KeyHash { slot: slot_of(key)?, digest: hex::decode(rest_of(key)?).ok()?.try_into().ok()? })
}

/// What the payments of a day in Dhaka, counted from 1970, brought by a gateway.
pub(super) fn held(scope: &Scope, currency: Currency, gateway: GatewayName, day: u32) -> Vec<u8> {
    numbered(&held_of(scope, currency, gateway), day.into())
}

pub(super) fn response(key: &IdempotencyKey) -> Vec<u8> {
    of_idempotency("response", key)
}

pub(super) fn claim(key: &IdempotencyKey) -> Vec<u8> {
    of_idempotency("claim", key)
}

fn of_idempotency(kind: &str, of: &IdempotencyKey) -> Vec<u8> {
    let IdempotencyKey { scope, digest } = of;
    let parts = [kind, "/", scope.developer_id.as_str(), "/", scope.environment.as_str(), "/"];
    let mut at = key(Table::Record, &home(scope.developer_id.slot()), &parts);
    at.extend_from_slice(digest);
    at
}

/// The idempotency key in the key of a response or a claim.
pub(super) fn idempotency_key(key: &[u8]) -> Option<IdempotencyKey> {
    let (text, digest) = key.split_last_chunk()?;
    let text = str::from_utf8(text).ok()?;
    Some(IdempotencyKey { scope: scope_of(text.split_once('/')?.1.split_once('/')?.1)?, digest: *digest })
}

/// How many bytes of a value's digest a key has.
const VALUE_BYTES: usize = 16;

/// The head of the list of a scope's payments with a lookup value. The digest hides the value and gives all keys one length.
pub(super) fn found(scope: &Scope, lookup: &Lookup) -> Vec<u8> {
    let digest = Sha256::digest(format!("{} {}", lookup.kind.as_str(), lookup.value));
    let parts = ["found/", scope.developer_id.as_str(), "/", scope.environment.as_str(), "/"];
    let mut at = key(Table::Entry, &home(scope.developer_id.slot()), &parts);
    at.extend_from_slice(&digest[..VALUE_BYTES]);
    at
}

/// Holds the ids of a cell's payments that have a name at a gateway: the transaction that paid them, or our reference for an attempt. The digest gives all keys one length.
pub(super) fn at_gateway(gateway: GatewayName, transaction: &str) -> Vec<u8> {
    let digest = Sha256::digest(format!("{} {transaction}", gateway.as_str()));
    let mut at = key(Table::Entry, CELL, &["at-gateway/"]);
    at.extend_from_slice(&digest[..VALUE_BYTES]);
    at
}

/// As [`at_gateway`], of a transaction that took the money of an earlier attempt too: only a search knows it by this name.
pub(super) fn surplus_at_gateway(gateway: GatewayName, transaction: &str) -> Vec<u8> {
    at_gateway(gateway, &format!("surplus {transaction}"))
}

/// The table of a key, and its kind: the text up to the first `/` after the table's character.
pub(super) fn kind_of(key: &[u8]) -> Option<(Table, &str)> {
    let table = Table::of(key)?;
    let rest = key.get(CELL.len() + 1..)?;
    let end = rest.iter().position(|byte| *byte == b'/').unwrap_or(rest.len());
    Some((table, str::from_utf8(&rest[..end]).ok()?))
}

/// The text after the kind of a key.
pub(super) fn rest_of(key: &[u8]) -> Option<&str> {
    let rest = key.get(CELL.len() + 1..)?;
    let begin = rest.iter().position(|byte| *byte == b'/')? + 1;
    str::from_utf8(&rest[begin..]).ok()
}

/// The id in the last part of a key.
pub(super) fn id_at_end<I: FromStr>(key: &[u8]) -> Option<I> {
    str::from_utf8(key).ok()?.rsplit(['/', ':']).next()?.parse().ok()
}

/// A key that ends with a number. Keys with the same prefix sort by it.
pub(super) fn numbered(prefix: &[u8], number: u64) -> Vec<u8> {
    [prefix, number.to_be_bytes().as_slice()].concat()
}

/// The number at the end of a key.
pub(super) fn number_of(key: &[u8]) -> Option<u64> {
    key.last_chunk().map(|number| u64::from_be_bytes(*number))
}

fn millis(time: Timestamp) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(0)
}

impl fmt::Display for TimeIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
