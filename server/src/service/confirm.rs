//! How a live payment ends: the server asks the gateway, and the gateway's word moves the payment.
//!
//! Whatever is about to have an effect at the gateway is committed before the gateway is told. So a crash at any moment
//! leaves a payment that the reconciler takes up where it was left.

use payments_core::{Cause, Payment, PaymentId, RawStatus, Timestamp};

use super::{Refused, Service, payments::NO_PAYMENT, retry_on_conflict};
use crate::{
    domain::{Attempt, Review, Session},
    gateway::{Captured, Gateway, GatewayError, Standing},
};

/// What somebody who is not the gateway says of an attempt: a reason to ask, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hint {
    /// Nothing.
    None,
    /// The customer is said to have approved it.
    Approved,
    /// The customer is said to have given up, or failed.
    GaveUp,
}

/// So long after the gateway was told to take the money it is not told again.
const CAPTURE_AGAIN_MILLIS: i64 = 5_000;
/// So long after that the attempt is not closed: the gateway may still be at it.
const CANCEL_AFTER_MILLIS: i64 = 60_000;
/// When the gateway is first asked.
const FIRST_BACKOFF_MILLIS: i64 = 3_000;
/// The longest that it is left alone with a payment that is under way.
const LONGEST_BACKOFF_MILLIS: i64 = 300_000;
/// The same where it is the gateway's turn.
const LONGEST_WAIT_MILLIS: i64 = 60_000;
/// So long after a payment ended without money it is still looked whether the money came after all, if the gateway had
/// been told to take it.
const LATE_MILLIS: i64 = 24 * 60 * 60 * 1000;

/// Whose turn it is in a payment that is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// The customer's, who may take their time.
    Customer,
    /// The gateway's: it did not answer, or has yet to take what the customer approved.
    Gateway,
}

/// When the gateway is asked next. The pause grows with the time since the payment last moved, by a third of it or, where
/// it is the gateway's turn, a twelfth; and anew from the session's end on, at which it is asked whatever came before.
/// `None`: never again.
pub(super) fn next_check(
    status: &RawStatus,
    turn: Turn,
    moved_at: Timestamp,
    expires_at: Timestamp,
    now: Timestamp,
) -> Option<Timestamp> {
    let is_under_way = *status == RawStatus::Processing;
    let is_over = expires_at <= now;
    let since = if is_under_way && is_over { expires_at.max(moved_at) } else { moved_at };
    let waited = now.as_millis() - since.as_millis();
    if !is_under_way && waited > LATE_MILLIS {
        return None;
    }
    let (pause, longest) = match turn {
        _ if !is_under_way => (waited / 3, LATE_MILLIS),
        Turn::Customer => (waited / 3, LONGEST_BACKOFF_MILLIS),
        Turn::Gateway => (waited / 12, LONGEST_WAIT_MILLIS),
    };
    let next = plus_millis(now, pause.clamp(FIRST_BACKOFF_MILLIS, longest));
    Some(if is_under_way && !is_over { next.min(expires_at) } else { next })
}

fn plus_millis(time: Timestamp, millis: i64) -> Timestamp {
    Timestamp::from_millis(time.as_millis() + millis).unwrap_or(time)
}

/// What to do about a payment whose gateway was asked how it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    /// Tell the gateway to take the money.
    Capture,
    /// See to it that it can no longer be paid.
    Cancel,
    /// Ask again later.
    Wait(Turn),
    /// It is decided.
    Move(Cause),
    /// It cannot be decided here.
    Dispute(String),
}

impl Service {
    /// Asks the gateway how a payment's attempt stands and does what follows. Returns the payment as it then is.
    pub(crate) async fn confirm(&self, id: &PaymentId, hint: Hint) -> Result<Payment, Refused> {
        retry_on_conflict(|| async {
            let session = self.store.session(id).await?.ok_or(NO_PAYMENT)?;
            let Some(attempt) = session.attempt.as_ref().filter(|_| awaits_its_gateway(&session)) else {
                return Ok(session.payment);
            };
            let outcome = self.confirm_once(&session, attempt, hint).await;
            if matches!(&outcome, Err(refused) if !matches!(refused, Refused::Moved)) {
                self.postpone(&session, Turn::Gateway).await?;
            }
            outcome
        })
        .await
    }

