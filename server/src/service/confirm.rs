//! Confirms live payments: queries the gateway and changes the payment by the gateway's answer.
//!
//! Before the server sends a capture, it commits the intent. After a crash, the reconciler continues from there.

use payments_core::{Cause, Payment, PaymentId, RawStatus, TimelineKind, Timestamp};

use super::{Refused, Service, payments::NO_PAYMENT, retry_on_conflict};
use crate::{
    domain::{GatewayAttempt, ManualReview, Session},
    gateway::{AttemptState, CaptureOutcome, Gateway, GatewayError},
};

/// What a customer's return says about an attempt. Only the gateway's own answer changes the payment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hint {
    /// Nothing.
    None,
    /// The customer approved it.
    Approved,
    /// The customer cancelled it or could not pay.
    Cancelled,
}

/// Minimum time between two captures.
const CAPTURE_INTERVAL_MILLIS: i64 = 5_000;
/// Minimum time from a capture to a cancel: the gateway may still be working on the capture.
const CANCEL_DELAY_MILLIS: i64 = 60_000;
/// The first backoff interval.
const FIRST_BACKOFF_MILLIS: i64 = 3_000;
/// The longest backoff interval while the payment waits for the customer.
const LONGEST_CUSTOMER_BACKOFF_MILLIS: i64 = 300_000;
/// The longest backoff interval while the payment waits for the gateway.
const LONGEST_GATEWAY_BACKOFF_MILLIS: i64 = 60_000;
/// How long after a failed capture the server still queries the gateway, because the money may arrive late.
const LATE_MONEY_MILLIS: i64 = 24 * 60 * 60 * 1000;

/// What a processing payment waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WaitsFor {
    /// The customer.
    Customer,
    /// The gateway, which did not answer or has not captured the approved money yet.
    Gateway,
}

/// When to query the gateway next, or `None` for never again.
///
/// The backoff interval is a third of the time since the payment last changed, or a twelfth while it waits for the
/// gateway. The server always queries when the session expires. From then on, the interval counts from the expiry.
pub(super) fn next_check(
    status: &RawStatus,
    waits_for: WaitsFor,
    changed_at: Timestamp,
    expires_at: Timestamp,
    now: Timestamp,
) -> Option<Timestamp> {
    let is_processing = *status == RawStatus::Processing;
    let is_expired = expires_at <= now;
    let since = if is_processing && is_expired { expires_at.max(changed_at) } else { changed_at };
    let elapsed = now.as_millis() - since.as_millis();
    if !is_processing && elapsed > LATE_MONEY_MILLIS {
        return None;
    }
    let (interval, longest) = match waits_for {
        _ if !is_processing => (elapsed / 3, LATE_MONEY_MILLIS),
        WaitsFor::Customer => (elapsed / 3, LONGEST_CUSTOMER_BACKOFF_MILLIS),
        WaitsFor::Gateway => (elapsed / 12, LONGEST_GATEWAY_BACKOFF_MILLIS),
    };
    let next = plus_millis(now, interval.clamp(FIRST_BACKOFF_MILLIS, longest));
    Some(if is_processing && !is_expired { next.min(expires_at) } else { next })
}

fn plus_millis(time: Timestamp, millis: i64) -> Timestamp {
    Timestamp::from_millis(time.as_millis() + millis).unwrap_or(time)
}

/// What the server does after a query.
enum Step {
    /// Capture the money.
    Capture,
    /// Cancel the attempt.
    Cancel,
    /// Query again later.
    Wait(WaitsFor),
    /// Change the payment's state.
    Change(Cause),
    /// Request a manual review.
    Review(String),
}

impl Service {
    /// Queries the gateway about a payment and does what follows. Returns the payment afterwards.
    pub(crate) async fn confirm(&self, id: &PaymentId, hint: Hint) -> Result<Payment, Refused> {
        retry_on_conflict(|| async {
            let session = self.store.session(id).await?.ok_or(NO_PAYMENT)?;
            if !awaits_gateway(&session) {
                return Ok(session.payment);
            }
            match self.confirm_once(session, hint).await {
                Ok(payment) => Ok(payment),
                Err(Refused::Conflict) => Err(Refused::Conflict),
                Err(refused) => self.postpone(id, WaitsFor::Gateway, Some(&refused)).await.and(Err(refused)),
            }
        })
        .await
    }

