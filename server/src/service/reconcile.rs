//! Reconciles payments and refunds with their gateways until each is decided.

use std::{pin::pin, slice, sync::Arc, time::Duration};

use payments_core::{PaymentId, Timestamp};
use tokio::{
    task::JoinSet,
    time::{MissedTickBehavior, interval},
};

use super::{Result, Service, ServiceError, check_permits::CLAIMS, confirm::awaits_gateway};
use crate::{
    domain::Session,
    gateway::Return,
    store::{Claim, LEASE_SECONDS, Lease, Queue, Work},
};

const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// How a claim on a due payment ended.
enum Ended {
    /// The next check is planned, or none is needed.
    Planned,
    /// The payment stays due and claimed. Without the claim, it would come before all others again and again.
    StaysDue,
    /// The payment's developer already has its maximum of claims.
    NoPermit,
}

impl Service {
    /// Reconciles payments and refunds when they are due. Runs forever.
    pub async fn reconcile(self: Arc<Self>) {
        let mut ticks = interval(POLL_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut in_progress, mut is_more_due) = (JoinSet::new(), false);
        loop {
            tokio::select! {
                biased;
                _ = ticks.tick() => is_more_due = true,
                Some(ended) = in_progress.join_next() => match ended {
                    Ok(Ended::NoPermit) => is_more_due = false,
                    Ok(Ended::Planned | Ended::StaysDue) => {}
                    Err(error) => {
                        tracing::error!(%error, "a gateway check ended early; its payment is checked again");
                    }
                }
            }
            // Claim no more than there is room for: a server that dies leaves its claims behind.
            let free = CLAIMS - in_progress.len();
            if !is_more_due || free == 0 {
                continue;
            }
            let lease = self.check_lease();
            match self.store.claim(Queue::GatewayChecks, &lease, free).await {
                Ok(due) => {
                    is_more_due = due.len() == free;
                    for claim in due {
                        in_progress.spawn(Arc::clone(&self).reconcile_one(claim, lease.now));
                    }
                }
                Err(error) => {
                    is_more_due = false;
                    tracing::error!(%error, "could not claim payments to reconcile; trying again");
                }
            }
        }
    }

    fn check_lease(&self) -> Lease {
        Lease::new(self.ambient.now(), LEASE_SECONDS)
    }

    /// Reconciles a payment while it is claimed.
    async fn reconcile_one(self: Arc<Self>, claim: Claim, claimed_at: Timestamp) -> Ended {
        let Work::GatewayCheck(id) = &claim.work else { return Ended::Planned };
        let mut check = pin!(self.check_gateway(id, claimed_at));
        let (Ok(ended) | Err(ended)) = tokio::select! {
            biased;
            ended = &mut check => ended,
            // If two servers work on one payment, the payment's version admits only one change.
            () = self.store.renew_until_lost(&claim, || self.check_lease()) => check.await,
        };
        match ended {
            Ended::Planned => {
                if let Err(error) = self.store.release(slice::from_ref(&claim)).await {
                    tracing::warn!(%error, "could not release the claim on a gateway check; it ends with its lease");
                }
            }
            Ended::StaysDue => {
                tracing::warn!(payment = %id, "a payment stays due; it is checked again when the claim on it ends");
            }
            Ended::NoPermit => {}
        }
        ended
    }

    /// Asks a payment's gateway, once a permit for it is free.
    async fn check_gateway(&self, id: &PaymentId, claimed_at: Timestamp) -> Result<Ended, Ended> {
        let payment = self.due_session(id, claimed_at).await?.payment;
        let permit = self.check_permits.enter(payment.currency, &payment.developer_id).await;
        let _permit = permit.ok_or(Ended::NoPermit)?;
        let session = self.due_session(id, claimed_at).await?;
        let checked = if session.pending_refund.is_some() {
            self.finish_pending_refund(&session).await
        } else if session.refund_check_at.is_some_and(|at| at <= claimed_at) {
            self.check_refunds(id).await
        } else if session.next_late_check().is_none() {
            self.check_present_attempt(&session).await
        } else if let Err(error) = self.find_late_money(id).await {
            Err(error)
        } else {
            // Meanwhile the customer may have begun another attempt.
            self.check_present_attempt(&self.due_session(id, claimed_at).await?).await
        };
        match checked {
            // A concurrent request finished the same refund.
            Ok(()) | Err(ServiceError::Conflict) => {}
            // The gateway call is in the log. The server queries again later.
            Err(ServiceError::Gateway(error)) => tracing::debug!(payment = %id, %error, "not reconciled yet"),
            Err(error) => tracing::error!(payment = %id, %error, "could not reconcile a payment"),
        }
        let after = self.store.session(id).await;
        // During a review nothing is due.
        let is_planned = after.is_ok_and(|after| {
            after.is_none_or(|after| {
                after.needs_manual_review() || after.check_at.is_none_or(|at| Some(at) != session.check_at)
            })
        });
        Ok(if is_planned { Ended::Planned } else { Ended::StaysDue })
    }

    async fn check_present_attempt(&self, session: &Session) -> Result<()> {
        if awaits_gateway(session) {
            self.confirm(&session.payment.id, &Return::default()).await.map(drop)
        } else {
            self.commit_without_event(Session { check_at: None, ..session.next() }).await
        }
    }

    /// The session of a payment that is still due: while it was claimed, a concurrent request may have decided it or planned its
    /// next check.
    async fn due_session(&self, id: &PaymentId, claimed_at: Timestamp) -> Result<Session, Ended> {
        match self.store.session(id).await {
            Ok(session) => {
                session.filter(|session| session.check_at.is_some_and(|at| at <= claimed_at)).ok_or(Ended::Planned)
            }
            Err(error) => {
                tracing::error!(payment = %id, %error, "could not read a payment to reconcile");
                Err(Ended::StaysDue)
            }
        }
    }
}
