//! The record of a payment: its scope, the payment byte for byte as the API serves it, and the rest of its session. A read
//! finds the payment without parsing any JSON.

use std::borrow::Cow;

use payments_core::{EventId, Payment, PaymentId, RawJson, Timestamp, TransactionId};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::{
    booking::under_way_in,
    entry::{Entry, Record, day_number, gauge, key_alone},
    keys::{self, CHECKS, EXPIRIES, UNSETTLED},
    limits::part_of_day,
    list::{List, item_of_payment},
    reads::Reads,
};
use crate::{
    PaymentJson, StoreError,
    domain::{
        DayTotals, EndedAttempt, GatewayAttempt, GatewayCost, KnownDispute, ManualReview, ManualSettlement, Move,
        PaymentRow, PendingRefund, RefundReference, Scope, Session, lookups,
    },
};

/// The text before the scope.
const BEGIN: &str = r#"{"scope":""#;
/// The text between the scope and the payment, which begins on a line of its own.
const PAYMENT: &str = "\",\"payment\":\n";
/// The text between the payment and the rest. The rest is the last line: it has no line break, while a merchant's metadata
/// may have some.
const REST: &str = "\n,\"session\":";

#[derive(Debug, Clone)]
pub(super) struct StoredPayment<'s> {
    pub(super) session: Cow<'s, Session>,
    /// The session's payment as the API serves it.
    pub(super) json: Cow<'s, RawJson>,
    /// Its position in the list of its scope's payments.
    pub(super) position: u64,
    pub(super) events: Vec<EventId>,
    /// The bookings without an event.
    pub(super) bookings: Vec<TransactionId>,
    /// Whether the last event's data is this payment.
    pub(super) is_data: bool,
    /// Whether it is part of the amount of its day, which its workspace limits.
    pub(super) is_limited: bool,
}

/// The part of the record after the payment.
#[derive(Serialize, Deserialize)]
struct Rest<'s> {
    position: u64,
    version: u64,
    expires_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    attempt: Option<Cow<'s, GatewayAttempt>>,
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    ended_attempts: Cow<'s, [EndedAttempt]>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    check_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pending_refund: Option<Cow<'s, PendingRefund>>,
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    refund_references: Cow<'s, [RefundReference]>,
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    costs: Cow<'s, [GatewayCost]>,
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    settled: Cow<'s, [PaymentRow]>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    refund_check_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    settlements: Cow<'s, [ManualSettlement]>,
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    disputes: Cow<'s, [KnownDispute]>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    review: Option<Cow<'s, ManualReview>>,
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    moves: Cow<'s, [Move]>,
    events: Cow<'s, [EventId]>,
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    bookings: Cow<'s, [TransactionId]>,
    is_data: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_limited: bool,
}

struct Parts<'r> {
    scope: &'r str,
    payment: &'r str,
    rest: &'r str,
}

impl<'r> Parts<'r> {
    fn of(text: &'r str) -> Option<Self> {
        let (first, others) = text.split_once('\n')?;
        let scope = first.strip_prefix(BEGIN)?.strip_suffix(&PAYMENT[..PAYMENT.len() - 1])?;
        // The last line is usually much shorter than the payment.
        let (payment, last) = others.rsplit_once('\n')?;
        let rest = last.strip_prefix(&REST[1..])?.strip_suffix('}')?;
        Some(Self { scope, payment, rest })
    }

    fn is_of(&self, scope: &Scope) -> bool {
        self.scope.split_once('/') == Some((scope.developer_id.as_str(), scope.environment.as_str()))
    }
}

/// The payment of a record as the API serves it, if it is of `scope`. Reuses the record's memory.
pub(super) fn served(key: &[u8], record: Vec<u8>, scope: &Scope) -> Result<Option<PaymentJson>, StoreError> {
    let mut text = String::from_utf8(record).map_err(|error| StoreError::corrupt(key, error))?;
    let parts = parts_of(key, &text)?;
    if !parts.is_of(scope) {
        return Ok(None);
    }
    let begin = BEGIN.len() + parts.scope.len() + PAYMENT.len();
    let end = begin + parts.payment.len();
    text.truncate(end);
    text.drain(..begin);
    Ok(Some(PaymentJson(text)))
}