    async fn confirm_once(&self, session: &Session, attempt: &Attempt, hint: Hint) -> Result<Payment, Refused> {
        let gateway = self.gateways.named(attempt.gateway);
        let gateway = gateway.ok_or(Refused::NoGateway(session.payment.currency))?;
        let payment = &session.payment;
        let mut session = session.clone();
        let capture_at_once = hint == Hint::Approved && gateway.captures() && attempt.taken_at.is_none();
        let mut standing = match capture_at_once && is_processing(&session) {
            true => Standing::Approved,
            false => twice(|| gateway.query(payment, attempt)).await?,
        };
        loop {
            match step(&session, &standing, hint, self.ambient.now()) {
                Step::Capture => {
                    session = self.record_capture(session).await?;
                    standing = self.capture(&*gateway, &session, attempt).await?;
                }
                Step::Cancel => {
                    let closed = twice(|| gateway.cancel(payment, attempt)).await?;
                    if closed == Standing::Open {
                        return self.wait(session, Turn::Gateway).await;
                    }
                    standing = closed;
                }
                Step::Wait(turn) => return self.wait(session, turn).await,
                Step::Move(cause) => return self.move_by_gateway(&session, &standing, cause).await,
                Step::Dispute(what) => return self.dispute(session, what).await,
            }
        }
    }

    /// An answer that is lost is asked for, and not by telling the gateway again. A refusal is believed only of this once.
    async fn capture(
        &self,
        gateway: &dyn Gateway,
        session: &Session,
        attempt: &Attempt,
    ) -> Result<Standing, GatewayError> {
        let taken = match gateway.capture(&session.payment, attempt).await {
            Err(GatewayError::Unanswered { .. }) => Captured::Unclear,
            outcome => outcome?,
        };
        if let Captured::Stands(standing) = taken {
            return Ok(standing);
        }
        let standing = twice(|| gateway.query(&session.payment, attempt)).await?;
        Ok(match (taken, standing) {
            (Captured::Refused(ended), Standing::Open | Standing::Approved) => ended,
            (_, standing) => standing,
        })
    }

    /// Writes down that the gateway is about to be told to take the money.
    async fn record_capture(&self, session: Session) -> Result<Session, Refused> {
        let now = self.ambient.now();
        let mut next = session.next();
        // Should the server stop now, nobody is asking until then.
        next.check_at = Some(plus_millis(now, FIRST_BACKOFF_MILLIS));
        if let Some(attempt) = &mut next.attempt {
            attempt.taken_at = Some(now);
        }
        self.commit_beside(&session, next.clone()).await?;
        Ok(next)
    }

    async fn wait(&self, session: Session, turn: Turn) -> Result<Payment, Refused> {
        let payment = session.payment.clone();
        self.postpone(&session, turn).await?;
        Ok(payment)
    }

    /// Asks again later. If somebody else has moved the payment meanwhile, they have said when.
    async fn postpone(&self, session: &Session, turn: Turn) -> Result<(), Refused> {
        // What was read may be older than what `record_capture` wrote.
        let Some(session) = self.store.session(&session.payment.id).await? else { return Ok(()) };
        let mut next = session.next();
        let payment = &session.payment;
        let now = self.ambient.now();
        next.check_at = next_check(&payment.raw_status, turn, payment.updated_at, session.expires_at, now);
        match self.commit_beside(&session, next).await {
            Err(Refused::Moved) => Ok(()),
            outcome => outcome,
        }
    }

    async fn move_by_gateway(&self, session: &Session, standing: &Standing, cause: Cause) -> Result<Payment, Refused> {
        let now = self.ambient.now();
        let decision = payments_core::decide(&session.payment, cause, now)?;
        let mut next = session.next();
        next.check_at = None;
        if let Some(attempt) = &mut next.attempt {
            if let Standing::Paid { transaction } = standing {
                attempt.transaction = Some(transaction.clone());
            } else if attempt.taken_at.is_some() {
                // The gateway was told to take the money and says it did not. Should it arrive late, it is seen.
                let status = &decision.payment.raw_status;
                next.check_at = next_check(status, Turn::Gateway, now, session.expires_at, now);
            }
        }
        let payment = self.commit_move(session, next, decision).await?;
        tracing::info!(payment = %payment.id, status = payment.raw_status.as_str(), "settled by the gateway");
        Ok(payment)
    }

    async fn dispute(&self, session: Session, what: String) -> Result<Payment, Refused> {
        tracing::error!(payment = %session.payment.id, what, "a person must look: payments-server reconcile list");
        let mut next = session.next();
        next.check_at = None;
        next.review = Some(Review { what, found_at: self.ambient.now(), resolved: None });
        self.commit_beside(&session, next).await?;
        Ok(session.payment)
    }
}

