//! A payment's timeline: its moves, its refunds, its disputes, its manual reviews, and its events with their deliveries.

use payments_core::{
    Dispute, EventId, RefundSource, RefundStatus, Timeline, TimelineDelivery, TimelineEntry, TimelineEvent,
    TimelineKind, Timestamp, UnknownFields,
};
use serde::Deserialize;

use super::{Caller, Result, Service, manual_settlement::due_at};
use crate::{
    domain::{Move, Outgoing, Session, kind_of},
    store::EventWrite,
};

const MAX_DELIVERIES: usize = 200;

impl Service {
    /// What happened to a payment, oldest first, without a summary; and what a summary is made of.
    pub async fn timeline(&self, caller: &Caller, id: &str) -> Result<(Timeline, Told)> {
        let session = self.own_session(caller, id).await?;
        let payment_id = session.payment.id.clone();
        let events = self.store.events_of(&caller.scope, std::slice::from_ref(&payment_id)).await?;
        let mut deliveries = self.store.deliveries_of(&caller.scope, &payment_id, MAX_DELIVERIES + 1).await?;
        let has_more_deliveries = deliveries.len() > MAX_DELIVERIES;
        deliveries.truncate(MAX_DELIVERIES);
        let events = events.into_iter().flat_map(|(_, events)| events);
        let mut items = entries(&session);
        items.extend(events.map(|event| event_entry(event, &deliveries)));
        // Entries of one time stay in this order: the move, then its event.
        items.sort_by_key(|entry| entry.created_at);
        let timeline =
            Timeline { payment_id, items, has_more_deliveries, summary: None, unknown: UnknownFields::new() };
        Ok((
            timeline,
            Told {
                session,
                deliveries,
                now: self.ambient.now(),
                refund_days: self.settings.retention.manual_refund_days,
            },
        ))
    }
}

/// What a payment's summary is made of.
pub struct Told {
    pub session: Session,
    /// The deliveries of its events.
    pub deliveries: Vec<Outgoing>,
    pub now: Timestamp,
    /// Within how many days a refund must be sent by hand.
    pub refund_days: u16,
}

impl Told {
    /// By when the money of a refund that is sent by hand is due.
    pub fn due_at(&self, requested_at: Timestamp) -> Timestamp {
        due_at(requested_at, self.refund_days)
    }
}

fn entry(created_at: Timestamp, kind: TimelineKind, description: impl Into<String>) -> TimelineEntry {
    TimelineEntry {
        created_at,
        kind,
        description: description.into(),
        times: 1,
        last_at: None,
        event: None,
        unknown: UnknownFields::new(),
    }
}

/// The entries that the session itself gives.
fn entries(session: &Session) -> Vec<TimelineEntry> {
    let Session { payment, settlements, review, moves, .. } = session;
    let mut found = vec![entry(payment.created_at, TimelineKind::Created, "The payment was created.")];
    found.extend(moves.iter().map(|it| {
        let Move { at, kind, words, again } = it;
        let (times, last_at) = again.map_or((1, None), |(times, last_at)| (times, Some(last_at)));
        TimelineEntry { times, last_at, ..entry(*at, kind.clone(), words) }
    }));
    // A session drops its oldest moves, so the present status may need an entry of its own.
    let is_recorded = |kind: &TimelineKind| moves.iter().any(|it| it.kind == *kind);
    if let Some(at) = payment.paid_at.filter(|_| !is_recorded(&TimelineKind::Completed)) {
        found.push(entry(at, TimelineKind::Completed, "The payment was paid."));
    }
    let ended = kind_of(session).filter(|kind| payment.paid_at.is_none() && !is_recorded(kind));
    found.extend(ended.map(|kind| {
        let words = format!("The payment is {} since then.", payment.raw_status);
        entry(payment.updated_at, kind, words)
    }));
    for refund in payment.refunds.iter() {
        let how = match (&refund.source, &refund.status) {
            (Some(RefundSource::Gateway), _) => " in the gateway's dashboard",
            _ if refund.requires_manual_settlement => ", to be sent by hand",
            (_, RefundStatus::Pending) => "; the gateway sends them later",
            _ => "",
        };
        let words = format!("{} {} were given back{how}.", refund.amount, payment.currency);
        found.push(entry(refund.created_at, TimelineKind::Refunded, words));
        found.extend(refund.failed_at.map(|at| {
            let why = refund.failure_reason.as_ref().map_or_else(String::new, |reason| format!(": {reason}"));
            let words = format!("The refund of {} {} failed{why}.", refund.amount, payment.currency);
            entry(at, TimelineKind::RefundFailed, words)
        }));
        let is_settled = refund.status == RefundStatus::Succeeded && refund.requires_manual_settlement;
        found.extend(refund.settled_at.filter(|_| is_settled).map(|at| {
            let its = settlements.iter().find(|it| it.refund == refund.id);
            let reference = its.map_or("", |it| &it.reference);
            let words = format!("The operator sent {} {}: reference {reference}.", refund.amount, payment.currency);
            entry(at, TimelineKind::RefundSettled, words)
        }));
    }
    for dispute in payment.disputes.iter() {
        let Dispute { amount, currency, reason, evidence_due_by, .. } = dispute;
        let reason = reason.as_ref().map_or_else(String::new, |reason| format!(": {reason}"));
        let due = evidence_due_by.map_or_else(String::new, |due| format!(". Evidence is due by {due}"));
        let words = format!("The customer disputes {amount} {currency}{reason}{due}.");
        found.push(entry(dispute.opened_at, TimelineKind::Disputed, words));
        found.extend(dispute.closed_at.map(|at| {
            let words = format!("The dispute of {amount} {currency} was {}.", dispute.status);
            entry(at, TimelineKind::DisputeClosed, words)
        }));
    }
    if let Some(review) = review {
        found.push(entry(review.found_at, TimelineKind::ReviewRequested, &review.what));
        let resolved = review.resolved.as_ref();
        found.extend(resolved.map(|it| entry(it.resolved_at, TimelineKind::ReviewResolved, "The operator decided.")));
    }
    found
}

fn event_entry(event: EventWrite, deliveries: &[Outgoing]) -> TimelineEntry {
    let EventWrite { id, kind, created_at, .. } = event;
    let its = deliveries.iter().filter(|outgoing| event_of(outgoing).as_ref() == Some(&id));
    let deliveries: Vec<_> = its.map(delivery).collect();
    let words = match deliveries.len() {
        0 => format!("The event {kind}: no endpoint was sent it."),
        1 => format!("The event {kind}, with one delivery."),
        several => format!("The event {kind}, with {several} deliveries."),
    };
    let event = Some(TimelineEvent { id, event: kind, deliveries, unknown: UnknownFields::new() });
    TimelineEntry { event, ..entry(created_at, TimelineKind::Event, words) }
}

/// The event of a delivery. For a redacted delivery, and one of an early version, the payload names it.
fn event_of(outgoing: &Outgoing) -> Option<EventId> {
    #[derive(Deserialize)]
    struct Head {
        id: EventId,
    }
    let head = || outgoing.delivery.payload.parse::<Head>().ok().map(|head| head.id);
    outgoing.event.clone().or_else(head)
}

fn delivery(outgoing: &Outgoing) -> TimelineDelivery {
    let it = &outgoing.delivery;
    TimelineDelivery {
        id: it.id.clone(),
        webhook_id: it.webhook_id.clone(),
        status: it.status.clone(),
        attempts: it.attempts,
        response_status: it.response_status,
        error: it.error.clone(),
        created_at: it.created_at,
        delivered_at: it.delivered_at,
        unknown: UnknownFields::new(),
    }
}