    async fn confirm_once(&self, mut session: Session, hint: Hint) -> Result<Payment, Refused> {
        let payment = &session.payment.clone();
        let Some(attempt) = &session.attempt.clone() else { return Ok(session.payment) };
        let gateway = self.gateways.named(attempt.gateway).ok_or(Refused::NoGateway(payment.currency))?;
        let capture_at_once = hint == Hint::Approved && gateway.captures() && attempt.capture_sent_at.is_none();
        let mut state = match capture_at_once && payment.raw_status == RawStatus::Processing {
            true => AttemptState::Approved,
            false => twice(|| gateway.query(payment, attempt)).await?,
        };
        loop {
            match step(&session, &state, hint, self.ambient.now()) {
                Step::Capture => {
                    session = self.record_capture(session, attempt).await?;
                    state = self.capture(gateway, &session, attempt).await?;
                }
                Step::Cancel => match twice(|| gateway.cancel(payment, attempt)).await? {
                    AttemptState::Open => return self.postpone(&payment.id, WaitsFor::Gateway, None).await,
                    cancelled => state = cancelled,
                },
                Step::Wait(waits_for) => return self.postpone(&payment.id, waits_for, None).await,
                Step::Change(cause) => return self.apply_answer(&session, &state, cause).await,
                Step::Review(what) => return self.request_review(session, &what).await,
            }
        }
    }

    /// Captures the money. If the answer is lost, queries instead of capturing again. A refusal says nothing about an
    /// earlier capture, so the server queries after it too.
    async fn capture(
        &self,
        gateway: &dyn Gateway,
        session: &Session,
        attempt: &GatewayAttempt,
    ) -> Result<AttemptState, GatewayError> {
        let captured = match gateway.capture(&session.payment, attempt).await {
            Err(GatewayError::Unanswered { .. }) => CaptureOutcome::Unknown,
            outcome => outcome?,
        };
        if let CaptureOutcome::State(state) = captured {
            return Ok(state);
        }
        let state = twice(|| gateway.query(&session.payment, attempt)).await?;
        Ok(match (captured, state) {
            (CaptureOutcome::Refused(ended), AttemptState::Open | AttemptState::Approved) => ended,
            (_, state) => state,
        })
    }

    /// Commits that the server is about to send a capture.
    async fn record_capture(&self, session: Session, attempt: &GatewayAttempt) -> Result<Session, Refused> {
        let now = self.ambient.now();
        let attempt = GatewayAttempt { capture_sent_at: Some(now), ..attempt.clone() };
        // If the server stops now, the reconciler queries the gateway at this time.
        let check_at = Some(plus_millis(now, FIRST_BACKOFF_MILLIS));
        let mut next = Session { attempt: Some(attempt), check_at, ..session.next() };
        next.record(now, TimelineKind::CaptureRequested, "The customer approved, and the server asked for the money.");
        self.commit_without_event(&session, next.clone()).await?;
        Ok(next)
    }

    /// Schedules the next query, unless a concurrent change has scheduled it.
    async fn postpone(
        &self,
        id: &PaymentId,
        waits_for: WaitsFor,
        refused: Option<&Refused>,
    ) -> Result<Payment, Refused> {
        // Read the session again, because `record_capture` may have changed it.
        let session = self.store.session(id).await?.ok_or(NO_PAYMENT)?;
        // A concurrent check has decided it.
        if !awaits_gateway(&session) {
            return Ok(session.payment);
        }
        let (payment, now) = (&session.payment, self.ambient.now());
        let check_at = next_check(&payment.raw_status, waits_for, payment.updated_at, session.expires_at, now);
        let mut next = Session { check_at, ..session.next() };
        if let Some(Refused::Gateway(error)) = refused {
            next.record(now, TimelineKind::GatewayError, error.to_string());
        }
        match self.commit_without_event(&session, next).await {
            Ok(()) | Err(Refused::Conflict) => Ok(session.payment),
            Err(refused) => Err(refused),
        }
    }

    async fn apply_answer(&self, session: &Session, state: &AttemptState, cause: Cause) -> Result<Payment, Refused> {
        let now = self.ambient.now();
        let decision = payments_core::decide(&session.payment, cause, now)?;
        let mut next = session.next();
        next.check_at = None;
        if let Some(attempt) = &mut next.attempt {
            if let AttemptState::Paid { transaction } = state {
                attempt.transaction = Some(transaction.clone());
            } else if attempt.capture_sent_at.is_some() {
                // The gateway says that the capture failed. Later queries find the money if it arrives late.
                let status = &decision.payment.raw_status;
                next.check_at = next_check(status, WaitsFor::Gateway, now, session.expires_at, now);
            }
        }
        let payment = self.commit_decision(session, next, decision).await?;
        tracing::info!(payment = %payment.id, status = payment.raw_status.as_str(), "applied the gateway's answer");
        Ok(payment)
    }

    /// Requests a manual review of a discrepancy. Until a person resolves it, the server does not query the gateway.
    pub(super) async fn request_review(&self, session: Session, what: &str) -> Result<Payment, Refused> {
        tracing::error!(payment = %session.payment.id, what, "needs manual review: payments-server reconcile list");
        let review = ManualReview { what: what.to_owned(), found_at: self.ambient.now(), resolved: None };
        let next = Session { check_at: None, review: Some(review), ..session.next() };
        self.commit_without_event(&session, next).await?;
        Ok(session.payment)
    }
}

