//! Reading a whole store and proving what must always hold.
//!
//! Everything is derived anew from the payments, the deliveries and the postings, and compared with what the store
//! keeps beside them: lists, counts, blocks, balances, indexes, the outbox. One pass over the tree in the order of its
//! keys, with look-ups across; only sums are kept meanwhile, and for each payment which events it has.

use std::{
    collections::{BTreeMap, HashMap},
    fmt::Display,
};

use payments_core::{
    DeliveryId, DeliveryStatus, DeveloperApp, Environment, EventKind, LedgerAccount, Payment, Posting, RawStatus,
    RefundStatus,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::{
    keys::{self, List},
    tables::{self, Placed},
};
use crate::store::{ApiKey, Endpoint, KeptResponse, KeptToken, KeyHash, Outgoing, Session, StoreError, Workspace};

/// One thing that does not hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    /// The record it was found at; bytes that are no text are escaped.
    pub(crate) record: String,
    /// What is wrong with it.
    pub(crate) what: String,
}

/// What came of a check.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Checked {
    /// How many records were read.
    pub(crate) records: u64,
    /// How many of them are payments.
    pub(crate) payments: u64,
    /// What does not hold; nothing in a sound store.
    pub(crate) findings: Vec<Finding>,
}

/// Which events a payment has.
#[derive(Default, Clone, Copy)]
struct Events {
    created: bool,
    completed: bool,
    refunded: bool,
}

struct Check<'t> {
    tree: &'t sled::Tree,
    checked: Checked,
    events: HashMap<String, Events>,
    /// What the records come to that are kept as sums, by their keys.
    balances: BTreeMap<Vec<u8>, i128>,
    volumes: BTreeMap<Vec<u8>, (i128, u64)>,
    /// What the lists hold, and what the deliveries say they should hold.
    counts: BTreeMap<Vec<u8>, u64>,
    blocks: BTreeMap<Vec<u8>, u64>,
    deliveries: BTreeMap<Vec<u8>, u64>,
}

/// Checks a tree that nobody writes to meanwhile. `progress` is told how many records have been read.
pub(super) fn check(tree: &sled::Tree, mut progress: impl FnMut(u64)) -> Result<Checked, StoreError> {
    let mut check = Check {
        tree,
        checked: Checked::default(),
        events: HashMap::new(),
        balances: BTreeMap::new(),
        volumes: BTreeMap::new(),
        counts: BTreeMap::new(),
        blocks: BTreeMap::new(),
        deliveries: BTreeMap::new(),
    };
    for entry in tree.iter() {
        let (key, value) = entry.map_err(StoreError::engine)?;
        check.checked.records += 1;
        check.record(&key, &value)?;
        progress(check.checked.records);
    }
    check.sums()?;
    Ok(check.checked)
}

