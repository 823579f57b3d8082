//! Reading a whole store and proving what must always hold.
//!
//! Everything is derived anew from the payments, the deliveries and the postings, and compared with what the store
//! keeps beside them: lists, marks, counts, balances, indexes, the outbox. One pass over the tree in the order of its
//! keys, with look-ups across; only sums are kept meanwhile.

use std::{
    collections::BTreeMap,
    fmt::Display,
    path::{Path, PathBuf},
};

use payments_core::{
    DeliveryId, DeliveryStatus, DeveloperApp, Environment, EventKind, LedgerAccount, Payment, Posting, RawJson,
    RawStatus, Timestamp,
};
use serde::{Deserialize, de::DeserializeOwned};

use super::{
    OpenError, codec,
    journal::{self, JournalError},
    keys::{self, List, Marks},
    packed,
    pending::Untold,
    responses::StoredResponse,
    squeezed,
    stored::{Event, Stored},
};
use crate::domain::{
    ApiKey, Endpoint, KeptResponse, KeptToken, KeyClaim, KeyHash, Outgoing, Scope, Session, Workspace,
};
use crate::store::{Checked, Finding, StoreError};

struct Check<'t> {
    tree: &'t sled::Tree,
    checked: Checked,
    /// What the records come to that are kept as sums, by their keys.
    balances: BTreeMap<Vec<u8>, i128>,
    volumes: BTreeMap<Vec<u8>, (i128, u64)>,
    /// What the lists and marks hold, and what the deliveries say their lists should hold.
    counts: BTreeMap<Vec<u8>, u64>,
    deliveries: BTreeMap<Vec<u8>, u64>,
}

/// Checks a tree that nobody writes to meanwhile. `progress` is told how many records have been read.
pub(super) fn check(tree: &sled::Tree, progress: &mut dyn FnMut(u64)) -> Result<Checked, StoreError> {
    let mut check = Check {
        tree,
        checked: Checked::default(),
        balances: BTreeMap::new(),
        volumes: BTreeMap::new(),
        counts: BTreeMap::new(),
        deliveries: BTreeMap::new(),
    };
    for entry in tree.iter() {
        let (key, value) = entry.map_err(StoreError::unavailable)?;
        check.checked.records += 1;
        match squeezed::open(&key, &value) {
            Ok(value) => check.record(&key, &value)?,
            Err(damage) => check.find(&key, format_args!("cannot be read: {damage}")),
        }
        progress(check.checked.records);
    }
    check.sums()?;
    Ok(check.checked)
}

/// Reads all files of the journal in a data directory, whose store may be open; what is wrong with them.
pub(crate) fn check_journal(data_directory: &Path) -> Result<Vec<Finding>, OpenError> {
    let faults = journal::faults(&data_directory.join("journal"))?;
    let finding = |(path, error): (PathBuf, JournalError)| Finding {
        record: path.strip_prefix(data_directory).unwrap_or(&path).display().to_string(),
        what: error.to_string(),
    };
    Ok(faults.into_iter().map(finding).collect())
}

/// As much of an event's data as is compared.
#[derive(Deserialize)]
struct DataHead {
    id: Option<String>,
    payment: Option<Box<DataHead>>,
}

#[derive(Deserialize)]
struct BodyHead {
    id: Option<String>,
}