/// Repeats a request once if the gateway does not answer. For requests that are safe to repeat.
async fn twice<F: Future<Output = Result<AttemptState, GatewayError>>>(ask: impl Fn() -> F) -> F::Output {
    match ask().await {
        Err(GatewayError::Unanswered { .. }) => ask().await,
        outcome => outcome,
    }
}

/// Whether the gateway's answer can still change the payment. Not during a manual review.
pub(super) fn awaits_gateway(session: &Session) -> bool {
    let payment = &session.payment;
    let paid = payments_core::transition(&payment.raw_status, payment.environment, &Cause::GatewayConfirmed);
    session.attempt.is_some() && paid.is_ok() && !session.needs_manual_review()
}

/// Decides what follows from a query's answer. Money that arrived always counts. Nothing else changes an ended payment.
fn step(session: &Session, state: &AttemptState, hint: Hint, now: Timestamp) -> Step {
    let capture_sent_at = session.attempt.as_ref().and_then(|attempt| attempt.capture_sent_at);
    let since_capture = capture_sent_at.map_or(i64::MAX, |at| now.as_millis() - at.as_millis());
    let is_expired = session.expires_at <= now;
    match state {
        AttemptState::Paid { .. } => Step::Change(Cause::GatewayConfirmed),
        AttemptState::Discrepancy { what } => Step::Review(what.clone()),
        _ if session.payment.raw_status != RawStatus::Processing => Step::Wait(WaitsFor::Gateway),
        AttemptState::Approved if since_capture >= CAPTURE_INTERVAL_MILLIS => Step::Capture,
        AttemptState::Approved => Step::Wait(WaitsFor::Gateway),
        AttemptState::Open if (is_expired || hint == Hint::Cancelled) && since_capture >= CANCEL_DELAY_MILLIS => {
            Step::Cancel
        }
        AttemptState::Open | AttemptState::Pending => Step::Wait(WaitsFor::Customer),
        AttemptState::Cancelled if is_expired => Step::Change(Cause::SessionEnded),
        AttemptState::Cancelled => Step::Change(Cause::GatewayCancelled),
        AttemptState::Failed => Step::Change(Cause::GatewayFailed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000).unwrap()
    }

    #[test]
    fn backoff_grows_until_the_session_expires_and_restarts_there() {
        let processing = &RawStatus::Processing;
        let (begun, expiry) = (at(1_000), at(4_600));
        let mut now = begun;
        let mut queries = Vec::new();
        while now < at(20_000) {
            now = next_check(processing, WaitsFor::Customer, begun, expiry, now).unwrap();
            queries.push(now);
        }
        assert_eq!(queries[0], at(1_003));
        assert!(queries.contains(&expiry), "queries when the session expires");
        let after = queries.iter().find(|time| **time > expiry).unwrap();
        assert_eq!(*after, at(4_603));
        let intervals: Vec<i64> = queries.windows(2).map(|two| two[1].as_millis() - two[0].as_millis()).collect();
        assert!(intervals.iter().all(|interval| *interval <= LONGEST_CUSTOMER_BACKOFF_MILLIS));
        assert_eq!(intervals.last(), Some(&LONGEST_CUSTOMER_BACKOFF_MILLIS));
        assert!(queries.len() < 120, "{} queries in five hours", queries.len());
    }

    #[test]
    fn backoff_is_shorter_while_a_payment_waits_for_the_gateway() {
        let processing = &RawStatus::Processing;
        let mut now = at(0);
        let mut intervals = Vec::new();
        while now < at(3_600) {
            let next = |waits_for| next_check(processing, waits_for, at(0), at(0), now).unwrap();
            assert!(next(WaitsFor::Gateway) <= next(WaitsFor::Customer));
            intervals.push(next(WaitsFor::Gateway).as_millis() - now.as_millis());
            now = next(WaitsFor::Gateway);
        }
        assert_eq!((intervals[0], intervals.last()), (FIRST_BACKOFF_MILLIS, Some(&LONGEST_GATEWAY_BACKOFF_MILLIS)));
        assert!(intervals.len() < 100, "{} queries in an hour", intervals.len());
    }

    #[test]
    fn an_ended_payment_is_queried_for_a_day() {
        let ended = &RawStatus::Failed;
        let mut now = at(0);
        let mut queries = 0;
        while let Some(next) = next_check(ended, WaitsFor::Gateway, at(0), at(0), now) {
            now = next;
            queries += 1;
        }
        assert!(now > at(24 * 3600) && queries < 60, "{queries} queries until {now}");
    }
}
