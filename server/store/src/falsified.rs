//! Falsifies a server's changes on their way to the store, as the planted fault demands.

use payments_core::{BookingKind, EventKind, PayoutStatus, RawStatus, TimelineKind, Timestamp};

use crate::planted::{Planted, planted};
use crate::{
    Change, ClaimEnd, CommitError, Committed, EventWrite, PayoutWrite, Store, StoreError, Write,
    domain::{LATE_MONEY_MILLIS, PayoutCondition, Session},
};

/// Commits a change as a server with the planted fault would.
pub(crate) async fn commit(store: &Store, mut change: Change) -> Result<Committed, CommitError> {
    let Some(fault) = planted() else { return store.commit_as_it_is(change).await };
    falsify(&mut change, fault);
    if change.writes.is_empty() && change.idempotency.is_none() {
        return Ok(NOTHING);
    }
    let apart = change.idempotency.take_if(|_| fault == Planted::ResponseApart);
    let is_sent = fault == Planted::SentBeforeCommit && change.writes.iter().any(sends_customer);
    let committed = match store.commit_as_it_is(change).await {
        Err(CommitError::Store(StoreError::Unknown)) if fault == Planted::UnknownCountsAsDone => NOTHING,
        Err(_) if is_sent => NOTHING,
        committed => committed?,
    };
    if apart.is_some() {
        store.commit_as_it_is(Change { idempotency: apart, ..Change::default() }).await?;
    }
    Ok(committed)
}

const NOTHING: Committed = Committed { has_pending_event: false };

/// Whether the server sends a customer to a gateway after this write.
fn sends_customer(write: &Write) -> bool {
    matches!(write, Write::Payment(it) if it.session.payment.raw_status == RawStatus::Processing
        && it.session.moves.last().is_some_and(|it| it.kind == TimelineKind::SentToGateway))
}

fn falsify(change: &mut Change, fault: Planted) {
    match fault {
        Planted::EventLost => payments(change).for_each(|(_, event)| {
            event.take_if(|event| event.kind == EventKind::PaymentRefunded);
        }),
        Planted::RefundCountedTwice => payments(change).for_each(|(session, _)| {
            let refunds = session.payment.refunds.iter().filter(|refund| refund.source.is_some());
            let in_dashboard: Vec<_> = refunds.map(|refund| &refund.id).collect();
            session.refund_references.retain(|it| !in_dashboard.contains(&&it.refund));
        }),
        Planted::DisputeCountedTwice => payments(change).for_each(|(session, _)| {
            session.disputes.retain(|known| !known.is_reported);
        }),
        Planted::LateMoneyIgnored => payments(change).for_each(|(session, _)| {
            session.ended_attempts.iter_mut().for_each(|ended| ended.check_at = None);
        }),
        Planted::AnyQuestionCounts => payments(change).for_each(|(session, _)| count_any_question(session)),
        Planted::RetryDropped => change.writes.retain(
            |write| !matches!(write, Write::DeliveryChanged(it) if it.due_since.is_some() && it.is_in_outbox()),
        ),
        Planted::PayoutSentAgain => payouts(change).for_each(|it| {
            if it.record.payout.status == PayoutStatus::Unknown {
                (it.record.payout.status, it.record.batch) = (PayoutStatus::Approved, None);
            }
        }),
        Planted::PayoutOverAvailable => payouts(change).for_each(|it| it.condition = PayoutCondition::None),
        Planted::StatementLeavesOut => payouts(change).for_each(|it| {
            if it.record.version == 0 && it.record.from > 0 {
                it.record.from += 1;
                it.condition = PayoutCondition::None;
            }
        }),
        Planted::ReturnedTwice => payouts(change).for_each(|it| {
            let booking = it.booking.as_mut().filter(|it| it.booking.kind == BookingKind::PayoutReturned);
            booking.into_iter().for_each(|it| it.booking.minor *= 2);
        }),
        Planted::FanOutSkips if change.under.len() > 1 => skip_endpoints(change),
        Planted::EffectBeforeClaim => {
            change.writes.retain(|write| !matches!(write, Write::KeyClaimed(_)));
            change.idempotency.iter_mut().for_each(|response| response.claim = ClaimEnd::NotClaimed);
        }
        _ => {}
    }
}

/// The payments of a change, with their events.
fn payments(change: &mut Change) -> impl Iterator<Item = (&mut Session, &mut Option<EventWrite>)> {
    change.writes.iter_mut().filter_map(|write| match write {
        Write::Payment(it) => Some((&mut it.session, &mut it.event)),
        _ => None,
    })
}

fn payouts(change: &mut Change) -> impl Iterator<Item = &mut PayoutWrite> {
    change.writes.iter_mut().filter_map(|write| match write {
        Write::Payout(it) => Some(&mut **it),
        _ => None,
    })
}

/// Ends the queries about late money after a day, although the last one was not answered.
fn count_any_question(session: &mut Session) {
    let is_late = |at: Timestamp, since: Timestamp| at.as_millis() - since.as_millis() > LATE_MONEY_MILLIS;
    for ended in session.ended_attempts.iter_mut().filter(|ended| ended.attempt.silent_since.is_some()) {
        ended.check_at = ended.check_at.filter(|at| !is_late(*at, ended.ended_at));
    }
    let is_silent = session.attempt.as_ref().is_some_and(|attempt| attempt.silent_since.is_some());
    if is_silent && session.payment.raw_status != RawStatus::Processing {
        session.check_at = session.check_at.filter(|at| !is_late(*at, session.payment.updated_at));
    }
}

/// Makes only the first delivery of each event, and records its fan-out as finished.
fn skip_endpoints(change: &mut Change) {
    let mut is_first = false;
    change.writes.retain_mut(|write| match write {
        Write::FannedOut { after, .. } => {
            *after = None;
            is_first = true;
            true
        }
        Write::Delivery(_) => std::mem::take(&mut is_first),
        _ => true,
    });
}