/// What is harmless to ask twice is asked once more at once; after that the reconciler asks.
async fn twice<F: Future<Output = Result<Standing, GatewayError>>>(ask: impl Fn() -> F) -> F::Output {
    match ask().await {
        Err(GatewayError::Unanswered { .. }) => ask().await,
        outcome => outcome,
    }
}

/// Whether the gateway may still have something to say. Of what a person must look at it is not asked.
pub(super) fn awaits_its_gateway(session: &Session) -> bool {
    use RawStatus::{Cancelled, Created, Expired, Failed, Pending, Processing};
    let is_unpaid = matches!(session.payment.raw_status, Created | Pending | Processing | Expired | Failed | Cancelled);
    session.attempt.is_some() && is_unpaid && session.review.as_ref().is_none_or(|review| review.resolved.is_some())
}

fn is_processing(session: &Session) -> bool {
    session.payment.raw_status == RawStatus::Processing
}

/// What follows from how an attempt stands. Money that was taken is always seen; nothing else moves a payment that has
/// ended.
fn step(session: &Session, standing: &Standing, hint: Hint, now: Timestamp) -> Step {
    let taken_at = session.attempt.as_ref().and_then(|attempt| attempt.taken_at);
    let since_taken = taken_at.map_or(i64::MAX, |at| now.as_millis() - at.as_millis());
    let is_over = session.expires_at <= now;
    match standing {
        Standing::Paid { .. } => Step::Move(Cause::GatewayConfirmed),
        Standing::Disputed { what } => Step::Dispute(what.clone()),
        _ if !is_processing(session) => Step::Wait(Turn::Gateway),
        Standing::Approved if since_taken >= CAPTURE_AGAIN_MILLIS => Step::Capture,
        Standing::Approved => Step::Wait(Turn::Gateway),
        Standing::Open if (is_over || hint == Hint::GaveUp) && since_taken >= CANCEL_AFTER_MILLIS => Step::Cancel,
        Standing::Open | Standing::Pending => Step::Wait(Turn::Customer),
        Standing::Cancelled if is_over => Step::Move(Cause::SessionEnded),
        Standing::Cancelled => Step::Move(Cause::GatewayCancelled),
        Standing::Failed => Step::Move(Cause::GatewayFailed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000).unwrap()
    }

    #[test]
    fn pauses_grow_until_the_session_ends_and_begin_anew_there() {
        let under_way = &RawStatus::Processing;
        let (begun, end) = (at(1_000), at(4_600));
        let mut now = begun;
        let mut asked = Vec::new();
        while now < at(20_000) {
            now = next_check(under_way, Turn::Customer, begun, end, now).unwrap();
            asked.push(now);
        }
        assert_eq!(asked[0], at(1_003));
        assert!(asked.contains(&end), "asked at the session's end");
        let after = asked.iter().find(|time| **time > end).unwrap();
        assert_eq!(*after, at(4_603));
        let pauses: Vec<i64> = asked.windows(2).map(|two| two[1].as_millis() - two[0].as_millis()).collect();
        assert!(pauses.iter().all(|pause| *pause <= LONGEST_BACKOFF_MILLIS));
        assert_eq!(pauses.last(), Some(&LONGEST_BACKOFF_MILLIS));
        assert!(asked.len() < 120, "{} looks in five hours", asked.len());
    }

    #[test]
    fn a_gateway_whose_turn_it_is_is_asked_more_often_and_never_left_alone_for_long() {
        let under_way = &RawStatus::Processing;
        let mut now = at(0);
        let mut pauses = Vec::new();
        while now < at(3_600) {
            let next = |turn| next_check(under_way, turn, at(0), at(0), now).unwrap();
            assert!(next(Turn::Gateway) <= next(Turn::Customer));
            pauses.push(next(Turn::Gateway).as_millis() - now.as_millis());
            now = next(Turn::Gateway);
        }
        assert_eq!((pauses[0], pauses.last()), (FIRST_BACKOFF_MILLIS, Some(&LONGEST_WAIT_MILLIS)));
        assert!(pauses.len() < 100, "{} looks in an hour", pauses.len());
    }

    #[test]
    fn an_ended_payment_is_looked_at_for_a_day() {
        let ended = &RawStatus::Failed;
        let mut now = at(0);
        let mut looks = 0;
        while let Some(next) = next_check(ended, Turn::Gateway, at(0), at(0), now) {
            now = next;
            looks += 1;
        }
        assert!(now > at(24 * 3600) && looks < 60, "{looks} looks until {now}");
    }
}
