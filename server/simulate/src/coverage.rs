//! Which transitions of payments a world has seen, of all that the rules allow.

use std::collections::BTreeMap;

use payments_core::{
    Amount, Cause, Environment, NewRefund, PaymentMethod, RawStatus, RefundId, SimulateOutcome, TimelineKind,
    Timestamp, transition,
};

use payments_store::domain::Session;

/// Counts the transitions of sessions. The other transitions that the rules allow count zero.
pub(super) fn transitions(sessions: &[Session]) -> BTreeMap<String, u64> {
    let mut seen = allowed();
    for session in sessions {
        let mut status = RawStatus::Created;
        let mut go = |to: RawStatus| {
            if to != status {
                *seen.entry(name(&status, &to)).or_default() += 1;
                status = to;
            }
        };
        session.moves.iter().filter_map(|step| status_after(&step.kind)).for_each(&mut go);
        let payment = &session.payment;
        if payment.refunds.iter().any(|refund| !refund.stands() && refund.amount == payment.amount) {
            [RawStatus::Refunded, RawStatus::Paid].into_iter().for_each(&mut go);
        }
        go(payment.raw_status.clone());
    }
    seen
}

fn name(from: &RawStatus, to: &RawStatus) -> String {
    format!("{}-{}", from.as_str(), to.as_str())
}

fn status_after(kind: &TimelineKind) -> Option<RawStatus> {
    Some(match kind {
        TimelineKind::SentToGateway => RawStatus::Processing,
        TimelineKind::AttemptFailed => RawStatus::Pending,
        TimelineKind::Completed => RawStatus::Paid,
        TimelineKind::Failed => RawStatus::Failed,
        TimelineKind::Cancelled => RawStatus::Cancelled,
        TimelineKind::Expired => RawStatus::Expired,
        _ => return None,
    })
}

/// All transitions that the rules allow, none of them seen.
fn allowed() -> BTreeMap<String, u64> {
    let id = || RefundId::new(payments_core::Slot::FIRST, Timestamp::UNIX_EPOCH, [0; payments_core::RANDOM_BYTES]);
    let causes = [
        Cause::SentToGateway(PaymentMethod::Mfs),
        Cause::GatewayConfirmed,
        Cause::GatewayFailed,
        Cause::AttemptFailed,
        Cause::GatewayCancelled,
        Cause::CustomerLeft,
        Cause::Simulated(SimulateOutcome::Completed),
        Cause::Simulated(SimulateOutcome::Failed),
        Cause::Simulated(SimulateOutcome::Cancelled),
        Cause::SessionEnded,
        Cause::PartRefunded { refund: NewRefund::made(id()), amount: Amount::ZERO },
        Cause::Refunded(NewRefund::made(id())),
        Cause::RefundFailed { id: id(), reason: None },
    ];
    let environments = [Environment::Live, Environment::Test];
    let mut found = BTreeMap::new();
    for (from, environment) in RawStatus::KNOWN.iter().flat_map(|from| environments.map(|it| (from, it))) {
        let targets = causes.iter().filter_map(|cause| transition(from, environment, cause).ok());
        found.extend(targets.filter(|to| to != from).map(|to| (name(from, &to), 0)));
    }
    found
}