fn parts_of<'t>(key: &[u8], text: &'t str) -> Result<Parts<'t>, StoreError> {
    Parts::of(text).ok_or_else(|| StoreError::corrupt(key, "it is no record of a payment"))
}

fn parse<T: DeserializeOwned>(key: &[u8], text: &str) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|error| StoreError::corrupt(key, error))
}

impl StoredPayment<'_> {
    pub(super) fn parse(key: &[u8], record: &[u8]) -> Result<StoredPayment<'static>, StoreError> {
        let text = str::from_utf8(record).map_err(|error| StoreError::corrupt(key, error))?;
        let parts = parts_of(key, text)?;
        let payment: Payment = parse(key, parts.payment)?;
        if !payment.currency.is_known() || !payment.environment.is_known() {
            return Err(StoreError::corrupt(key, "its currency or its environment is unknown"));
        }
        let Rest {
            position,
            version,
            expires_at,
            attempt,
            ended_attempts,
            check_at,
            pending_refund,
            refund_references,
            costs,
            settled,
            refund_check_at,
            settlements,
            disputes,
            review,
            moves,
            events,
            bookings,
            is_data,
            is_limited,
        } = parse(key, parts.rest)?;
        let session = Session {
            version,
            expires_at,
            payment,
            attempt: attempt.map(Cow::into_owned),
            ended_attempts: ended_attempts.into_owned(),
            check_at,
            pending_refund: pending_refund.map(Cow::into_owned),
            refund_references: refund_references.into_owned(),
            costs: costs.into_owned(),
            settled: settled.into_owned(),
            refund_check_at,
            settlements: settlements.into_owned(),
            disputes: disputes.into_owned(),
            review: review.map(Cow::into_owned),
            moves: moves.into_owned(),
        };
        if !parts.is_of(&session.scope()) {
            return Err(StoreError::corrupt(key, "it names another scope than its payment"));
        }
        let json = RawJson::new(parts.payment).map_err(|error| StoreError::corrupt(key, error))?;
        let (session, json) = (Cow::Owned(session), Cow::Owned(json));
        let (events, bookings) = (events.into_owned(), bookings.into_owned());
        Ok(StoredPayment { session, json, position, events, bookings, is_data, is_limited })
    }

    /// The data of an event, if that is this payment.
    pub(super) fn data_of(&self, event: &EventId) -> Option<RawJson> {
        (self.is_data && self.events.last() == Some(event)).then(|| self.json.clone().into_owned())
    }

    pub(super) async fn read(reads: Reads<'_>, id: &PaymentId) -> Result<Option<StoredPayment<'static>>, StoreError> {
        let key = keys::payment(id);
        let record = reads.one(key.clone()).await?;
        record.map(|record| Self::parse(&key, &record)).transpose()
    }
}

