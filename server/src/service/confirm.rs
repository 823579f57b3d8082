//! Confirms live payments: queries the gateway and changes the payment by the gateway's answer.
//!
//! Before the server sends a capture, it commits the intent. After a crash, the reconciler continues from there.

use payments_core::{Cause, Payment, PaymentId, RawStatus, TimelineKind, Timestamp};

use super::{
    Result, Service, ServiceError,
    error::NO_PAYMENT,
    next_check::{FIRST_BACKOFF_MILLIS, WaitsFor, next_check, plus_millis},
    retry_on_conflict,
};
use crate::{
    domain::{GatewayAttempt, ManualReview, Session},
    gateway::{self, AttemptState, CaptureOutcome, Gateway, GatewayError, Hint, Return},
};

/// How long after the session's end the server goes on to capture money that the customer had approved.
const CAPTURE_GRACE_MILLIS: i64 = 600_000;
/// Minimum time from a capture to a cancel: the gateway may still be working on the capture.
const CANCEL_DELAY_MILLIS: i64 = 60_000;

/// What the server does after a query.
enum Step {
    Capture,
    Cancel,
    Wait(WaitsFor),
    Change(Cause),
    Review(String),
}

impl Service {
    /// Queries the gateway about a payment and does what follows. Returns the payment afterwards.
    pub async fn confirm(&self, id: &PaymentId, back: &Return) -> Result<Payment> {
        retry_on_conflict(|| async {
            let session = self.store.session(id).await?.ok_or(NO_PAYMENT)?;
            if !awaits_gateway(&session) {
                return Ok(session.payment);
            }
            // The customer may return from an attempt that ended: another tab began the present one.
            let is_present = session.attempt.as_ref().is_some_and(|it| it.is_named(back.attempt.as_deref()));
            let hint = if is_present { back.hint } else { Hint::None };
            match self.confirm_once(session, hint).await {
                Ok(payment) => Ok(payment),
                Err(ServiceError::Conflict) => Err(ServiceError::Conflict),
                Err(error) => self.postpone(id, WaitsFor::Answer, Some(&error)).await.and(Err(error)),
            }
        })
        .await
    }

    async fn confirm_once(&self, mut session: Session, hint: Hint) -> Result<Payment> {
        let payment = &session.payment.clone();
        let Some(attempt) = &session.attempt.clone() else { return Ok(session.payment) };
        if crate::planted!(ExpiryWithoutAsking) && session.expires_at <= self.ambient.now() {
            return self.apply_answer(&session, &AttemptState::Cancelled, Cause::SessionEnded).await;
        }
        let gateway = self.gateways.of_attempt(attempt)?;
        let capture_at_once =
            hint == Hint::Approved && gateway.may_capture_unasked() && attempt.capture_sent_at.is_none();
        let mut state = match capture_at_once && payment.raw_status == RawStatus::Processing {
            true => AttemptState::Approved,
            false => twice(|| gateway.query(payment, attempt)).await?,
        };
        let capture_interval = i64::try_from(self.settings.gateway_timeout.as_millis()).unwrap_or(i64::MAX);
        let capture_interval = capture_interval.max(gateway.capture_millis());
        loop {
            match step(&session, &state, hint, capture_interval, self.ambient.now()) {
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
                Step::Review(what) => return self.request_review(&session, session.next(), &what).await,
            }
        }
    }

