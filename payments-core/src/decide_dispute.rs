//! Applies a gateway's or an operator's report of a dispute to the payment.
//!
//! A report may contain several changes, because events get lost. [`decide_dispute`] applies one of them: at most one
//! booking and one event, like every [`Decision`]. Commit it, then call again with the changed payment, until it
//! returns `None`. A crash between two calls loses nothing: the same report continues where it stopped.
//!
//! Reports come late, twice and out of order. Their contents show the order: a dispute's totals and stage only grow.

use crate::{
    Amount, Booking, BookingKind, Decision, Dispute, DisputeId, DisputeStatus, EventKind, MAX_DISPUTES, Payment,
    Refusal, Timestamp, UnknownFields, ledger,
};

/// The state of a dispute as a gateway or an operator reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DisputeReport {
    /// The dispute's id, the same in each of its reports.
    pub id: DisputeId,
    /// The disputed amount.
    pub amount: Amount,
    /// The customer's reason.
    pub reason: Option<String>,
    /// Its status.
    pub status: DisputeStatus,
    /// When the evidence must be with the gateway.
    pub evidence_due_by: Option<Timestamp>,
    /// What was withdrawn so far.
    pub withdrawn: Amount,
    /// What was reinstated so far.
    pub reinstated: Amount,
    /// Whether the platform returns its fee on what is withdrawn. The first report of a dispute decides.
    pub returns_fee: bool,
}

impl DisputeReport {
    /// A report of what is known of a dispute.
    #[must_use]
    pub fn of(dispute: &Dispute) -> Self {
        Self {
            id: dispute.id.clone(),
            amount: dispute.amount,
            reason: dispute.reason.clone(),
            status: dispute.status.clone(),
            evidence_due_by: dispute.evidence_due_by,
            withdrawn: dispute.withdrawn,
            reinstated: dispute.reinstated,
            returns_fee: dispute.fee_returned.is_some(),
        }
    }

    /// Whether its sums fit the payment and each other.
    fn is_sound(&self, payment: &Payment) -> bool {
        let taken = self.withdrawn.checked_sub(self.reinstated);
        self.status.stage().is_some()
            && self.amount > Amount::ZERO
            && self.amount <= payment.amount
            && taken.is_some_and(|taken| taken <= self.amount)
    }

    /// The status before it is closed, for a chargeback of which nothing was known. Its end is the next change.
    fn first_status(&self) -> DisputeStatus {
        if self.status.is_closed() { DisputeStatus::UnderReview } else { self.status.clone() }
    }
}

/// Applies the next change of a report to its payment; `None` if the payment has all of it. Timestamps increase as in
/// [`decide`](crate::decide).
///
/// # Errors
/// [`Refusal`] if the payment was never paid or has too many disputes, or if the report contradicts itself or the payment.
pub fn decide_dispute(payment: &Payment, report: &DisputeReport, now: Timestamp) -> Result<Option<Decision>, Refusal> {
    if !payment.was_paid() {
        return Err(Refusal::NeverPaid { status: payment.raw_status.clone() });
    }
    if !report.is_sound(payment) {
        return Err(Refusal::DisputeContradicts);
    }
    let now = now.max(payment.updated_at.plus_millis(1));
    let mut after = payment.clone();
    let is_new = payment.disputes.iter().all(|dispute| dispute.id != report.id);
    if is_new {
        if payment.disputes.len() >= MAX_DISPUTES {
            return Err(Refusal::TooManyDisputes);
        }
        after.disputes.push(opened(payment, report, now));
    }
    let Some(dispute) = after.disputes.find_mut(&report.id) else { return Ok(None) };
    let before = dispute.clone();
    let booking = book(dispute, report, payment);
    let event = match is_new {
        true => Some(EventKind::PaymentDisputed),
        false => follow(dispute, report, booking.is_some(), now),
    };
    if !is_new && *dispute == before {
        return Ok(None);
    }
    after.updated_at = now;
    Ok(Some(Decision { payment: after, booking, event }))
}

fn opened(payment: &Payment, report: &DisputeReport, now: Timestamp) -> Dispute {
    Dispute {
        id: report.id.clone(),
        amount: report.amount,
        currency: payment.currency,
        reason: report.reason.clone(),
        status: report.first_status(),
        evidence_due_by: report.evidence_due_by,
        withdrawn: Amount::ZERO,
        reinstated: Amount::ZERO,
        fee_returned: report.returns_fee.then_some(Amount::ZERO),
        opened_at: now,
        closed_at: None,
        unknown: UnknownFields::default(),
    }
}

/// Books what is newly reinstated, if that was withdrawn before; else what is newly withdrawn.
fn book(dispute: &mut Dispute, report: &DisputeReport, payment: &Payment) -> Option<Booking> {
    let new = |total: Amount, known| total.checked_sub(known).filter(|new| *new > Amount::ZERO);
    let reinstated = new(report.reinstated, dispute.reinstated).filter(|_| report.reinstated <= dispute.withdrawn);
    let (kind, minor, fee) = match (reinstated, new(report.withdrawn, dispute.withdrawn)) {
        (Some(minor), _) => {
            let fee = fee_taken_back(dispute, minor);
            dispute.reinstated = report.reinstated;
            dispute.fee_returned = dispute.fee_returned.and_then(|it| it.checked_sub(fee));
            (BookingKind::DisputeReinstated, minor, fee)
        }
        (None, Some(minor)) => {
            let fee = dispute.fee_returned.map_or(Amount::ZERO, |_| ledger::fee_returned_with(payment, minor));
            dispute.withdrawn = report.withdrawn;
            dispute.fee_returned = dispute.fee_returned.map(|it| Amount::from_minor(it.as_minor() + fee.as_minor()));
            (BookingKind::DisputeWithdrawn, minor, fee)
        }
        (None, None) => return None,
    };
    Some(Booking::new(kind, minor, fee))
}

/// The part of the returned fee that belongs to `reinstated` of the money taken, rounded half up. All of it belongs to all of
/// the money.
fn fee_taken_back(dispute: &Dispute, reinstated: Amount) -> Amount {
    let (returned, taken) = (dispute.fee_returned.unwrap_or_default(), dispute.amount_taken());
    ledger::part_of(returned, reinstated, taken)
}

/// Lets a dispute follow a report, unless the report is older than what is known. Returns the event. `has_moved` says whether
/// the report has just brought new money: only then may a decided dispute be decided otherwise. It never opens again.
fn follow(dispute: &mut Dispute, report: &DisputeReport, has_moved: bool, now: Timestamp) -> Option<EventKind> {
    if (report.withdrawn, report.reinstated) != (dispute.withdrawn, dispute.reinstated) {
        return None;
    }
    let before = dispute.status.clone();
    // An inquiry that was lost had become a chargeback before.
    let was_missed = before == DisputeStatus::Warning && report.status == DisputeStatus::Lost;
    let status = if was_missed { report.first_status() } else { report.status.clone() };
    let is_later = status.stage() > before.stage();
    let is_reversed = has_moved && status.is_closed() && status != before;
    if before.is_closed() && !is_reversed || status.stage() < before.stage() {
        return None;
    }
    (dispute.amount, dispute.reason, dispute.evidence_due_by) =
        (report.amount, report.reason.clone(), report.evidence_due_by);
    dispute.status = status;
    match dispute.status.is_closed() {
        true => {
            dispute.closed_at = Some(now);
            Some(EventKind::PaymentDisputeClosed)
        }
        false => (is_later && before == DisputeStatus::Warning).then_some(EventKind::PaymentDisputed),
    }
}

#[cfg(test)]
mod tests;