impl Record for StoredPayment<'_> {
    fn key(&self) -> Vec<u8> {
        keys::payment(&self.session.payment.id)
    }

    fn text(&self) -> Result<Vec<u8>, serde_json::Error> {
        let session = &*self.session;
        let rest = Rest {
            position: self.position,
            version: session.version,
            expires_at: session.expires_at,
            attempt: session.attempt.as_ref().map(Cow::Borrowed),
            ended_attempts: Cow::Borrowed(&session.ended_attempts),
            check_at: session.check_at,
            pending_refund: session.pending_refund.as_ref().map(Cow::Borrowed),
            refund_references: Cow::Borrowed(&session.refund_references),
            costs: Cow::Borrowed(&session.costs),
            settled: Cow::Borrowed(&session.settled),
            refund_check_at: session.refund_check_at,
            settlements: Cow::Borrowed(&session.settlements),
            disputes: Cow::Borrowed(&session.disputes),
            review: session.review.as_ref().map(Cow::Borrowed),
            moves: Cow::Borrowed(&session.moves),
            events: Cow::Borrowed(&self.events),
            bookings: Cow::Borrowed(&self.bookings),
            is_data: self.is_data,
            is_limited: self.is_limited,
        };
        let json = self.json.as_str();
        // Room for the rest of a new payment.
        let mut record = Vec::with_capacity(json.len() + 512);
        for part in [BEGIN, &session.scope().to_string(), PAYMENT, json, REST] {
            record.extend_from_slice(part.as_bytes());
        }
        serde_json::to_writer(&mut record, &rest)?;
        record.push(b'}');
        Ok(record)
    }

    fn entries(&self) -> Vec<Entry> {
        let Self { session, position, .. } = self;
        let (payment, scope, position) = (&session.payment, session.scope(), *position);
        let (id, status) = (&payment.id, payment.status.clone());
        let owner = id.as_str().as_bytes().to_vec();
        let mut entries = vec![Entry::Item { list: List::payments(&scope), position, item: item_of_payment(id) }];
        entries.push(Entry::Sum { head: keys::head_of_scope(&scope), name: count_of(&status), amount: 1 });
        entries.push(gauge(format!("payments.{}.{status}", scope.environment)));
        entries.push(Entry::Day {
            scope: scope.clone(),
            currency: payment.currency,
            day: day_number(payment.created_at),
            added: DayTotals { created: 1, ..DayTotals::default() },
        });
        entries.extend(part_of_day(&scope, payment).filter(|_| self.is_limited));
        for lookup in lookups(payment) {
            entries.push(Entry::Found { list: List::found(&scope, &lookup), position });
        }
        if let Some(time) = session.unattempted_expiry() {
            entries.push(Entry::At { index: EXPIRIES, time, owner: owner.clone() });
        }
        if let Some(time) = session.check_at {
            entries.push(Entry::At { index: CHECKS, time, owner: owner.clone() });
        }
        if let Some(time) = session.unsettled_since() {
            entries.push(Entry::At { index: UNSETTLED, time, owner: owner.clone() });
        }
        if let Some(attempt) = &session.attempt
            && let Some(transaction) =
                attempt.transaction.as_ref().filter(|it| payment.paid_at.is_some() && **it != attempt.invoice)
        {
            entries.push(Entry::Owner { key: keys::at_gateway(attempt.gateway, transaction), owner });
        }
        let attempts = session.attempt.iter().chain(session.ended_attempts.iter().map(|ended| &ended.attempt));
        // A reference that begins with the payment's id needs no entry.
        for attempt in attempts.filter(|it| !it.invoice.starts_with(id.as_str())) {
            let owner = id.as_str().as_bytes().to_vec();
            entries.push(Entry::Owner { key: keys::at_gateway(attempt.gateway, &attempt.invoice), owner });
        }
        for EndedAttempt { attempt, .. } in &session.ended_attempts {
            let owner = id.as_str().as_bytes().to_vec();
            let key = attempt.transaction.as_ref().map(|it| keys::surplus_at_gateway(attempt.gateway, it));
            entries.extend(key.map(|key| Entry::Owner { key, owner }));
        }
        if let Some(minor) = session.refund_under_way() {
            let (head, name) = (keys::head_of_scope(&scope), under_way_in(payment.currency));
            entries.push(Entry::Sum { head, name, amount: minor });
        }
        if session.needs_manual_settlement() {
            entries.push(key_alone(keys::settlement(id)));
        }
        for dispute in payment.disputes.iter() {
            let value = id.as_str().as_bytes().to_vec();
            entries.push(Entry::Key { key: keys::payment_of_dispute(&dispute.id), value });
        }
        if session.is_disputed() {
            entries.push(key_alone(keys::open_dispute(id)));
        }
        if session.needs_manual_review() {
            entries.push(key_alone(keys::review(id)));
        }
        entries.push(Entry::Bit { scope, status, position });
        entries
    }
}

/// The name of the sum that counts the payments of a status.
pub(super) fn count_of(status: &payments_core::Status) -> String {
    format!("payments.{status}")
}