    /// Captures the money. If the answer is lost, queries instead of capturing again. A rejection says nothing about an
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
            (CaptureOutcome::Rejected { ended, .. }, AttemptState::Open | AttemptState::Approved) => ended,
            (_, state) => state,
        })
    }

    /// Commits that the server is about to send a capture.
    async fn record_capture(&self, session: Session, attempt: &GatewayAttempt) -> Result<Session> {
        let now = self.ambient.now();
        let attempt = GatewayAttempt { capture_sent_at: Some(now), ..attempt.clone() };
        // If the server stops now, the reconciler queries the gateway at this time.
        let check_at = Some(plus_millis(now, FIRST_BACKOFF_MILLIS));
        let mut next = Session { attempt: Some(attempt), check_at, ..session.next() };
        next.record(now, TimelineKind::CaptureRequested, "The customer approved, and the server asked for the money.");
        self.commit_without_event(next.clone()).await?;
        Ok(next)
    }

    /// Schedules the next query, also after a concurrent change: that may have scheduled none.
    async fn postpone(&self, id: &PaymentId, waits_for: WaitsFor, error: Option<&ServiceError>) -> Result<Payment> {
        retry_on_conflict(|| async {
            // Read the session again, because `record_capture` may have changed it.
            let session = self.store.session(id).await?.ok_or(NO_PAYMENT)?;
            // A concurrent check has decided it.
            if !awaits_gateway(&session) {
                return Ok(session.payment);
            }
            let (payment, now) = (&session.payment, self.ambient.now());
            let check_at = next_check(&payment.raw_status, waits_for, payment.updated_at, session.expires_at, now);
            let mut next = Session { check_at, ..session.next() };
            if let Some(ServiceError::Gateway(error)) = error {
                next.record(now, TimelineKind::GatewayError, error.to_string());
            }
            if let Some(attempt) = &mut next.attempt {
                attempt.heard(waits_for != WaitsFor::Answer, now);
            }
            if let Some(silent) = next.attempt.as_ref().filter(|attempt| attempt.is_for_a_person(now)) {
                let what = silent.silence(gateway::title(silent.gateway));
                return self.request_review(&session, next, &what).await;
            }
            self.commit_without_event(next).await?;
            Ok(session.payment)
        })
        .await
    }

    async fn apply_answer(&self, session: &Session, state: &AttemptState, cause: Cause) -> Result<Payment> {
        let now = self.ambient.now();
        let decision = payments_core::decide(&session.payment, cause, now)?;
        let mut next = session.next();
        next.check_at = None;
        if let Some(attempt) = &mut next.attempt {
            attempt.heard(true, now);
            if let AttemptState::Failed { why, code } = state {
                let meaning = code.as_ref().and_then(|code| gateway::meaning(attempt.gateway, code));
                let words = [why.as_deref(), meaning.map(|[english, _]| english)];
                let words = words.into_iter().flatten().collect::<Vec<_>>().join(". ");
                attempt.failure = Some(words).filter(|words| !words.is_empty());
                attempt.failure_code.clone_from(code);
            }
            if let AttemptState::Paid(receipt) = state {
                attempt.transaction = Some(receipt.transaction.clone());
            } else if decision.payment.raw_status == RawStatus::Pending {
                next.end_attempt(now);
            } else if attempt.capture_sent_at.is_some()
                || matches!(state, AttemptState::Failed { .. })
                || self.gateways.of_attempt(attempt).is_ok_and(|gateway| !gateway.closes())
            {
                // The attempt or its capture failed, or the page may still be paid. Later queries find money that arrives late.
                let status = &decision.payment.raw_status;
                next.check_at = next_check(status, WaitsFor::Gateway, now, session.expires_at, now);
            }
        }
        let payment = match state {
            AttemptState::Paid(receipt) => self.commit_paid(session, next, decision, receipt).await?,
            _ => self.records().commit_decision(session, next, decision).await?,
        };
        tracing::info!(payment = %payment.id, status = payment.raw_status.as_str(), "applied the gateway's answer");
        Ok(payment)
    }

    /// Requests a manual review of a discrepancy. Until a person resolves it, the server asks the gateway only for a pending
    /// refund. `next` is the session afterwards, except for the review.
    pub(super) async fn request_review(&self, session: &Session, mut next: Session, what: &str) -> Result<Payment> {
        self.add_review(&mut next, what);
        self.commit_without_event(next).await?;
        Ok(session.payment.clone())
    }

    pub(super) fn add_review(&self, next: &mut Session, what: &str) {
        tracing::error!(payment = %next.payment.id, what, "needs manual review: payments-server reviews list");
        let review = ManualReview { what: what.to_owned(), found_at: self.ambient.now(), resolved: None };
        next.check_at = next.check_at.filter(|_| next.pending_refund.is_some());
        if let Some(ManualReview { what, found_at, resolved }) = next.review.replace(review) {
            next.record(found_at, TimelineKind::ReviewRequested, what);
            let resolved = resolved.map(|it| it.resolved_at);
            resolved.into_iter().for_each(|at| next.record(at, TimelineKind::ReviewResolved, "The operator decided."));
        }
    }
}