impl Check<'_> {
    fn find(&mut self, key: &[u8], what: impl Display) {
        self.checked.findings.push(Finding { record: key.escape_ascii().to_string(), what: what.to_string() });
    }

    fn expect(&mut self, holds: bool, key: &[u8], what: &str) {
        if !holds {
            self.find(key, what);
        }
    }

    /// Another record, if it is there and can be read; that it cannot is found when its own turn comes.
    fn other<T: DeserializeOwned>(&self, key: &[u8]) -> Result<Option<T>, StoreError> {
        match codec::read(self.tree, key) {
            Err(StoreError::Corrupt { .. }) => Ok(None),
            outcome => outcome,
        }
    }

    fn is_there(&self, key: &[u8]) -> Result<bool, StoreError> {
        self.tree.contains_key(key).map_err(StoreError::unavailable)
    }

    fn holds(&self, key: &[u8], value: &[u8]) -> Result<bool, StoreError> {
        Ok(self.tree.get(key).map_err(StoreError::unavailable)?.is_some_and(|found| found == value))
    }

    fn parse<T: DeserializeOwned>(&mut self, key: &[u8], value: &[u8]) -> Option<T> {
        serde_json::from_slice(value).map_err(|error| self.find(key, format_args!("cannot be read: {error}"))).ok()
    }

    /// The parts of a key after its kind; none of one that is no text.
    fn parts(key: &[u8]) -> Vec<&str> {
        std::str::from_utf8(key).map(|text| text.split('/').skip(1).collect()).unwrap_or_default()
    }

    fn record(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        let kind = key.split(|byte| *byte == b'/').next().unwrap_or_default();
        match kind {
            b"payment" => self.payment(key, value),
            b"posting" => self.posting(key, value),
            b"places" => self.leaf(key, value),
            b"marks" => self.marks(key, value),
            b"delivery" => self.delivery(key, value),
            b"outbox" => self.outbox(key),
            b"untold" => self.untold(key, value),
            b"used" => self.used(key, value),
            b"claim" => self.claim(key, value),
            b"responses" => self.responses(key, value),
            b"ends" => self.ends(key, value),
            b"check" => self.gateway_check(key),
            b"unsettled" | b"review" => self.waiting(key),
            b"workspace" | b"workspace-of" | b"key" | b"key-of" | b"app" => self.of_a_merchant(kind, key, value),
            b"endpoint" | b"endpoint-of" => self.endpoint(kind, key, value),
            b"gateway-token" => {
                self.parse::<KeptToken>(key, value);
                Ok(())
            }
            // Sums are compared when all is read.
            b"balance" | b"volume" | b"count" => Ok(()),
            _ if key == keys::BODIES_FORGOTTEN => {
                self.parse::<DeliveryId>(key, value);
                Ok(())
            }
            _ if [keys::APPLIED, keys::COMMITTED_AT, keys::FORMAT].contains(&key) => {
                self.parse::<u64>(key, value);
                Ok(())
            }
            _ => {
                self.find(key, "is of no kind that this version writes");
                Ok(())
            }
        }
    }

    fn payment(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        self.checked.payments += 1;
        let Some(Stored { place, session, events }) = self.parse::<Stored>(key, value) else { return Ok(()) };
        let payment = &session.payment;
        self.expect(key == keys::session(&payment.id), key, "holds another payment");
        for fault in faults(&session) {
            self.find(key, fault);
        }
        let scope = session.scope();
        if self.at(&scope, place)?.as_deref() != Some(payment.id.as_str()) {
            self.find(key, format_args!("is not at its place {place} in the list of payments"));
        }
        let block = self.bytes(&Marks::of(&scope, &payment.status).block(place))?;
        if !packed::is_marked(&block, place % keys::BLOCK) {
            self.find(key, format_args!("is not marked at its place {place} among those of its status"));
        }
        let is_owned = self.is_there(&keys::workspace_of(&payment.developer_id))?;
        self.expect(is_owned, key, "belongs to a developer that is not there");

        let has_end = packed::has_line(&self.bytes(&keys::ends(session.expires_at))?, payment.id.as_str());
        self.expect(
            has_end || session.expires_by_itself_at().is_none(),
            key,
            "is open and will never expire: its session's end is missing",
        );
        if let Some(at) = session.check_at {
            let has_check = self.is_there(&keys::check(at, &payment.id))?;
            self.expect(has_check, key, "is to be asked for at its gateway and will never be");
        }
        if session.needs_manual_settlement() {
            let is_listed = self.is_there(&keys::unsettled(&payment.id))?;
            self.expect(is_listed, key, "waits for its refund to be settled and is not among those that do");
        }
        if session.needs_manual_review() {
            let is_listed = self.is_there(&keys::review(&payment.id))?;
            self.expect(is_listed, key, "waits for a person and is not among those that do");
        }
        self.events(key, payment, &events);
        self.ledger_of(key, &session)
    }

    /// Every change that owes an event has it, once, and it is about this payment.
    fn events(&mut self, key: &[u8], payment: &Payment, events: &[Event]) {
        for event in events {
            let Some(data) = &event.data else { continue };
            let Some(data) = self.parse::<DataHead>(key, data.as_str().as_bytes()) else { continue };
            let about = data.id.or_else(|| data.payment.and_then(|payment| payment.id));
            self.expect(about.as_deref() == Some(payment.id.as_str()), key, "has an event about another payment");
        }
        let times = |kind: &EventKind| events.iter().filter(|event| event.event == *kind).count();
        for (kind, is_owed) in [
            (EventKind::PaymentCreated, true),
            (EventKind::PaymentCompleted, payment.paid_at.is_some()),
            (EventKind::PaymentRefunded, payment.raw_status == RawStatus::Refunded),
        ] {
            let (found, owed) = (times(&kind), usize::from(is_owed));
            if found != owed {
                self.find(key, format_args!("has {found} events {kind}, and its state comes to {owed}"));
            }
        }
    }

    /// What a payment posted is what its state says; the sums go on to the balances.
    fn ledger_of(&mut self, key: &[u8], session: &Session) -> Result<(), StoreError> {
        let payment = &session.payment;
        let amount = i128::from(payment.amount.as_minor());
        let completion = [
            (LedgerAccount::GatewayClearing, -amount),
            (LedgerAccount::Merchant, i128::from(payment.net_amount.as_minor())),
            (LedgerAccount::PlatformFee, i128::from(payment.platform_fee_amount.as_minor())),
        ];
        let directions: &[i128] = match payment.raw_status {
            RawStatus::Paid => &[1],
            RawStatus::Refunded => &[1, -1],
            _ => &[],
        };
        let mut moves = Vec::new();
        for entry in self.tree.scan_prefix(keys::postings_of(&payment.id)) {
            let (at, json) = entry.map_err(StoreError::unavailable)?;
            if let Ok(postings) = codec::parse::<Vec<Posting>>(&at, &json) {
                moves.push(postings);
            }
        }
        let expected =
            directions.iter().map(|direction| completion.map(|(account, minor)| (account, direction * minor)));
        let found = moves.iter().map(|postings| {
            postings.iter().map(|posting| (posting.account, i128::from(posting.minor))).collect::<Vec<_>>()
        });
        if !expected.map(Vec::from).eq(found) {
            self.find(key, format_args!("is {}, and its postings are not those of that", payment.raw_status));
        }
        let scope = session.scope();
        for posting in moves.iter().flatten() {
            let at = keys::balance(&scope, payment.currency, posting.account);
            *self.balances.entry(at).or_default() += i128::from(posting.minor);
            if posting.account == LedgerAccount::GatewayClearing && posting.minor < 0 {
                let volume = self.volumes.entry(keys::volume(&scope, payment.currency)).or_default();
                volume.0 -= i128::from(posting.minor);
                volume.1 += 1;
            }
        }
        Ok(())
    }

    fn posting(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        let Some(postings) = self.parse::<Vec<Posting>>(key, value) else { return Ok(()) };
        let sum: i128 = postings.iter().map(|posting| i128::from(posting.minor)).sum();
        if sum != 0 {
            self.find(key, format_args!("its postings sum to {sum}, not to zero"));
        }
        let payment = Self::parts(key).first().and_then(|id| id.parse().ok());
        let is_owned = payment.map(|id| self.is_there(&keys::session(&id))).transpose()?.unwrap_or_default();
        self.expect(is_owned, key, "belongs to a payment that is not there");
        Ok(())
    }

    /// Each line of a list's record names a record that belongs there.
    fn leaf(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        let Some((name, leaf)) = keys::numbered(keys::LISTS, key) else {
            self.find(key, "is no record of a list");
            return Ok(());
        };
        for (id, place) in packed::lines(value).zip(leaf * keys::LEAF..) {
            *self.counts.entry(keys::count(name)).or_default() += 1;
            let belongs = if name.ends_with("/payments") {
                self.stored(id)?.is_some_and(|stored| {
                    stored.place == place && key == List::payments(&stored.session.scope()).leaf(place)
                })
            } else {
                let outgoing: Option<Outgoing> =
                    id.parse().ok().map(|id| self.other(&keys::delivery(&id))).transpose()?.flatten();
                outgoing.is_some_and(|outgoing| {
                    let scope = outgoing.scope();
                    [List::deliveries(&scope), List::deliveries_to(&scope, &outgoing.delivery.webhook_id)]
                        .iter()
                        .any(|list| key == list.leaf(place))
                })
            };
            if !belongs {
                self.find(key, format_args!("names {id} at place {place}, which does not belong there"));
            }
        }
        Ok(())
    }

    /// Each mark of a status is on a payment that has it.
    fn marks(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        let Some((name, block)) = keys::numbered(keys::MARKS, key) else {
            self.find(key, "is no record of marks");
            return Ok(());
        };
        *self.counts.entry(keys::count(name)).or_default() += packed::marked(value);
        let scope = keys::scope_of(&mut name.split('/'));
        for place in packed::marks_down(value).map(|mark| block * keys::BLOCK + mark) {
            let id = scope.as_ref().map(|scope| self.at(scope, place)).transpose()?.flatten();
            let stored = id.map(|id| self.stored(&id)).transpose()?.flatten();
            let has_it = stored.is_some_and(|Stored { session, .. }| {
                key == Marks::of(&session.scope(), &session.payment.status).block(place)
            });
            if !has_it {
                self.find(key, format_args!("marks place {place}, where no payment of that status is"));
            }
        }
        Ok(())
    }

    /// What the list of payments has at a place.
    fn at(&self, scope: &Scope, place: u64) -> Result<Option<String>, StoreError> {
        let leaf = self.bytes(&List::payments(scope).leaf(place))?;
        let nth = usize::try_from(place % keys::LEAF).unwrap_or(usize::MAX);
        Ok(packed::lines(&leaf).nth(nth).map(str::to_owned))
    }

    /// A payment, if it is there and can be read.
    fn stored(&self, id: &str) -> Result<Option<Stored>, StoreError> {
        Ok(id.parse().ok().map(|id| self.other(&keys::session(&id))).transpose()?.flatten())
    }

    /// A record that holds many things; that it cannot be read is found when its own turn comes.
    fn bytes(&self, key: &[u8]) -> Result<Vec<u8>, StoreError> {
        match codec::bytes(self.tree, key) {
            Err(StoreError::Corrupt { .. }) => Ok(Vec::new()),
            outcome => outcome,
        }
    }

    fn delivery(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        let Some(outgoing) = self.parse::<Outgoing>(key, value) else { return Ok(()) };
        let delivery = &outgoing.delivery;
        self.expect(key == keys::delivery(&delivery.id), key, "holds another delivery");
        if let Some(event) = &outgoing.event {
            let payment = outgoing.payment.as_ref().map(|id| self.stored(id.as_str())).transpose()?.flatten();
            let has_it = payment.is_some_and(|payment| payment.events.iter().any(|known| known.id == *event));
            self.expect(has_it, key, "sends an event that is not there");
        }
        let is_owed = self.is_there(&keys::outbox(&delivery.webhook_id, &delivery.id))?;
        let is_pending = delivery.status == DeliveryStatus::Pending;
        self.expect(is_owed || !is_pending, key, "is pending and not in the outbox: it will never be sent");
        let scope = outgoing.scope();
        for list in [List::deliveries(&scope), List::deliveries_to(&scope, &delivery.webhook_id)] {
            *self.deliveries.entry(list.count()).or_default() += 1;
        }
        Ok(())
    }

    fn outbox(&mut self, key: &[u8]) -> Result<(), StoreError> {
        let id = Self::parts(key).get(1).and_then(|id| id.parse().ok());
        let outgoing = id.map(|id| self.other::<Outgoing>(&keys::delivery(&id))).transpose()?.flatten();
        let is_owed = outgoing.is_some_and(|outgoing| {
            let delivery = &outgoing.delivery;
            delivery.status == DeliveryStatus::Pending && key == keys::outbox(&delivery.webhook_id, &delivery.id)
        });
        self.expect(is_owed, key, "owes a delivery that is over or not there");
        Ok(())
    }

    /// An event whose deliveries are still to be made is there.
    fn untold(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        let Some(Untold { payment, .. }) = self.parse::<Untold>(key, value) else { return Ok(()) };
        let stored = self.stored(payment.as_str())?;
        let is_there = keys::untold_event(key).is_some_and(|event| stored.is_some_and(|it| it.told(&event).is_some()));
        self.expect(is_there, key, "is to be told and is not there");
        Ok(())
    }

    /// A used key has its response.
    fn used(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        let Some(used_at) = self.parse::<Timestamp>(key, value) else { return Ok(()) };
        let responses = self.bytes(&keys::responses(used_at))?;
        let name = keys::name_of_used(key);
        let is_there = packed::values::<StoredResponse>(&responses).flatten().any(|kept| Some(kept.of) == name);
        self.expect(is_there, key, "was used and has no response");
        Ok(())
    }

    /// A claim is on a key that has no response yet, or one that no longer counted, and its lease ends.
    fn claim(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        let Some(claim) = self.parse::<KeyClaim>(key, value) else { return Ok(()) };
        let Some(used) = keys::used_of_claim(key) else {
            self.find(key, "is on no idempotency key");
            return Ok(());
        };
        self.expect(claim.until > claim.claimed_at, key, "has a lease that ends before it begins");
        let is_answered =
            self.other::<Timestamp>(&used)?.is_some_and(|used_at| KeptResponse::is_fresh_at(used_at, claim.claimed_at));
        self.expect(!is_answered, key, "claims a key that has its response");
        Ok(())
    }

    /// Kept responses tell of effects that are there, and their keys know of them.
    fn responses(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        for kept in packed::values::<StoredResponse>(value) {
            let kept = match kept {
                Ok(kept) => kept,
                Err(error) => {
                    self.find(key, format_args!("cannot be read: {error}"));
                    break;
                }
            };
            self.expect(key == keys::responses(kept.created_at), key, "has a response of another time");
            let used = keys::used(&kept.of);
            let used_at = used.map(|used| self.other::<Timestamp>(&used)).transpose()?.flatten();
            self.expect(used_at == Some(kept.created_at), key, "has a response whose key does not know of it");
            let is_there = match (&kept.body, &kept.told) {
                (None, Some(told)) => {
                    let stored = self.stored(told.payment.as_str())?;
                    stored.is_some_and(|stored| stored.told(&told.event).is_some())
                }
                (Some(body), None) => self.has_effect(key, body)?,
                _ => false,
            };
            self.expect(is_there, key, "tells of an effect that is not there");
        }
        Ok(())
    }

    fn has_effect(&mut self, key: &[u8], body: &RawJson) -> Result<bool, StoreError> {
        let Some(BodyHead { id: Some(id) }) = self.parse::<BodyHead>(key, body.as_str().as_bytes()) else {
            return Ok(false);
        };
        // An endpoint may have been removed since.
        Ok(match id.split_once('_').map_or("", |(prefix, _)| prefix) {
            "wh" => true,
            "del" => id.parse().ok().map(|id| self.is_there(&keys::delivery(&id))).transpose()?.unwrap_or_default(),
            _ => self.stored(&id)?.is_some(),
        })
    }

    /// Each session that is named by its end is open and ends then.
    fn ends(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        for id in packed::lines(value) {
            let is_due = self.stored(id)?.is_some_and(|Stored { session, .. }| {
                session.expires_by_itself_at().is_some_and(|at| key == keys::ends(at))
            });
            self.expect(is_due, key, DUE);
        }
        Ok(())
    }

    fn gateway_check(&mut self, key: &[u8]) -> Result<(), StoreError> {
        let id = keys::payment_to_check(key);
        let stored = id.as_ref().map(|id| self.stored(id.as_str())).transpose()?.flatten();
        let at = stored.and_then(|stored| stored.session.check_at);
        let is_due = id.is_some_and(|id| at.is_some_and(|at| key == keys::check(at, &id)));
        self.expect(is_due, key, DUE);
        Ok(())
    }

    fn waiting(&mut self, key: &[u8]) -> Result<(), StoreError> {
        let stored = Self::parts(key).first().map(|id| self.stored(id)).transpose()?.flatten();
        let waits = stored.is_some_and(|Stored { session, .. }| {
            if key.starts_with(keys::UNSETTLED) {
                session.needs_manual_settlement()
            } else {
                session.needs_manual_review()
            }
        });
        self.expect(waits, key, "lists a payment that does not wait for anybody");
        Ok(())
    }

    fn of_a_merchant(&mut self, kind: &[u8], key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        let holds = match kind {
            b"workspace" => {
                let Some(workspace) = self.parse::<Workspace>(key, value) else { return Ok(()) };
                let id = workspace.id.to_string();
                key == keys::workspace(&id)
                    && self.other::<String>(&keys::workspace_of(&workspace.developer_id))? == Some(id)
            }
            b"workspace-of" => {
                let Some(id) = self.parse::<String>(key, value) else { return Ok(()) };
                let workspace = self.other::<Workspace>(&keys::workspace(&id))?;
                workspace.is_some_and(|workspace| key == keys::workspace_of(&workspace.developer_id))
            }
            b"key" => {
                let Some(api_key) = self.parse::<ApiKey>(key, value) else { return Ok(()) };
                let hash = key.get(b"key/".len()..).unwrap_or_default();
                self.holds(&keys::api_key_id(&api_key.workspace_id, &api_key.id), hash)?
                    && self
                        .other::<Workspace>(&keys::workspace(api_key.workspace_id.as_str()))?
                        .is_some_and(|workspace| workspace.developer_id == api_key.scope.developer_id)
            }
            b"key-of" => {
                let hash = <[u8; 32]>::try_from(value).ok().map(KeyHash::from_bytes);
                let api_key = hash.map(|hash| self.other::<ApiKey>(&keys::api_key(&hash))).transpose()?.flatten();
                api_key.is_some_and(|found| key == keys::api_key_id(&found.workspace_id, &found.id))
            }
            _ => {
                let Some(app) = self.parse::<DeveloperApp>(key, value) else { return Ok(()) };
                key == keys::app(&app.developer_id, &app.id) && self.is_there(&keys::workspace_of(&app.developer_id))?
            }
        };
        self.expect(holds, key, "and its other half do not agree");
        Ok(())
    }

    fn endpoint(&mut self, kind: &[u8], key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        let holds = if kind == b"endpoint" {
            let Some(endpoint) = self.parse::<Endpoint>(key, value) else { return Ok(()) };
            key == keys::endpoint(&endpoint.endpoint.id)
                && self.is_there(&keys::endpoint_of(&endpoint.scope(), &endpoint.endpoint.id))?
        } else {
            let id = Self::parts(key).get(2).and_then(|id| id.parse().ok());
            let endpoint = id.map(|id| self.other::<Endpoint>(&keys::endpoint(&id))).transpose()?.flatten();
            endpoint.is_some_and(|found| key == keys::endpoint_of(&found.scope(), &found.endpoint.id))
        };
        self.expect(holds, key, "and its other half do not agree");
        Ok(())
    }

    /// What is kept as a sum is the sum.
    fn sums(&mut self) -> Result<(), StoreError> {
        let counts = std::mem::take(&mut self.counts);
        for (count, deliveries) in std::mem::take(&mut self.deliveries) {
            if counts.get(&count) != Some(&deliveries) {
                self.find(
                    &count,
                    format_args!("there are {deliveries} deliveries, and the list does not name as many"),
                );
            }
        }
        self.compare(b"count/", counts)?;
        let balances = std::mem::take(&mut self.balances);
        self.compare(b"balance/", balances)?;
        let volumes = std::mem::take(&mut self.volumes);
        self.compare(b"volume/", volumes)
    }

    fn compare<T>(&mut self, prefix: &[u8], mut expected: BTreeMap<Vec<u8>, T>) -> Result<(), StoreError>
    where
        T: DeserializeOwned + Default + PartialEq + std::fmt::Debug,
    {
        for entry in self.tree.scan_prefix(prefix) {
            let (key, value) = entry.map_err(StoreError::unavailable)?;
            let expected = expected.remove(key.as_ref()).unwrap_or_default();
            if let Some(kept) = self.parse::<T>(&key, &value)
                && kept != expected
            {
                self.find(&key, format_args!("is kept as {kept:?}, and the records come to {expected:?}"));
            }
        }
        for (key, expected) in expected {
            if expected != T::default() {
                self.find(&key, format_args!("is missing, and the records come to {expected:?}"));
            }
        }
        Ok(())
    }
}

