//! How a live payment ends: the server asks the gateway, and the gateway's word moves the payment.
//!
//! Whatever is about to have an effect at the gateway is committed before the gateway is told. So a crash at any moment
//! leaves a payment that the reconciler takes up where it was left.

use payments_core::{Cause, Payment, PaymentId, RawStatus, Timestamp};

use super::{Refused, Service, payments::NO_PAYMENT};
use crate::{
    gateway::{Gateway, GatewayError, Standing},
    store::{Attempt, Review, Session},
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
const TAKE_AGAIN_MILLIS: i64 = 5_000;
/// So long after that the attempt is not closed: the gateway may still be at it.
const CLOSE_AFTER_MILLIS: i64 = 60_000;
/// When the gateway is first asked, and the longest it is left alone.
const FIRST_PAUSE_MILLIS: u32 = 3_000;
const LONGEST_PAUSE_MILLIS: u32 = 300_000;
/// How often an attempt that ended without money is looked at once more, if the gateway had been told to take it.
const LATE_LOOKS: u32 = 6;

/// When the gateway is asked next: after growing pauses, and at the session's end.
pub(super) fn next_check(looks: u32, now: Timestamp, expires_at: Timestamp) -> Timestamp {
    let mut pause = FIRST_PAUSE_MILLIS;
    for _ in 0..looks.min(20) {
        pause = (pause + pause / 2).min(LONGEST_PAUSE_MILLIS);
    }
    let next = plus_millis(now, pause);
    if now < expires_at { next.min(expires_at) } else { next }
}

fn plus_millis(time: Timestamp, millis: u32) -> Timestamp {
    Timestamp::from_millis(time.as_millis() + i64::from(millis)).unwrap_or(time)
}

/// What to do about a payment whose gateway was asked how it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    /// Tell the gateway to take the money.
    Take,
    /// See to it that it can no longer be paid.
    Close,
    /// Ask again later.
    Wait,
    /// It is decided.
    Move(Cause),
    /// It cannot be decided here.
    Dispute(String),
}

impl Service {
    /// Asks the gateway how a payment's attempt stands and does what follows. Returns the payment as it then is.
    pub(crate) async fn settle(&self, id: &PaymentId, hint: Hint) -> Result<Payment, Refused> {
        loop {
            let session = self.store.session(id).await?.ok_or(NO_PAYMENT)?;
            let Some(attempt) = session.attempt.as_ref().filter(|_| awaits_its_gateway(&session)) else {
                return Ok(session.payment);
            };
            match self.settle_once(&session, attempt, hint).await {
                // Somebody else settles it too, and was faster.
                Err(Refused::Moved) => {}
                Ok(payment) => return Ok(payment),
                Err(refused) => {
                    self.postpone(&session).await?;
                    return Err(refused);
                }
            }
        }
    }

    async fn settle_once(&self, session: &Session, attempt: &Attempt, hint: Hint) -> Result<Payment, Refused> {
        let gateway = self.gateways.named(attempt.gateway);
        let gateway = gateway.ok_or(Refused::NoGateway(session.payment.currency))?;
        let payment = &session.payment;
        let mut session = session.clone();
        let take_at_once = hint == Hint::Approved && gateway.takes() && attempt.taken_at.is_none();
        let mut standing = match take_at_once && is_processing(&session) {
            true => Standing::Approved,
            false => gateway.look(payment, attempt).await?,
        };
        loop {
            match step(&session, &standing, hint, self.ambient.now()) {
                Step::Take => {
                    session = self.mark_taken(session).await?;
                    standing = self.take(&*gateway, &session, attempt).await?;
                }
                Step::Close => {
                    let closed = gateway.close(payment, attempt).await?;
                    if closed == Standing::Open {
                        return self.wait(session).await;
                    }
                    standing = closed;
                }
                Step::Wait => return self.wait(session).await,
                Step::Move(cause) => return self.move_by_gateway(&session, &standing, cause).await,
                Step::Dispute(what) => return self.dispute(session, what).await,
            }
        }
    }

    /// What cannot be heard now is asked for once more at once; after that the reconciler asks.
    async fn take(
        &self,
        gateway: &dyn Gateway,
        session: &Session,
        attempt: &Attempt,
    ) -> Result<Standing, GatewayError> {
        match gateway.take(&session.payment, attempt).await {
            Err(GatewayError::Unanswered { .. }) => gateway.look(&session.payment, attempt).await,
            outcome => outcome,
        }
    }

    /// Writes down that the gateway is about to be told to take the money.
    async fn mark_taken(&self, session: Session) -> Result<Session, Refused> {
        let now = self.ambient.now();
        let mut next = session.next();
        // Should the server stop now, nobody is asking until then.
        next.check_at = Some(plus_millis(now, FIRST_PAUSE_MILLIS));
        if let Some(attempt) = &mut next.attempt {
            attempt.taken_at = Some(now);
        }
        self.commit_beside(next.clone()).await?;
        Ok(next)
    }

    async fn wait(&self, session: Session) -> Result<Payment, Refused> {
        let payment = session.payment.clone();
        self.postpone(&session).await?;
        Ok(payment)
    }

    /// Asks again later. If somebody else has moved the payment meanwhile, they have said when.
    async fn postpone(&self, session: &Session) -> Result<(), Refused> {
        // What was read may be older than what `mark_taken` wrote.
        let Some(session) = self.store.session(&session.payment.id).await? else { return Ok(()) };
        let mut next = session.next();
        let Some(attempt) = &mut next.attempt else { return Ok(()) };
        attempt.looks += 1;
        let looks = attempt.looks;
        let goes_on = is_processing(&session) || looks <= LATE_LOOKS;
        next.check_at = goes_on.then(|| next_check(looks, self.ambient.now(), session.expires_at));
        match self.commit_beside(next).await {
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
            attempt.looks = 0;
            if let Standing::Paid { transaction } = standing {
                attempt.transaction = Some(transaction.clone());
            } else if attempt.taken_at.is_some() {
                // The gateway was told to take the money and says it did not. Should it arrive late, it is seen.
                next.check_at = Some(next_check(0, now, session.expires_at));
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
        self.commit_beside(next).await?;
        Ok(session.payment)
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
        _ if !is_processing(session) => Step::Wait,
        Standing::Approved if since_taken >= TAKE_AGAIN_MILLIS => Step::Take,
        Standing::Open if (is_over || hint == Hint::GaveUp) && since_taken >= CLOSE_AFTER_MILLIS => Step::Close,
        Standing::Open | Standing::Approved | Standing::Pending => Step::Wait,
        Standing::Cancelled if is_over => Step::Move(Cause::SessionEnded),
        Standing::Cancelled => Step::Move(Cause::GatewayCancelled),
        Standing::Failed => Step::Move(Cause::GatewayFailed),
    }
}