/// Repeats a request once if the gateway does not answer. For requests that are safe to repeat.
async fn twice<F: Future<Output = Result<AttemptState, GatewayError>>>(ask: impl Fn() -> F) -> F::Output {
    match ask().await {
        Err(GatewayError::Unanswered { .. }) => ask().await,
        outcome => outcome,
    }
}

/// Whether the gateway's answer can still change the payment. During a manual review it cannot.
pub(super) fn awaits_gateway(session: &Session) -> bool {
    let payment = &session.payment;
    let paid = payments_core::transition(&payment.raw_status, payment.environment, &Cause::GatewayConfirmed);
    session.attempt.is_some() && paid.is_ok() && !session.needs_manual_review()
}

/// Decides what follows from a query's answer. Money that arrived always counts. Nothing else changes an ended payment.
fn step(session: &Session, state: &AttemptState, hint: Hint, capture_interval_millis: i64, now: Timestamp) -> Step {
    let capture_sent_at = session.attempt.as_ref().and_then(|attempt| attempt.capture_sent_at);
    let since_capture = capture_sent_at.map_or(i64::MAX, |at| now.as_millis() - at.as_millis());
    let is_expired = session.expires_at <= now;
    let since_end = now.as_millis() - session.expires_at.as_millis();
    // The last capture has brought no money.
    let is_in_vain = capture_sent_at.is_some() && since_capture >= CANCEL_DELAY_MILLIS;
    let failed = if session.may_try_again(now) { Cause::AttemptFailed } else { Cause::GatewayFailed };
    let is_given_up = matches!(hint, Hint::Cancelled | Hint::CouldNotPay);
    match state {
        AttemptState::Paid(_) => Step::Change(Cause::GatewayConfirmed),
        AttemptState::Discrepancy { what, .. } => Step::Review(what.clone()),
        AttemptState::Pending if session.payment.raw_status != RawStatus::Processing => Step::Wait(WaitsFor::Answer),
        _ if session.payment.raw_status != RawStatus::Processing => Step::Wait(WaitsFor::Gateway),
        AttemptState::Approved if since_end >= CAPTURE_GRACE_MILLIS && is_in_vain => Step::Change(Cause::SessionEnded),
        AttemptState::Approved if since_capture >= capture_interval_millis => Step::Capture,
        AttemptState::Approved => Step::Wait(WaitsFor::Gateway),
        AttemptState::Open if (is_expired || is_given_up) && since_capture >= CANCEL_DELAY_MILLIS => Step::Cancel,
        AttemptState::Open | AttemptState::Pending => Step::Wait(WaitsFor::Customer),
        AttemptState::Cancelled | AttemptState::Expired if is_expired => Step::Change(Cause::SessionEnded),
        AttemptState::Cancelled | AttemptState::Expired if hint == Hint::CouldNotPay => Step::Change(failed),
        AttemptState::Expired if hint != Hint::Cancelled => Step::Change(Cause::SessionEnded),
        AttemptState::Cancelled | AttemptState::Expired => Step::Change(Cause::GatewayCancelled),
        AttemptState::Failed { .. } => Step::Change(failed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{new_attempt, new_session};

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000).unwrap()
    }

    #[test]
    fn approved_money_is_captured_until_ten_minutes_after_the_session_ended() {
        let mut session = new_session();
        session.payment.raw_status = RawStatus::Processing;
        let mut next = |captured: Option<i64>, now: i64| {
            session.attempt = Some(GatewayAttempt { capture_sent_at: captured.map(at), ..new_attempt("a") });
            match step(&session, &AttemptState::Approved, Hint::None, 30_000, at(now)) {
                Step::Capture => "capture",
                Step::Wait(WaitsFor::Gateway) => "wait",
                Step::Change(Cause::SessionEnded) => "end",
                _ => "something else",
            }
        };
        // The session ends at second 60.
        for (captured, now, expected) in [
            (None, 1, "capture"),
            (Some(1), 20, "wait"),
            (Some(1), 31, "capture"),
            (Some(50), 100, "capture"),
            (None, 10_000, "capture"),
            (Some(9_990), 10_000, "wait"),
            (Some(9_930), 10_000, "end"),
            (Some(590), 659, "capture"),
            (Some(590), 660, "end"),
        ] {
            assert_eq!(next(captured, now), expected, "captured at {captured:?}, now {now}");
        }
    }
}