/// What is wrong with an entry of an index in time order.
const DUE: &str = "is due for a payment that does not wait for it";

/// What is wrong with a payment by itself: the table of states and the arithmetic.
fn faults(session: &Session) -> Vec<&'static str> {
    let payment = &session.payment;
    let is_test = payment.environment == Environment::Test;
    let is_refunded = payment.raw_status == RawStatus::Refunded;
    let was_paid = is_refunded || payment.raw_status == RawStatus::Paid;
    let rules = [
        (!matches!(payment.raw_status, RawStatus::Other(_)), "is in a state that the table does not have"),
        (payment.status == payment.raw_status.public(), "its public status is not that of its internal one"),
        (
            payment.amount.checked_sub(payment.platform_fee_amount) == Some(payment.net_amount),
            "amount is not fee and net",
        ),
        (payment.platform_fee_amount == payment.fee_percentage.fee_on(payment.amount), "its fee is not its rate's"),
        (payment.paid_at.is_some() == was_paid, "paid_at and its state do not agree"),
        (payment.refund.is_some() == is_refunded, "its refund and its state do not agree"),
        (
            payment
                .refund
                .as_ref()
                .is_none_or(|refund| refund.amount == payment.amount && refund.currency == payment.currency),
            "its refund is not of the whole payment",
        ),
        (payment.is_simulated == is_test, "isSimulated and its environment do not agree"),
        (!is_test || !is_refunded, "is a test payment and was refunded"),
        (!is_test || session.attempt.is_none(), "is a test payment and was sent to a gateway"),
        (payment.raw_status != RawStatus::Processing || session.attempt.is_some(), "is processing and at no gateway"),
        (session.version > 0 || payment.raw_status == RawStatus::Created, "has moved without a change"),
        (payment.updated_at >= payment.created_at, "changed before it was made"),
    ];
    rules.into_iter().filter(|(holds, _)| !holds).map(|(_, fault)| fault).collect()
}