/// As much of an event's envelope as is compared.
#[derive(Deserialize)]
struct EnvelopeHead {
    id: String,
    event: EventKind,
    data: DataHead,
}

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
        match tables::read(self.tree, key) {
            Err(StoreError::Record { .. }) => Ok(None),
            outcome => outcome,
        }
    }

    fn is_there(&self, key: &[u8]) -> Result<bool, StoreError> {
        self.tree.contains_key(key).map_err(StoreError::engine)
    }

    fn holds(&self, key: &[u8], value: &[u8]) -> Result<bool, StoreError> {
        Ok(self.tree.get(key).map_err(StoreError::engine)?.is_some_and(|found| found == value))
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
            b"list" => self.entry(key, value),
            b"event" => self.event(key, value),
            b"delivery" => self.delivery(key, value),
            b"outbox" => self.outbox(key),
            b"idempotency" => self.idempotency(key, value),
            b"kept" => self.kept(key),
            b"session-end" | b"check" => self.in_time(key),
            b"unsettled" | b"review" => self.waiting(key),
            b"workspace" | b"workspace-of" | b"key" | b"key-of" | b"app" => self.of_a_merchant(kind, key, value),
            b"endpoint" | b"endpoint-of" => self.endpoint(kind, key, value),
            b"gateway-token" => {
                self.parse::<KeptToken>(key, value);
                Ok(())
            }
            // Sums are compared when all is read.
            b"balance" | b"volume" | b"count" | b"block" => Ok(()),
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
        let Some(Placed { place, session }) = self.parse::<Placed>(key, value) else { return Ok(()) };
        let payment = &session.payment;
        self.expect(key == keys::session(&payment.id), key, "holds another payment");
        for fault in faults(&session) {
            self.find(key, fault);
        }
        let scope = session.scope();
        let id = payment.id.as_str().as_bytes();
        for (list, name) in [
            (List::payments(&scope), "the list of payments"),
            (List::payments_with(&scope, &payment.status), "the list of its status"),
        ] {
            if !self.holds(&list.entry(place), id)? {
                self.find(key, format_args!("is not at its place {place} in {name}"));
            }
        }
        let is_owned = self.is_there(&keys::workspace_of(&payment.developer_id))?;
        self.expect(is_owned, key, "belongs to a developer that is not there");

        let ends_by_itself = payment.raw_status.is_open() && session.attempt.is_none();
        let has_end = self.is_there(&keys::session_end(session.expires_at, &payment.id))?;
        self.expect(has_end || !ends_by_itself, key, "is open and will never expire: its session's end is missing");
        if let Some(at) = session.check_at {
            let has_check = self.is_there(&keys::check(at, &payment.id))?;
            self.expect(has_check, key, "is to be asked for at its gateway and will never be");
        }
        if waits_for_settlement(&session) {
            let is_listed = self.is_there(&keys::unsettled(&payment.id))?;
            self.expect(is_listed, key, "waits for its refund to be settled and is not among those that do");
        }
        if is_under_review(&session) {
            let is_listed = self.is_there(&keys::review(&payment.id))?;
            self.expect(is_listed, key, "waits for a person and is not among those that do");
        }
        self.owes(key, payment);
        self.ledger_of(key, &session)
    }

    /// Every change that owes an event has it.
    fn owes(&mut self, key: &[u8], payment: &Payment) {
        let had = self.events.get(payment.id.as_str()).copied().unwrap_or_default();
        self.expect(had.created, key, "has no event payment.created");
        self.expect(
            had.completed == payment.paid_at.is_some(),
            key,
            "was paid and has no event payment.completed, or the other way round",
        );
        let is_refunded = payment.raw_status == RawStatus::Refunded;
        self.expect(
            had.refunded == is_refunded,
            key,
            "was refunded and has no event payment.refunded, or the other way round",
        );
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
            let (at, json) = entry.map_err(StoreError::engine)?;
            if let Ok(postings) = tables::parse::<Vec<Posting>>(&at, &json) {
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

    /// An entry of a list names a record that belongs there.
    fn entry(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        let split = key.strip_prefix(keys::LISTS).and_then(|rest| rest.split_last_chunk::<8>());
        let named = split.and_then(|(list, place)| {
            let name = std::str::from_utf8(list.strip_suffix(b"/")?).ok()?;
            Some((name, u64::from_be_bytes(*place)))
        });
        let Some((name, place)) = named else {
            self.find(key, "is no entry of a list");
            return Ok(());
        };
        *self.counts.entry(format!("count/{name}").into_bytes()).or_default() += 1;
        let id = String::from_utf8_lossy(value);
        let owner = |developer: &dyn Display, environment: Environment| format!("{developer}/{environment}");
        let belongs = if let Some((list, _)) = keys::entry_with_gaps(key) {
            let block = [keys::BLOCKS, list, b"/", (place / keys::BLOCK).to_be_bytes().as_slice()].concat();
            *self.blocks.entry(block).or_default() += 1;
            let placed = id.parse().ok().map(|id| self.other::<Placed>(&keys::session(&id))).transpose()?.flatten();
            placed.is_some_and(|placed| {
                let payment = &placed.session.payment;
                let owner = owner(&payment.developer_id, payment.environment);
                placed.place == place && name == format!("{owner}/payments.{}", payment.status)
            })
        } else if name.ends_with("/payments") {
            let placed = id.parse().ok().map(|id| self.other::<Placed>(&keys::session(&id))).transpose()?.flatten();
            placed.is_some_and(|placed| {
                let payment = &placed.session.payment;
                placed.place == place
                    && name == format!("{}/payments", owner(&payment.developer_id, payment.environment))
            })
        } else {
            let outgoing =
                id.parse().ok().map(|id| self.other::<Outgoing>(&keys::delivery(&id))).transpose()?.flatten();
            outgoing.is_some_and(|outgoing| {
                let owner = owner(&outgoing.delivery.developer_id, outgoing.environment);
                name == format!("{owner}/deliveries")
                    || name == format!("{owner}/deliveries.{}", outgoing.delivery.webhook_id)
            })
        };
        self.expect(belongs, key, "names a record that does not belong there");
        Ok(())
    }

    fn event(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        let Some(envelope) = self.parse::<EnvelopeHead>(key, value) else { return Ok(()) };
        self.expect(Self::parts(key) == [envelope.id.as_str()], key, "holds another event");
        if envelope.event == EventKind::TestPing {
            return Ok(());
        }
        let Some(payment) = envelope.data.id.or_else(|| envelope.data.payment.and_then(|payment| payment.id)) else {
            self.find(key, "names no payment");
            return Ok(());
        };
        let is_there = payment.parse().ok().map(|id| self.is_there(&keys::session(&id))).transpose()?;
        self.expect(is_there == Some(true), key, "is about a payment that is not there");
        let events = self.events.entry(payment).or_default();
        let twice = match envelope.event {
            EventKind::PaymentCreated => std::mem::replace(&mut events.created, true),
            EventKind::PaymentCompleted => std::mem::replace(&mut events.completed, true),
            EventKind::PaymentRefunded => std::mem::replace(&mut events.refunded, true),
            _ => false,
        };
        self.expect(!twice, key, "is the second event of one change");
        Ok(())
    }

    fn delivery(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        let Some(outgoing) = self.parse::<Outgoing>(key, value) else { return Ok(()) };
        let delivery = &outgoing.delivery;
        self.expect(key == keys::delivery(&delivery.id), key, "holds another delivery");
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

    /// A kept response tells of an effect that is there.
    fn idempotency(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        let Some(kept) = self.parse::<KeptResponse>(key, value) else { return Ok(()) };
        let is_dated = self.is_there(&keys::kept(kept.created_at, key))?;
        self.expect(is_dated, key, "will never be forgotten: when it was kept is missing");
        let Some(BodyHead { id: Some(id) }) = self.parse::<BodyHead>(key, kept.body.as_str().as_bytes()) else {
            self.find(key, "tells of nothing that has an id");
            return Ok(());
        };
        // An endpoint may have been removed since.
        let is_there = match id.split_once('_').map_or("", |(prefix, _)| prefix) {
            "wh" => true,
            "del" => id.parse().ok().map(|id| self.is_there(&keys::delivery(&id))).transpose()?.unwrap_or_default(),
            _ => id.parse().ok().map(|id| self.is_there(&keys::session(&id))).transpose()?.unwrap_or_default(),
        };
        self.expect(is_there, key, "tells of an effect that is not there");
        Ok(())
    }

    fn kept(&mut self, key: &[u8]) -> Result<(), StoreError> {
        let at = keys::response_in_time(key);
        let response = at.as_deref().map(|at| self.other::<KeptResponse>(at)).transpose()?.flatten();
        let is_its = response.is_some_and(|kept| at.is_some_and(|at| key == keys::kept(kept.created_at, &at)));
        self.expect(is_its, key, "dates a response that is not there, or of another time");
        Ok(())
    }

    /// An entry of an index in time order is what its payment says.
    fn in_time(&mut self, key: &[u8]) -> Result<(), StoreError> {
        let id = keys::payment_in_time(key);
        let placed = id.map(|id| self.other::<Placed>(&keys::session(&id))).transpose()?.flatten();
        let is_due = placed.is_some_and(|Placed { session, .. }| {
            let payment = &session.payment;
            let ends = payment.raw_status.is_open() && session.attempt.is_none();
            (ends && key == keys::session_end(session.expires_at, &payment.id))
                || session.check_at.is_some_and(|at| key == keys::check(at, &payment.id))
        });
        self.expect(is_due, key, "is due for a payment that does not wait for it");
        Ok(())
    }

    fn waiting(&mut self, key: &[u8]) -> Result<(), StoreError> {
        let id = Self::parts(key).first().and_then(|id| id.parse().ok());
        let placed = id.map(|id| self.other::<Placed>(&keys::session(&id))).transpose()?.flatten();
        let waits = placed.is_some_and(|Placed { session, .. }| {
            if key.starts_with(keys::UNSETTLED) { waits_for_settlement(&session) } else { is_under_review(&session) }
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
        let blocks = std::mem::take(&mut self.blocks);
        self.compare(keys::BLOCKS, blocks)?;
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
            let (key, value) = entry.map_err(StoreError::engine)?;
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

fn waits_for_settlement(session: &Session) -> bool {
    let refund = session.payment.refund.as_ref();
    session.payment.raw_status == RawStatus::Refunded
        && refund.is_some_and(|refund| refund.status == RefundStatus::PendingSettlement)
}

fn is_under_review(session: &Session) -> bool {
    session.attempt.is_some() && session.review.as_ref().is_some_and(|review| review.resolved.is_none())
}

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
